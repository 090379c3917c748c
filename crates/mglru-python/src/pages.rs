//! Traces as arrays of page numbers, and curves of them.

use std::path::{Path, PathBuf};

use numpy::ndarray::ArrayView1;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::interrupt::{go_on, interruptible};
use mglru_error::Error;
use mglru_lab::render;
use mglru_lab::runner::Stop;
use mglru_traces::flat::SLICES;
use mglru_traces::tools::{Capacity, Counting, Curve};
use mglru_workload::trace::{Format, Numbering, TraceFile, TraceReader, View, trace_name};

/// Requests that are handed over at a time.
const BLOCK: usize = 1 << 16;

/// Page numbers and writes of a trace, and `{"trace", "format"}`.
type Columns<'py> = (Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<bool>>, String);

/// Describes a trace to be opened.
pub struct Asked {
    /// Holds its file.
    pub file: TraceFile,
    /// Names its format; guessed from name or content where absent.
    pub format: Option<Format>,
    /// Selects the accesses that count as requests.
    pub view: View,
}

impl Asked {
    /// Opens the file.
    pub fn new(path: PathBuf, format: Option<&str>, pages: bool) -> Result<Self, Error> {
        let known = |name: &str| name.parse::<Format>().map_err(|e| Error::Request(e.to_string()));
        let format = format.map(known).transpose()?;
        let view = if pages { View::Pages } else { View::Requests };
        Ok(Self { file: TraceFile::open(path)?, format, view })
    }

    /// Starts to read it.
    pub fn reader(&self) -> Result<TraceReader, Error> {
        Ok(self.file.reader(self.format, self.view)?)
    }

    /// Returns the name of the trace.
    pub fn name(&self) -> String {
        trace_name(self.file.path())
    }
}

/// Reads a trace; numpy owns what Rust has filled.
#[pyfunction]
pub fn read_trace<'py>(
    py: Python<'py>,
    path: PathBuf,
    format: Option<&str>,
    pages: bool,
) -> PyResult<Columns<'py>> {
    let (numbers, writes, about) = interruptible(py, |stop| {
        let asked = Asked::new(path, format, pages)?;
        let (numbers, writes, format) = columns(&asked, stop)?;
        let about = serde_json::json!({ "trace": asked.name(), "format": format.to_string() });
        Ok::<_, Error>((numbers, writes, about.to_string()))
    })?;
    Ok((numbers.into_pyarray(py), writes.into_pyarray(py), about))
}

fn columns(asked: &Asked, stop: &Stop) -> Result<(Vec<u64>, Vec<bool>, Format), Error> {
    let mut reader = asked.reader()?;
    let (mut block, mut pages, mut writes) = (Vec::new(), Vec::new(), Vec::new());
    while reader.read_block(&mut block)? {
        go_on(stop)?;
        pages.extend(block.iter().map(|request| request.page));
        writes.extend(block.iter().map(|request| request.write));
    }
    match pages.is_empty() {
        true => Err(reader.no_requests().into()),
        false => Ok((pages, writes, reader.format())),
    }
}

