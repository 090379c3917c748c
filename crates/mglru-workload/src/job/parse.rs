//! From a job's text to a [`Job`]; whatever is not exactly understood is an error.

use crate::op::Advice;

use super::command::{command, setting};
use super::line::{JobError, Line, Result};
use super::stream::{Pattern, StreamSpec};
use super::{Access, Job, JobRegion, Step};

const MAX_PAGES: u64 = u32::MAX as u64;
/// More ranks than this could overflow the 64-bit sum of a zipf table's weights.
const MAX_ZIPF_PAGES: u64 = (1 << 24) - 1;
const MAX_THETA: u64 = 10_000_000;

pub(super) fn parse(text: &str) -> Result<Job> {
    let mut job = Job {
        seed: 1,
        settings: Vec::new(),
        regions: Vec::new(),
        streams: Vec::new(),
        steps: Vec::new(),
        pin: None,
        tlb_flush_every: None,
    };
    for (number, text) in (1..).zip(text.lines()) {
        if let Some(line) = Line::split(number, text) {
            parse_line(&mut job, &line)?;
        }
    }
    if job.ops() == 0 {
        let (key, reason) = ("phase".to_owned(), "the job has none".to_owned());
        return Err(JobError { line: 0, key, reason });
    }
    Ok(job)
}

fn parse_line(job: &mut Job, line: &Line) -> Result<()> {
    match line.verb {
        "seed" => job.seed = single(line, u64::MAX)?,
        "set" => job.settings.push(before_start(job, line).and_then(|()| setting(line))?),
        "pin" => job.pin = Some(single(line, MAX_PAGES)? as u32),
        "tlbflush" => job.tlb_flush_every = Some(single(line, u64::MAX)?),
        "region" => job.regions.push(region(line)?),
        "stream" => job.streams.push(stream(job, line)?),
        "phase" => job.steps.push(phase(job, line)?),
        verb => match command(line)? {
            Some(op) => job.steps.push(Step::Command { name: verb.to_owned(), op }),
            None => return Err(line.error(verb, "no such statement")),
        },
    }
    Ok(())
}

fn single(line: &Line, max: u64) -> Result<u64> {
    line.expect(&["NUMBER"], 0, &[])?;
    line.word_number(0, line.verb, max)
}

fn before_start(job: &Job, line: &Line) -> Result<()> {
    if job.steps.is_empty() {
        return Ok(());
    }
    Err(line.error("set", "must stand before the first step; use `cgset`"))
}

fn region(line: &Line) -> Result<JobRegion> {
    line.expect(&[], 0, &["kind", "path", "pages", "advice"])?;
    let access = match line.need("kind")? {
        "mmap" => Access::Mmap,
        "pread" => Access::Pread,
        "anon" => Access::Anon,
        "shmem" => Access::Shmem,
        other => return Err(line.error("kind", format!("`{other}` is no kind of region"))),
    };
    let path = match (access, line.get("path")) {
        (Access::Mmap | Access::Pread, _) => line.need("path")?,
        (_, None) => "",
        (_, Some(_)) => return Err(line.error("path", "memory has none")),
    };
    let pages = line.need_number("pages", 1, MAX_PAGES)? as u32;
    Ok(JobRegion { access, path: path.to_owned(), pages, advice: advice(line)? })
}

fn advice(line: &Line) -> Result<Advice> {
    match line.get("advice") {
        None | Some("normal") => Ok(Advice::Normal),
        Some("random") => Ok(Advice::Random),
        Some("sequential") => Ok(Advice::Sequential),
        Some(other) => Err(line.error("advice", format!("`{other}` is no advice"))),
    }
}

fn stream(job: &Job, line: &Line) -> Result<StreamSpec> {
    line.expect(&[], 0, &["region", "gen", "n", "base", "theta", "scatter", "start", "wr"])?;
    let region = line.need_number("region", 0, MAX_PAGES)? as usize;
    if region >= job.regions.len() {
        return Err(line.error("region", format!("region {region} is not declared above")));
    }
    let base = line.need_number("base", 0, MAX_PAGES - 1)?;
    let n = line.need_number("n", 1, MAX_PAGES - base)?;
    let pattern = pattern(line, n)?;
    let write_per_mille = line.need_number("wr", 0, u64::MAX)?;
    Ok(StreamSpec { region, pattern, pages: n as u32, base: base as u32, write_per_mille })
}

fn pattern(line: &Line, n: u64) -> Result<Pattern> {
    let (pattern, others): (_, &[&str]) = match line.need("gen")? {
        "uniform" => (Pattern::Uniform, &["theta", "scatter", "start"]),
        "seq" | "loop" => {
            let start = line.number_or("start", 0, MAX_PAGES)? as u32;
            (Pattern::Sequential { start }, &["theta", "scatter"])
        }
        "zipf" => {
            line.number("n", &n.to_string(), 1, MAX_ZIPF_PAGES)?;
            let theta_micro = micro(line, "theta")?;
            let scatter = line.number_or("scatter", 0, u64::MAX)?;
            (Pattern::Zipf { theta_micro, scatter }, &["start"])
        }
        other => return Err(line.error("gen", format!("`{other}` is no generator"))),
    };
    match others.iter().find(|key| line.get(key).is_some()) {
        Some(key) => Err(line.error(key, "means nothing to this generator")),
        None => Ok(pattern),
    }
}

/// A decimal with at most six places, in millionths.
fn micro(line: &Line, key: &str) -> Result<u64> {
    let text = line.need(key)?;
    let (whole, places) = text.split_once('.').unwrap_or((text, "0"));
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !is_digits(whole) || !is_digits(places) || places.len() > 6 {
        return Err(line.error(key, format!("`{text}` is no number of at most 6 places")));
    }
    let digits = format!("{whole}{places:0<6}");
    line.number(key, &digits, 0, MAX_THETA)
        .map_err(|_| line.error(key, format!("{text}: must be from 0 to 10")))
}

fn phase(job: &Job, line: &Line) -> Result<Step> {
    line.expect(&["NAME"], 0, &["ops", "mix"])?;
    let ops = line.need_number("ops", 1, 1 << 48)?;
    let parts = line.need("mix")?.split(',');
    let mix = parts.map(|part| share(job, line, part)).collect::<Result<Vec<_>>>()?;
    if mix.iter().all(|&(_, weight)| weight == 0) {
        return Err(line.error("mix", "the weights sum to 0"));
    }
    Ok(Step::Phase { name: line.words[0].to_owned(), ops, mix })
}

fn share(job: &Job, line: &Line, part: &str) -> Result<(usize, u64)> {
    let Some((stream, weight)) = part.split_once(':') else {
        return Err(line.error("mix", format!("`{part}` is not STREAM:WEIGHT")));
    };
    let stream = line.number("mix", stream, 0, MAX_PAGES)? as usize;
    if stream >= job.streams.len() {
        return Err(line.error("mix", format!("stream {stream} is not declared above")));
    }
    Ok((stream, line.number("mix", weight, 0, MAX_PAGES)?))
}
