//! Tables, by a description of their columns.

use hashbrown::HashMap;

use super::columns::{Columns, Delimiter, Field, Place, TimeScale, Unit};
use super::fields::{Spaces, key, number, operation, time};
use super::{Found, Parser};
use crate::trace::event::{Event, Head, Operation, TimeUnit};
use crate::trace::record::{PAGE_SHIFT, RUN_MAX, Run, SECTOR_SHIFT};

/// Says whether the first line names the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Header {
    No,
    Yes,
    /// Published with and without: a line that begins with a number is a row.
    UnlessNumber,
}

/// A table's form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) columns: Columns,
    pub(super) delimiter: Delimiter,
    pub(super) header: Header,
    pub(super) scale: TimeScale,
    /// Objects are laid out in pages by their size, one behind the other.
    pub(super) pages: bool,
}

/// Reads the rows of a table.
pub(super) struct Table {
    form: Form,
    header: Option<Vec<String>>,
    spaces: Spaces,
    objects: Objects,
}

impl Table {
    pub(super) fn new(form: Form) -> Self {
        Table { form, header: None, spaces: Spaces::default(), objects: Objects::default() }
    }

    /// Finds the columns by their names.
    fn read_header(&mut self, line: &[u8]) -> Result<(), String> {
        let name = |field: &[u8]| String::from_utf8_lossy(field).to_ascii_lowercase();
        let names: Vec<String> = split(line, self.form.delimiter).into_iter().map(name).collect();
        let columns = &mut self.form.columns;
        let others = [
            &mut columns.time,
            &mut columns.op,
            &mut columns.space,
            &mut columns.count,
            &mut columns.dsrc,
        ];
        let length = columns.length.as_mut().map(|(_, field)| field);
        let all = others.into_iter().flatten().chain(length).chain([&mut columns.target.1]);
        for field in all {
            settle(field, &names)?;
        }
        self.header = Some(names);
        Ok(())
    }

    fn row(&mut self, fields: &[&[u8]], found: &mut Found) -> Result<(), String> {
        let columns = &self.form.columns;
        let Some(kind) = kind(columns, fields)? else { return Ok(()) };
        let when = match field(&columns.time, fields, "time")? {
            Some(text) => time(text, self.form.scale.0).ok_or("a time in its column")?,
            None => 0,
        };
        let bytes = match &columns.length {
            Some((shift, field)) => bytes(field, *shift, fields)?,
            None => 0,
        };
        let times = match field(&columns.count, fields, "count")? {
            Some(text) => number(text).filter(|&nr| nr <= RUN_MAX),
            None => Some(1),
        };
        let times = times.ok_or_else(|| format!("a count of at most {RUN_MAX}"))?;
        let space = match &columns.space {
            Some(field) => self.spaces.number(&joined(field, fields)?)?,
            None => 0,
        };
        let (unit, target) = &columns.target;
        let target = one(target, fields, "what is asked for")?.unwrap_or_default();
        let run = match unit {
            Unit::Key if self.form.pages => self.objects.run(key(target), bytes, kind.is_write()),
            Unit::Key => Some(Run::one(key(target), false)),
            _ => covering(*unit, target, bytes)?,
        };
        let run = run.ok_or_else(|| format!("at most {RUN_MAX} pages, all of them below 2^64"))?;
        let event = Event { time: when, operation: kind, space, page: run.first, nr: run.nr };
        found.push((event, times));
        Ok(())
    }
}

impl Parser for Table {
    fn head(&self) -> Head {
        let columns = &self.form.columns;
        let is_keyed = columns.target.0 == Unit::Key && !self.form.pages;
        Head {
            page_shift: if is_keyed { 0 } else { PAGE_SHIFT as u8 },
            time: if columns.time.is_some() { TimeUnit::Nanosecond } else { TimeUnit::None },
            spaces: columns.space.is_some(),
        }
    }

    fn line(&mut self, line: &[u8], found: &mut Found) -> Result<(), String> {
        let fields = split(line, self.form.delimiter);
        if self.header.is_none() {
            let begins = fields.first().and_then(|field| field.first());
            let is_number = begins.is_some_and(u8::is_ascii_digit);
            match self.form.header {
                Header::Yes => return self.read_header(line),
                Header::UnlessNumber if !is_number => return self.read_header(line),
                Header::No | Header::UnlessNumber => self.header = Some(Vec::new()),
            }
        }
        self.row(&fields, found)
    }

    fn names(&mut self) -> Vec<(u32, String)> {
        self.spaces.names()
    }
}

/// Replaces names by columns.
fn settle(field: &mut Field, names: &[String]) -> Result<(), String> {
    let (mut places, mut missing) = (Vec::new(), None);
    for place in &field.places {
        match place {
            Place::Named(name) => match names.iter().position(|known| known == name) {
                Some(at) => places.push(Place::At(at)),
                None => missing = Some(name),
            },
            Place::At(at) => places.push(Place::At(*at)),
        }
    }
    match missing {
        Some(name) if !field.optional => Err(format!("a header with a column {name}")),
        _ => {
            field.places = places;
            Ok(())
        }
    }
}

