//! From a job's text to a [`Job`]; whatever is not exactly understood is an error.

use super::command::{command, setting};
use super::line::{JobError, Line, Result};
use super::statements::STATEMENTS;
use super::stream::{Pattern, StreamSpec};
use super::{Access, GROUP_NAME, Job, JobRegion, JobTask, Step};
use crate::op::{Advice, GroupId, TaskId};

const MAX_PAGES: u64 = u32::MAX as u64;
/// More ranks than this could overflow the 64-bit sum of a zipf table's weights.
const MAX_ZIPF_PAGES: u64 = (1 << 24) - 1;
const MAX_THETA: u64 = 10_000_000;
/// Tasks of a job at most.
const MAX_TASKS: usize = 4096;

/// A job as far as it is read.
pub(super) struct Parser {
    pub(super) job: Job,
    /// Names of streams; empty ones have none.
    streams: Vec<String>,
}

pub(super) fn parse(text: &str) -> Result<Job> {
    let mut parser = Parser::new();
    for (number, text) in (1..).zip(text.lines()) {
        if let Some(line) = Line::split(number, text) {
            parser.line(&line)?;
        }
    }
    if parser.job.ops() == 0 {
        let (key, reason) = ("phase".to_owned(), "the job has none".to_owned());
        return Err(JobError { line: 0, key, reason });
    }
    Ok(parser.job)
}

impl Parser {
    fn new() -> Self {
        let job = Job {
            seed: 1,
            settings: Vec::new(),
            groups: Vec::new(),
            tasks: Vec::new(),
            regions: Vec::new(),
            streams: Vec::new(),
            steps: Vec::new(),
            owners: Vec::new(),
            pin: None,
            tlb_flush_every: None,
        };
        Self { job, streams: Vec::new() }
    }

    fn line(&mut self, line: &Line) -> Result<()> {
        match line.verb {
            "seed" => self.job.seed = single(line, u64::MAX)?,
            "pin" => self.job.pin = Some(single(line, MAX_PAGES)? as u32),
            "tlbflush" => self.job.tlb_flush_every = Some(single(line, u64::MAX)?),
            "group" => self.add_group(line)?,
            "task" => self.add_task(line)?,
            _ => self.line_of_task(line)?,
        }
        Ok(())
    }

    /// A job that names no task has one.
    fn line_of_task(&mut self, line: &Line) -> Result<()> {
        if !STATEMENTS.iter().any(|(name, ..)| *name == line.verb) {
            let known: Vec<&str> = STATEMENTS.iter().map(|(name, ..)| *name).collect();
            return Err(line.unknown(line.verb, "statement", &known));
        }
        if self.job.tasks.is_empty() {
            let group = self.make_group(line, GROUP_NAME)?;
            self.job.tasks.push(JobTask { group, ..JobTask::default() });
        }
        match line.verb {
            "set" => {
                self.before_start(line)?;
                let setting = setting(self, line)?;
                self.job.settings.push(setting);
            }
            "region" => {
                let region = self.read_region(line)?;
                self.job.regions.push(region);
            }
            "stream" => {
                let (stream, name) = (self.read_stream(line)?, self.name(line)?);
                self.job.streams.push(stream);
                self.streams.push(name);
            }
            "phase" => {
                let phase = self.phase(line)?;
                self.push_step(phase);
            }
            verb => {
                let op = command(self, line)?.expect("the table of statements lists commands");
                self.push_step(Step::Command { name: verb.to_owned(), op });
            }
        }
        Ok(())
    }

    fn push_step(&mut self, step: Step) {
        self.job.steps.push(step);
        self.job.owners.push(self.task_id());
    }

    fn task_id(&self) -> TaskId {
        self.job.tasks.len() as TaskId - 1
    }

    /// The task that lines are about.
    pub(super) fn task(&self) -> &JobTask {
        self.job.tasks.last().expect("there is one before the first line of a task")
    }

    fn before_start(&self, line: &Line) -> Result<()> {
        match self.job.steps.is_empty() {
            true => Ok(()),
            false => Err(line.error("set", "must stand before the first step; use `cgset`")),
        }
    }

    fn add_group(&mut self, line: &Line) -> Result<()> {
        line.expect(&["PATH"], 0, &[])?;
        self.make_group(line, line.words[0]).map(drop)
    }

