//! Lists recordings by name: programs whose output is read, and published traces.

use std::str::FromStr;

use super::Parser;
use super::blkparse::Blkparse;
use super::columns::{Columns, Delimiter, TimeScale};
use super::damon::Damon;
use super::lackey::Lackey;
use super::perf::Perf;
use super::table::{Form, Header, Table};

/// Names a kind of recording.
#[derive(Clone, Debug)]
pub struct Source(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Table(Box<Form>),
    Text(New),
}

/// Makes a reader.
type New = fn() -> Box<dyn Parser>;

/// Recordings with a grammar of their own.
const TEXTS: [(&str, New); 4] = [
    ("damon", || Box::new(Damon::default())),
    ("blkparse", || Box::new(Blkparse::default())),
    ("perf-script", || Box::new(Perf::default())),
    ("lackey", || Box::new(Lackey::default())),
];

/// A published table: name, columns, delimiter, unit of its times, whether a header leads.
type Preset = (&'static str, &'static str, &'static str, &'static str, bool);

const PRESETS: [Preset; 15] = [
    ("msr", "time=1,space=2+3,op=4,offset=5,size=6", ",", "100ns", false),
    ("snia-systor", "time=1,op=3,space=4,offset=5,size=6", ",", "s", true),
    ("alibaba", "space=1,op=2,offset=3,size=4,time=5", ",", "us", false),
    ("tencent", "time=1,lbn=2,sectors=3,op=4,space=5", ",", "s", false),
    ("twitter", "time=1,key=2,size=3+4,op=6", ",", "s", false),
    ("meta-kv", "key=key,op=op,size=size?+key_size?,count=op_count?,time=op_time?", ",", "s", true),
    ("ibm", "time=1,op=2,key=3,size=4?", "blanks", "ms", false),
    ("spc", "space=1,lbn=2,size=3,op=4,time=5", ",", "s", false),
    ("fiu", "time=1,lbn=4,sectors=5,op=6,space=7+8", "blanks", "ns", false),
    ("webcachesim", "time=1,key=2,size=3", "blanks", "s", false),
    ("libcachesim-csv", "time=1,key=2,size=3?", ",", "s", true),
    ("libcachesim-txt", "key=1", "blanks", "s", false),
    ("lcs-csv", "time=time,op=op,size=size,lbn=lbn", ",", "s", true),
    ("csv-offset", "time=time?,op=op?,offset=offset,size=size?,space=space?", ",", "s", true),
    ("perf-mem", "space=1,offset=4,dsrc=6", "blanks", "s", false),
];

impl Source {
    /// Describes a table by its columns; a header is needed where columns are named.
    pub fn table(
        columns: Columns,
        delimiter: Delimiter,
        header: bool,
        scale: TimeScale,
        pages: bool,
    ) -> Self {
        let header = if header || columns.has_names() { Header::Yes } else { Header::No };
        Source(Kind::Table(Box::new(Form { columns, delimiter, header, scale, pages })))
    }

    /// Lays objects out in pages by their size, where the recording has keys.
    pub fn with_pages(mut self) -> Self {
        if let Kind::Table(form) = &mut self.0 {
            form.pages = true;
        }
        self
    }

    /// Lists the names.
    pub fn known() -> impl Iterator<Item = &'static str> {
        TEXTS.iter().map(|(name, _)| *name).chain(PRESETS.iter().map(|preset| preset.0))
    }

    pub(super) fn parser(&self) -> Box<dyn Parser> {
        match &self.0 {
            Kind::Table(form) => Box::new(Table::new((**form).clone())),
            Kind::Text(new) => new(),
        }
    }
}

impl FromStr for Source {
    type Err = UnknownSource;

    fn from_str(name: &str) -> Result<Self, UnknownSource> {
        if let Some((_, new)) = TEXTS.iter().find(|(known, _)| *known == name) {
            return Ok(Source(Kind::Text(*new)));
        }
        let preset = PRESETS.iter().find(|preset| preset.0 == name);
        let &(_, columns, delimiter, scale, header) =
            preset.ok_or_else(|| UnknownSource(name.to_string()))?;
        let columns: Columns = columns.parse().expect("a preset describes columns");
        let delimiter = delimiter.parse().expect("a preset has a delimiter");
        let scale = scale.parse().expect("a preset has a unit of time");
        let header = match header {
            true if columns.has_names() => Header::Yes,
            true => Header::UnlessNumber,
            false => Header::No,
        };
        Ok(Source(Kind::Table(Box::new(Form { columns, delimiter, header, scale, pages: false }))))
    }
}

/// Reports that no recording has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown recording \"{0}\" (known: {known})",
    known = Source::known().collect::<Vec<_>>().join(", "))]
pub struct UnknownSource(String);