/// The fields of a line: blanks around them do not count, quotes hold delimiters.
fn split(line: &[u8], delimiter: Delimiter) -> Vec<&[u8]> {
    let Delimiter::Byte(byte) = delimiter else { return super::fields::words(line).collect() };
    let (mut fields, mut rest) = (Vec::new(), Some(line));
    while let Some(text) = rest {
        let text = text.trim_ascii_start();
        let quoted = text.strip_prefix(b"\"").and_then(|inner| {
            let end = inner.iter().position(|&b| b == b'"')?;
            let behind = inner[end + 1..].trim_ascii_start();
            (behind.is_empty() || behind[0] == byte).then(|| (&inner[..end], behind.get(1..)))
        });
        let (field, more) = quoted.unwrap_or_else(|| match memchr::memchr(byte, text) {
            Some(end) => (text[..end].trim_ascii_end(), Some(&text[end + 1..])),
            None => (text.trim_ascii_end(), None),
        });
        fields.push(field);
        rest = more;
    }
    fields
}

/// The text of a field of one column; nothing if it may be absent and is.
fn one<'a>(field: &Field, fields: &[&'a [u8]], what: &str) -> Result<Option<&'a [u8]>, String> {
    let Some(Place::At(at)) = field.places.first() else { return Ok(None) };
    match fields.get(*at).filter(|text| !text.is_empty()) {
        Some(text) => Ok(Some(text)),
        None if field.optional => Ok(None),
        None => Err(format!("column {} with {what}", at + 1)),
    }
}

fn field<'a>(
    field: &Option<Field>,
    fields: &[&'a [u8]],
    what: &str,
) -> Result<Option<&'a [u8]>, String> {
    field.as_ref().map_or(Ok(None), |field| one(field, fields, what))
}

/// The texts of several columns, with blanks between.
fn joined(field: &Field, fields: &[&[u8]]) -> Result<Vec<u8>, String> {
    let each = |place: &Place| {
        let alone = Field { places: vec![place.clone()], optional: field.optional };
        Ok(one(&alone, fields, "a space")?.unwrap_or_default())
    };
    let texts: Vec<&[u8]> = field.places.iter().map(each).collect::<Result<_, String>>()?;
    Ok(texts.join(&b' '))
}

/// The sum of several columns, in bytes.
fn bytes(field: &Field, shift: u32, fields: &[&[u8]]) -> Result<u128, String> {
    let mut sum = 0;
    for place in &field.places {
        let alone = Field { places: vec![place.clone()], optional: field.optional };
        if let Some(text) = one(&alone, fields, "a size")? {
            let nr = number(text).ok_or("a number in the column of sizes")?;
            sum += u128::from(nr) << shift;
        }
    }
    Ok(sum)
}

/// Tells what happened; `None` means that the row is passed over.
fn kind(columns: &Columns, fields: &[&[u8]]) -> Result<Option<Operation>, String> {
    if let Some(text) = field(&columns.dsrc, fields, "a data source")? {
        // The lowest bits are flags: unknown, load, store, prefetch, execute.
        let bits = number(text).ok_or("a data source such as 0x68100142")?;
        return Ok(match bits {
            _ if bits & 4 != 0 => Some(Operation::Store),
            _ if bits & 2 != 0 => Some(Operation::Load),
            _ => None,
        });
    }
    match field(&columns.op, fields, "an operation")? {
        Some(text) => operation(text).ok_or("an operation such as r, w, get or delete".into()),
        None => Ok(Some(Operation::Read)),
    }
}

fn covering(unit: Unit, target: &[u8], bytes: u128) -> Result<Option<Run>, String> {
    let shift = match unit {
        Unit::Byte => 0,
        Unit::Sector => SECTOR_SHIFT,
        Unit::Page | Unit::Key => PAGE_SHIFT,
    };
    let at = number(target).ok_or("a number below 2^64 in the column of what is asked for")?;
    Ok(Run::covering(at, shift, bytes, false))
}

/// Pages of objects: each gets as many as it needs when it appears, behind those of all before. One
/// that has grown when it is written again gets others.
#[derive(Default)]
struct Objects {
    extents: HashMap<u64, Run>,
    next: u64,
}

impl Objects {
    fn run(&mut self, key: u64, bytes: u128, write: bool) -> Option<Run> {
        let nr = u64::try_from(bytes.div_ceil(1 << PAGE_SHIFT).max(1)).ok()?;
        if let Some(run) = self.extents.get(&key).filter(|run| run.nr >= nr || !write) {
            return Some(Run { nr: nr.min(run.nr), ..*run });
        }
        let run = Run::several(self.next, nr, false)?;
        self.next = self.next.checked_add(nr)?;
        self.extents.insert(key, run);
        Some(run)
    }
}
