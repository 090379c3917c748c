//! `mglru trace convert`, `import` and `anonymize`.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::signals::{at_signal, signals};

use mglru_workload::trace::{Columns, Delimiter, Format as TraceFormat, Source, TimeScale, View};

use mglru_error::Error;
use mglru_traces::tools::{self, Made, Output};

pub(super) const CONVERT: &str = "\
Examples:
  mglru trace convert t.lis.zst t.mtr          compact: a byte or two a request
  mglru trace convert t.mtr t.csv              text: op,page";

pub(super) const IMPORT: &str = "\
Examples:
  mglru trace import hm_0.csv.gz hm_0.mtr --from msr
  blkparse -i sda | mglru trace import - sda.mtr --from blkparse
  mglru trace import t.txt t.mtr --columns time=1,op=2,offset=4,size=5 --delimiter ';'

Columns: one of offset (bytes), lbn (sectors of 512 bytes), page, key (text or a number); size
(bytes), sectors or pages; time, op, space, count. Numbers count from 1, names are those of the
header, 2+3 takes both, ? behind may be absent.";

pub(super) const ANONYMIZE: &str = "\
Blocks of 1024 pages change places under a key that is drawn and forgotten, times are rounded down
to seconds, names are left out. Miss-ratio curves stay as they are.";

/// The file that `-` means where a trace is written.
const STDOUT: &str = "/dev/stdout";

#[derive(clap::Args)]
pub(crate) struct ConvertArgs {
    /// Read this trace file, plain or compressed; - is standard input
    from: PathBuf,
    /// Write to this file: text if it ends in .csv, else compact; - is standard output
    to: PathBuf,
    /// Read the trace in this format [default: guessed from its name or content]
    #[arg(long)]
    trace_format: Option<TraceFormat>,
    /// Count every page of a request by itself, as a page cache does
    #[arg(long)]
    pages: bool,
}

#[derive(clap::Args)]
pub(crate) struct ImportArgs {
    /// Read this recording, plain or compressed; - is standard input
    file: PathBuf,
    /// Write the compact trace to this file; - is standard output
    to: PathBuf,
    /// Say what recorded it (damon, blkparse, perf-script, perf-mem, lackey), or which published
    /// trace it is (msr, snia-systor, alibaba, tencent, twitter, meta-kv, ibm, spc, fiu,
    /// webcachesim, libcachesim-csv, libcachesim-txt, lcs-csv, csv-offset)
    #[arg(long, value_name = "NAME")]
    from: Option<Source>,
    /// Tell which column says what, such as time=1,op=2,offset=4,size=5
    #[arg(long, conflicts_with = "from")]
    columns: Option<Columns>,
    /// Split columns at this: a character, tab or blanks
    #[arg(long, default_value = ",", conflicts_with = "from")]
    delimiter: Delimiter,
    /// The first line is a header
    #[arg(long, conflicts_with = "from")]
    header: bool,
    /// Set the unit of the times: ns, 100ns, us, ms or s
    #[arg(long, default_value = "s", value_name = "UNIT", conflicts_with = "from")]
    time_unit: TimeScale,
    /// Lay objects out in pages by their size, where there are keys
    #[arg(long)]
    pages: bool,
}

#[derive(clap::Args)]
pub(crate) struct AnonymizeArgs {
    /// Read this compact trace
    from: PathBuf,
    /// Write the compact trace to this file; - is standard output
    to: PathBuf,
}

/// Returns the file to read: `-` is standard input.
pub(super) fn input(path: &Path) -> &Path {
    if path.as_os_str() == "-" { Path::new("/dev/stdin") } else { path }
}

/// Makes the file to write: `-` is standard output.
fn output(path: &Path) -> Result<Output<'_>, Error> {
    let signals = signals()?;
    let out = Output::new(if path.as_os_str() == "-" { Path::new(STDOUT) } else { path })?;
    let file = out.beside().to_path_buf();
    // It may be large, and its name begins with a dot; it may be in its place already.
    at_signal(signals, move || _ = std::fs::remove_file(file));
    Ok(out)
}

impl ConvertArgs {
    pub(super) fn run(&self) -> Result<String, Error> {
        let is_csv = self.to.extension().is_some_and(|end| end.eq_ignore_ascii_case("csv"));
        let view = if self.pages { View::Pages } else { View::Requests };
        let out = output(&self.to)?;
        let from = input(&self.from);
        let made = tools::convert(from, self.trace_format, view, is_csv, out)?;
        Ok(summary(&made))
    }
}

impl ImportArgs {
    pub(super) fn run(&self) -> Result<String, Error> {
        let named = self.from.clone().map(|source| match self.pages {
            true => source.with_pages(),
            false => source,
        });
        let described = |columns: &Columns| {
            let (header, scale) = (self.header, self.time_unit);
            Source::table(columns.clone(), self.delimiter, header, scale, self.pages)
        };
        let source = named.or_else(|| self.columns.as_ref().map(described));
        let source = source.ok_or_else(|| {
            let (file, known) = (self.file.display(), Source::known().collect::<Vec<_>>());
            let known = known.join(", ");
            Error::Request(format!("{file}: --from NAME says what it is ({known}), or --columns"))
        })?;
        let made = tools::import(input(&self.file), &source, output(&self.to)?)?;
        Ok(summary(&made))
    }
}

impl AnonymizeArgs {
    pub(super) fn run(&self) -> Result<String, Error> {
        let mut key = [0; 32];
        let drawn = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut key));
        drawn.map_err(|e| Error::Request(format!("/dev/urandom: {e}")))?;
        let made = tools::anonymize(&self.from, key, output(&self.to)?)?;
        Ok(summary(&made))
    }
}

/// Says what was written; on stderr where stdout is the file.
pub(super) fn summary(made: &Made) -> String {
    let Made { file, events, bytes } = made;
    let each = *bytes as f64 / (*events).max(1) as f64;
    let text = format!("{}: {events} events, {bytes} bytes, {each:.2} an event\n", file.display());
    match file == Path::new(STDOUT) {
        true => {
            eprint!("{text}");
            String::new()
        }
        false => text,
    }
}