/// Holds an array of page numbers, as it lies in numpy's memory.
#[derive(FromPyObject)]
pub enum Pages<'py> {
    /// Holds `uint64`.
    U64(PyReadonlyArray1<'py, u64>),
    /// Holds `uint32`.
    U32(PyReadonlyArray1<'py, u32>),
    /// Holds `int64`, none below 0.
    I64(PyReadonlyArray1<'py, i64>),
}

/// Views the same array in a thread without Python's lock.
pub enum Seen<'a> {
    /// Holds `uint64`.
    U64(ArrayView1<'a, u64>),
    /// Holds `uint32`.
    U32(ArrayView1<'a, u32>),
    /// Holds `int64`, none below 0.
    I64(ArrayView1<'a, i64>),
}

impl Pages<'_> {
    /// Looks at the array where it lies.
    pub fn seen(&self) -> Seen<'_> {
        match self {
            Self::U64(array) => Seen::U64(array.as_array()),
            Self::U32(array) => Seen::U32(array.as_array()),
            Self::I64(array) => Seen::I64(array.as_array()),
        }
    }
}

impl Seen<'_> {
    /// Numbers the pages densely and hands them over in blocks; returns how many there are.
    pub fn dense(&self, stop: &Stop, take: &mut dyn FnMut(&[u32])) -> Result<u32, Error> {
        match self {
            Self::U64(pages) => dense(pages.iter().map(|&page| Ok(page)), stop, take),
            Self::U32(pages) => dense(pages.iter().map(|&page| Ok(page.into())), stop, take),
            Self::I64(pages) => dense(pages.iter().map(|&page| positive(page)), stop, take),
        }
    }
}

fn positive(page: i64) -> Result<u64, Error> {
    u64::try_from(page).map_err(|_| Error::Request(format!("pages: {page} is below 0")))
}

fn dense(
    mut pages: impl Iterator<Item = Result<u64, Error>>,
    stop: &Stop,
    take: &mut dyn FnMut(&[u32]),
) -> Result<u32, Error> {
    let mut numbering = Numbering::new();
    let mut block = Vec::with_capacity(BLOCK);
    loop {
        go_on(stop)?;
        block.clear();
        for page in pages.by_ref().take(BLOCK) {
            let number = numbering.number(page?);
            let many = |_| Error::Request("pages: more than 2^30 distinct ones".to_string());
            block.push(number.map_err(many)?);
        }
        match block.is_empty() {
            true if numbering.unique() == 0 => {
                return Err(Error::Request("pages: the array holds no request".to_string()));
            }
            true => return Ok(numbering.unique()),
            false => take(&block),
        }
    }
}

/// Reads sizes as people write them.
pub fn sizes(texts: &[String]) -> Result<Vec<Capacity>, Error> {
    let size = |text: &String| text.parse().map_err(|e| Error::Request(format!("{e}")));
    texts.iter().map(size).collect()
}

/// Returns the curve of a file: the document of `mglru trace mrc --format json`, with its knee.
#[pyfunction]
pub fn mrc_of_file(
    py: Python<'_>,
    path: PathBuf,
    format: Option<&str>,
    pages: bool,
    sizes: Vec<String>,
    sample: Option<u64>,
) -> PyResult<String> {
    interruptible(py, |stop| {
        let asked = Asked::new(path, format, pages)?;
        let (numbers, _, _) = columns(&asked, stop)?;
        curve(asked.name(), &Seen::U64((&numbers[..]).into()), &sizes, sample, stop)
    })
}

/// Computes the curve of an array of page numbers, which is not copied.
#[pyfunction]
pub fn mrc_of_pages(
    py: Python<'_>,
    pages: Pages<'_>,
    sizes: Vec<String>,
    sample: Option<u64>,
) -> PyResult<String> {
    let seen = pages.seen();
    interruptible(py, |stop| curve("array".to_string(), &seen, &sizes, sample, stop))
}

fn curve(
    name: String,
    pages: &Seen<'_>,
    asked: &[String],
    sample: Option<u64>,
    stop: &Stop,
) -> Result<String, Error> {
    if let Some(every) = sample.filter(|every| *every < SLICES as u64) {
        let problem = format!("sample: one page in {every}, at most one in {SLICES}");
        return Err(Error::Request(problem));
    }
    let asked = sizes(asked)?;
    let mut counting = Counting::new(sample);
    let unique = pages.dense(stop, &mut |block| counting.add(block))?;
    let curve: Curve = counting.curve(name, unique, &asked).map_err(Error::Request)?;
    let knee = serde_json::json!({ "curve": &curve, "knee": curve.knee() });
    Ok(render::json(&knee))
}

/// Writes dense page numbers to a temporary file, for replays that take files alone.
pub fn kept(ids: &[u32]) -> Result<tempfile::NamedTempFile, Error> {
    let file = tempfile::NamedTempFile::new();
    let file = file.map_err(|e| Error::io(&std::env::temp_dir(), e))?;
    let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
    std::fs::write(file.path(), bytes).map_err(|e| Error::io(Path::new(file.path()), e))?;
    Ok(file)
}