    /// Makes a group and those above it; `None` is the root.
    fn make_group(&mut self, line: &Line, path: &str) -> Result<Option<GroupId>> {
        if path == "/" {
            return Ok(None);
        }
        let named =
            path.strip_prefix('/').is_some_and(|rest| rest.split('/').all(|p| !p.is_empty()));
        if !named {
            return Err(line.error(path, "a group's path is such as /web or /web/cache"));
        }
        let ends = path.match_indices('/').map(|(at, _)| at).skip(1).chain([path.len()]);
        for end in ends {
            if !self.job.groups.iter().any(|known| *known == path[..end]) {
                self.job.groups.push(path[..end].to_owned());
            }
        }
        self.known_group(line, path)
    }

    /// A group of the job by its path; `None` is the root.
    pub(super) fn known_group(&self, line: &Line, path: &str) -> Result<Option<GroupId>> {
        if path == "/" {
            return Ok(None);
        }
        let at = self.job.groups.iter().position(|known| known == path);
        let known: Vec<&str> = self.job.groups.iter().map(String::as_str).collect();
        at.map(|at| Some(at as GroupId))
            .ok_or_else(|| line.unknown(path, "group declared above", &known))
    }

    /// The group that a line names, or the task's own; `None` is the root.
    pub(super) fn group(&self, line: &Line) -> Result<Option<GroupId>> {
        line.get("group").map_or(Ok(self.task().group), |path| self.known_group(line, path))
    }

    /// The same, for what the root does not have.
    pub(super) fn limited_group(&self, line: &Line) -> Result<GroupId> {
        let group = self.group(line)?;
        group.ok_or_else(|| line.error("group", format!("the root takes no `{}`", line.verb)))
    }

    fn add_task(&mut self, line: &Line) -> Result<()> {
        line.expect(&["NAME"], 0, &["group", "shares", "background"])?;
        let name = line.words[0];
        if self.job.tasks.iter().any(|task| task.name.is_empty()) {
            return Err(line.error("task", "must stand before everything that is a task's"));
        }
        if self.job.tasks.iter().any(|task| task.name == name) {
            return Err(line.error(name, "is a task's name already"));
        }
        if self.job.tasks.len() == MAX_TASKS {
            return Err(line.error("task", format!("a job has {MAX_TASKS} at most")));
        }
        let background = line.number_or("background", 0, 1)? == 1;
        let mut task = JobTask { name: name.to_owned(), background, ..JobTask::default() };
        (task.group, task.space) = match (line.get("shares"), line.get("group")) {
            (Some(_), Some(_)) => return Err(line.error("group", "is that of the task it shares")),
            (Some(other), None) => self.shared(line, other)?,
            (None, path) => {
                let space = self.job.tasks.iter().map(|task| task.space + 1).max().unwrap_or(0);
                (self.make_group(line, path.unwrap_or(GROUP_NAME))?, space)
            }
        };
        self.job.tasks.push(task);
        Ok(())
    }

    fn shared(&self, line: &Line, name: &str) -> Result<(Option<GroupId>, u32)> {
        let task = self.job.tasks.iter().find(|task| task.name == name);
        let known: Vec<&str> = self.job.tasks.iter().map(|task| task.name.as_str()).collect();
        let task = task.ok_or_else(|| line.unknown(name, "task declared above", &known))?;
        Ok((task.group, task.space))
    }

    /// The name that a region or stream is given: one that is no number and not given yet.
    fn name(&self, line: &Line) -> Result<String> {
        let Some(&name) = line.words.first() else { return Ok(String::new()) };
        if name.parse::<u64>().is_ok() {
            return Err(line.error(name, "a number is no name"));
        }
        let known = match line.verb {
            "region" => self.job.regions.iter().any(|region| region.name == name),
            _ => self.streams.iter().any(|stream| stream == name),
        };
        match known {
            true => Err(line.error(name, format!("is a {}'s name already", line.verb))),
            false => Ok(name.to_owned()),
        }
    }

