//! The description of a table: which column says what, as users write it:
//! `time=1,op=4,offset=5,size=6`.

use std::str::FromStr;

/// Separates fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delimiter {
    /// Separates columns by one character.
    Byte(u8),
    /// Separates columns by any number of spaces and tabs.
    Blanks,
}

impl FromStr for Delimiter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.as_bytes() {
            _ if text == "blanks" => Ok(Delimiter::Blanks),
            b"tab" | b"\\t" => Ok(Delimiter::Byte(b'\t')),
            b" " => Ok(Delimiter::Blanks),
            [byte] if byte.is_ascii_punctuation() && !b"\"#".contains(byte) => {
                Ok(Delimiter::Byte(*byte))
            }
            b"\t" => Ok(Delimiter::Byte(b'\t')),
            _ => Err("expected one character such as , or ;, or tab, or blanks".to_string()),
        }
    }
}

/// Says how many nanoseconds the number 1 in the column of times is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeScale(pub u64);

impl FromStr for TimeScale {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const KNOWN: [(&str, u64); 5] =
            [("ns", 1), ("100ns", 100), ("us", 1000), ("ms", 1_000_000), ("s", 1_000_000_000)];
        let known = KNOWN.iter().find(|(name, _)| *name == text);
        known.map(|&(_, scale)| TimeScale(scale)).ok_or("expected ns, 100ns, us, ms or s".into())
    }
}

/// Where a field stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Numbers a column, from 0.
    At(usize),
    /// Names a column of the header.
    Named(String),
}

/// Lists the columns that one value is read from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) places: Vec<Place>,
    /// It may be absent or empty.
    pub(super) optional: bool,
}

/// The unit of the column that says what is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Byte,
    Sector,
    Page,
    Key,
}

/// Names of columns that say what is asked for.
pub(super) const WHERE: [(&str, Unit); 6] = [
    ("offset", Unit::Byte),
    ("address", Unit::Byte),
    ("lbn", Unit::Sector),
    ("page", Unit::Page),
    ("block", Unit::Page),
    ("key", Unit::Key),
];
/// Names of columns that say how much, in bytes of the given shift.
pub(super) const HOW_MUCH: [(&str, u32); 3] = [("size", 0), ("sectors", 9), ("pages", 12)];
/// Names of other columns.
const OTHERS: [&str; 5] = ["time", "op", "space", "count", "dsrc"];

/// Describes a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    pub(super) target: (Unit, Field),
    pub(super) length: Option<(u32, Field)>,
    pub(super) time: Option<Field>,
    pub(super) op: Option<Field>,
    pub(super) space: Option<Field>,
    pub(super) count: Option<Field>,
    pub(super) dsrc: Option<Field>,
}

/// Says why a description of columns is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadColumns(String);

impl Columns {
    /// Says whether a column is named, so that the table must have a header.
    pub fn has_names(&self) -> bool {
        let all = [&self.time, &self.op, &self.space, &self.count, &self.dsrc];
        let mut fields: Vec<&Field> = all.into_iter().flatten().collect();
        fields.push(&self.target.1);
        fields.extend(self.length.as_ref().map(|(_, field)| field));
        fields.iter().any(|f| f.places.iter().any(|place| matches!(place, Place::Named(_))))
    }
}

impl FromStr for Columns {
    type Err = BadColumns;