    fn read_region(&self, line: &Line) -> Result<JobRegion> {
        line.expect(&["NAME"], 1, &["kind", "path", "pages", "advice", "exec", "mapped"])?;
        let access = match line.need("kind")? {
            "mmap" => Access::Mmap,
            "pread" => Access::Pread,
            "anon" => Access::Anon,
            "shmem" => Access::Shmem,
            other => {
                let problem = format!("`{other}` is no kind of region (mmap, pread, anon, shmem)");
                return Err(line.error("kind", problem));
            }
        };
        let path = match (access, line.get("path")) {
            (Access::Mmap | Access::Pread, _) => line.need("path")?,
            (_, None) => "",
            (_, Some(_)) => return Err(line.error("path", "memory has none")),
        };
        let of_mapping = ["exec", "mapped"].into_iter().find(|key| line.get(key).is_some());
        if let (Access::Pread, Some(key)) = (access, of_mapping) {
            return Err(line.error(key, "is for what is mapped"));
        }
        Ok(JobRegion {
            name: self.name(line)?,
            space: self.task().space,
            access,
            path: path.to_owned(),
            pages: line.need_number("pages", 1, MAX_PAGES)? as u32,
            advice: advice(line)?,
            exec: line.number_or("exec", 0, 1)? == 1,
            mapped: line.number_or("mapped", 1, 1)? == 1,
        })
    }

    /// A region of the task's own, by its number or name.
    pub(super) fn region(&self, line: &Line, word: &str) -> Result<usize> {
        let by_name = || self.job.regions.iter().position(|region| region.name == word);
        let at = word.parse().ok().or_else(by_name);
        let Some(region) = at.and_then(|at: usize| self.job.regions.get(at)) else {
            let key = if line.get("region").is_some() { "region" } else { word };
            return Err(line.error(key, format!("region {word} is not declared above")));
        };
        if region.space != self.task().space {
            return Err(line.error(word, "is another task's region"));
        }
        Ok(at.expect("it was found"))
    }

    fn read_stream(&self, line: &Line) -> Result<StreamSpec> {
        let keys = ["region", "gen", "n", "base", "theta", "scatter", "start", "wr"];
        line.expect(&["NAME"], 1, &keys)?;
        let region = self.region(line, line.need("region")?)?;
        let base = line.need_number("base", 0, MAX_PAGES - 1)?;
        let n = line.need_number("n", 1, MAX_PAGES - base)?;
        let pattern = pattern(line, n)?;
        let write_per_mille = line.need_number("wr", 0, 1000)?;
        let (task, pages, base) = (self.task_id(), n as u32, base as u32);
        Ok(StreamSpec { task, region, pattern, pages, base, write_per_mille })
    }

    fn phase(&self, line: &Line) -> Result<Step> {
        line.expect(&["NAME"], 0, &["ops", "mix"])?;
        let ops = line.need_number("ops", 1, 1 << 48)?;
        let parts = line.need("mix")?.split(',');
        let mix = parts.map(|part| self.share(line, part)).collect::<Result<Vec<_>>>()?;
        if mix.iter().all(|&(_, weight)| weight == 0) {
            return Err(line.error("mix", "the weights sum to 0"));
        }
        Ok(Step::Phase { name: line.words[0].to_owned(), ops, mix })
    }

    fn share(&self, line: &Line, part: &str) -> Result<(usize, u64)> {
        let Some((word, weight)) = part.split_once(':') else {
            return Err(line.error("mix", format!("`{part}` is not STREAM:WEIGHT")));
        };
        let by_name = || self.streams.iter().position(|stream| stream == word);
        let at = word.parse().ok().or_else(by_name);
        let Some(stream) = at.and_then(|at: usize| self.job.streams.get(at)) else {
            return Err(line.error("mix", format!("stream {word} is not declared above")));
        };
        if stream.task != self.task_id() {
            return Err(line.error("mix", format!("stream {word} is another task's")));
        }
        Ok((at.expect("it was found"), line.number("mix", weight, 0, MAX_PAGES)?))
    }
}

fn single(line: &Line, max: u64) -> Result<u64> {
    line.expect(&["NUMBER"], 0, &[])?;
    line.word_number(0, line.verb, max)
}

fn advice(line: &Line) -> Result<Advice> {
    match line.get("advice") {
        None | Some("normal") => Ok(Advice::Normal),
        Some("random") => Ok(Advice::Random),
        Some("sequential") => Ok(Advice::Sequential),
        Some(other) => {
            let problem = format!("`{other}` is no advice (normal, random, sequential)");
            Err(line.error("advice", problem))
        }
    }
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
        other => {
            let problem = format!("`{other}` is no generator (uniform, seq, loop, zipf)");
            return Err(line.error("gen", problem));
        }
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