    fn from_str(text: &str) -> Result<Self, BadColumns> {
        let mut fields = Vec::new();
        for part in text.split(',').map(str::trim) {
            let (name, value) = part
                .split_once('=')
                .ok_or_else(|| BadColumns(format!("\"{part}\": expected NAME=COLUMN")))?;
            if fields.iter().any(|(known, _)| *known == name) {
                return Err(BadColumns(format!("column {name} is given twice")));
            }
            if !known().any(|known| known == name) {
                let known = known().collect::<Vec<_>>().join(", ");
                return Err(BadColumns(format!("unknown column \"{name}\" (known: {known})")));
            }
            fields.push((name, field(value)?));
        }
        let mut take = |wanted: &str| {
            let at = fields.iter().position(|(name, _)| *name == wanted)?;
            Some(fields.swap_remove(at).1)
        };
        let mut targets =
            WHERE.iter().filter_map(|&(name, unit)| Some((unit, take(name)?))).collect::<Vec<_>>();
        let (1, Some(target)) = (targets.len(), targets.pop()) else {
            let names = WHERE.map(|(name, _)| name).join(", ");
            return Err(BadColumns(format!("expected exactly one of {names}")));
        };
        let lengths = HOW_MUCH.iter().filter_map(|&(name, shift)| Some((shift, take(name)?)));
        let mut lengths = lengths.collect::<Vec<_>>();
        if lengths.len() > 1 {
            return Err(BadColumns("expected one of size, sectors, pages at most".to_string()));
        }
        Ok(Columns {
            target,
            length: lengths.pop(),
            time: take("time"),
            op: take("op"),
            space: take("space"),
            count: take("count"),
            dsrc: take("dsrc"),
        })
    }
}

fn known() -> impl Iterator<Item = &'static str> {
    let names = WHERE.iter().map(|(name, _)| *name).chain(HOW_MUCH.iter().map(|(name, _)| *name));
    names.chain(OTHERS)
}

/// Reads `5`, `2+3`, `name` or any of them with `?` behind.
fn field(text: &str) -> Result<Field, BadColumns> {
    let bare = text.trim().strip_suffix('?');
    let places = bare.unwrap_or(text).trim().split('+').map(place).collect::<Result<_, _>>()?;
    Ok(Field { places, optional: bare.is_some() })
}

fn place(text: &str) -> Result<Place, BadColumns> {
    match text.parse::<usize>() {
        Ok(at) if (1..=1000).contains(&at) => Ok(Place::At(at - 1)),
        Ok(_) => Err(BadColumns(format!("column {text}: columns count from 1 to 1000"))),
        Err(_) if text.is_empty() => Err(BadColumns("a column has no number".to_string())),
        Err(_) => Ok(Place::Named(text.to_ascii_lowercase())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_read_whole_or_refused() {
        let columns: Columns = "time=1, space=2+3,op=4,offset=5,size=bytes?".parse().unwrap();
        assert_eq!(columns.target, (Unit::Byte, field("5").unwrap()));
        assert_eq!(columns.space.as_ref().unwrap().places, [Place::At(1), Place::At(2)]);
        let size = columns.length.as_ref().unwrap();
        assert!(size.1.optional && size.1.places == [Place::Named("bytes".to_string())]);
        assert!(columns.has_names() && columns.count.is_none());
        for (wrong, expected) in [
            ("time=1", "exactly one of offset"),
            ("page=1,key=2", "exactly one of offset"),
            ("page=1,page=2", "given twice"),
            ("page=1,colour=2", "unknown column \"colour\" (known: offset"),
            ("page", "expected NAME=COLUMN"),
            ("page=0", "from 1"),
            ("page=", "no number"),
            ("page=1,size=2,pages=3", "at most"),
        ] {
            let message = wrong.parse::<Columns>().unwrap_err().to_string();
            assert!(message.contains(expected), "{wrong}: {message}");
        }
    }

    #[test]
    fn delimiters_and_scales() {
        assert_eq!(";".parse(), Ok(Delimiter::Byte(b';')));
        assert_eq!("tab".parse(), Ok(Delimiter::Byte(b'\t')));
        assert_eq!(" ".parse(), Ok(Delimiter::Blanks));
        assert!("ab".parse::<Delimiter>().is_err() && "1".parse::<Delimiter>().is_err());
        assert_eq!("100ns".parse(), Ok(TimeScale(100)));
        assert!("h".parse::<TimeScale>().is_err());
    }
}
