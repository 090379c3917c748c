//! The first process while a workload runs: it starts the workers, answers their requests, samples
//! the groups, and reports to the host. A worker that is killed is out; the others go on, as tasks
//! of a real machine would.

mod running;

use std::collections::{BTreeMap, VecDeque};
use std::os::unix::process::ExitStatusExt;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use mglru_guest::order::{Steps, Until, Worker, Workload};
use mglru_guest::report::{Done, Snapshot, Step};
use mglru_guest::{Order, Report};

use self::running::{Heard, Running, start_worker};
use crate::administer;
use crate::ask::{Ask, Message, Start};
use crate::counts;
use crate::events;
use crate::link::Link;
use crate::marker;
use crate::snapshot::Observer;
use crate::symbols;

/// The guest passes trace events on this often, where a run is traced.
const EVENTS_EVERY: Duration = Duration::from_millis(20);

/// A barrier: the barrier set that waits at it, and its number.
type Barrier = (Option<u32>, u32);

/// The run as a whole.
struct Coordinator<'a> {
    workers: Vec<Running>,
    heard: Receiver<Heard>,
    /// Heard while waiting for something else.
    later: VecDeque<Heard>,
    /// Tasks at each barrier of each barrier set, with their workers.
    barriers: BTreeMap<Barrier, Vec<(usize, u32)>>,
    /// The barrier set of each task.
    barrier_sets: Vec<Option<u32>>,
    observer: Observer,
    sample_every: Duration,
    next_sample: Instant,
    /// Says after which accesses the state is reported.
    steps: Steps,
    /// Trace events are recorded, or why they cannot be.
    recording: Option<Result<(), String>>,
    /// Says where the run ends early, if it does and has not come there.
    until: Option<Until>,
    /// Reads the trace events that are sent to the host as the work goes on.
    event_reader: Option<events::Reader>,
    link: &'a mut Link,
}

pub fn run(order: &Order, workload: &Workload, link: &mut Link) -> Result<(), String> {
    if order.until.is_some() {
        events::start()?;
    }
    let (sender, heard) = channel();
    let start = |(at, me): (usize, &Worker)| {
        let steps = order.steps.filter(|_| at == 0);
        // Accesses are counted in the first process; time and events are everybody's.
        let until = order.until.clone();
        let until = until.filter(|until| at == 0 || !matches!(until, Until::Accesses(_)));
        let start = Start { workload: workload.clone(), me: me.clone(), steps, until };
        start_worker(at, &start, sender.clone())
    };
    let workers = workload.workers.iter().enumerate().map(start).collect::<Result<_, _>>()?;
    let sample_every = Duration::from_millis(order.sample_ms.max(1));
    let mut run = Coordinator {
        workers,
        heard,
        later: VecDeque::new(),
        barriers: BTreeMap::new(),
        barrier_sets: workload.barrier_sets.clone(),
        observer: Observer::new(order),
        sample_every,
        next_sample: Instant::now() + sample_every,
        steps: order.steps.unwrap_or_default(),
        recording: None,
        until: order.until.clone(),
        event_reader: None,
        link,
    };
    run.await_ready()?;
    run.observer = Observer::new(order);
    let at = Box::new(run.observer.snapshot(Done::default()));
    run.link.say(&Report::Ready(at));
    if let Some(until) = &order.until {
        events::arm(until)?;
    }
    if order.trace_events {
        run.event_reader = Some(events::Reader::begin()?);
    }
    marker::start();
    run.send_all(&Message::Go);
    while run.workers.iter().any(|worker| !worker.left.is_empty()) {
        let heard = run.next();
        run.answer(heard)?;
    }
    run.finish()
}

impl Coordinator<'_> {
    fn await_ready(&mut self) -> Result<(), String> {
        for _ in 0..self.workers.len() {
            match self.next() {
                (_, Some(Ask::Ready)) => {}
                (_, Some(Ask::Failed { why })) => return Err(why),
                // A worker that is killed for want of memory is out before it began.
                (at, None) => self.gone(at)?,
                (at, _) => return Err(format!("worker {at} does not begin")),
            }
        }
        match self.workers.iter().all(|worker| worker.line.is_none()) {
            true => Err("every worker was killed before it began (kernel.memory)".to_owned()),
            false => Ok(()),
        }
    }

    fn send_all(&mut self, message: &Message) {
        self.workers.iter_mut().for_each(|worker| worker.say(message));
    }

    /// The next thing heard; samples are taken meanwhile.
    fn next(&mut self) -> Heard {
        match self.later.pop_front() {
            Some(heard) => heard,
            None => self.listen(),
        }
    }

    fn listen(&mut self) -> Heard {
        loop {
            let now = Instant::now();
            if now >= self.next_sample {
                let (at_us, groups) = (self.observer.at_us(), self.observer.samples());
                self.link.say(&Report::Sample { at_us, groups });
                self.next_sample = Instant::now() + self.sample_every;
            }
            self.send_events();
            let mut wait = self.next_sample.saturating_duration_since(now);
            if self.event_reader.is_some() {
                wait = wait.min(EVENTS_EVERY);
            }
            match self.heard.recv_timeout(wait) {
                Ok(heard) => return heard,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => unreachable!("`run` holds a sender"),
            }
        }
    }

    /// Sends trace events to the host before the kernel's buffer is full.
    fn send_events(&mut self) {
        let text = self.event_reader.as_mut().map_or_else(String::new, events::Reader::take);
        if !text.is_empty() {
            self.link.say(&Report::Events { text });
        }
    }

    fn answer(&mut self, (at, ask): Heard) -> Result<(), String> {
        match ask {
            Some(Ask::Mark { task, phase }) => {
                marker::stop();
                let done = self.counts();
                let snapshot = Box::new(self.observer.snapshot(done));
                self.link.say(&Report::Mark { phase, at: snapshot });
                marker::start();
                self.workers[at].say(&Message::GoOn { task });
            }
            Some(Ask::Step { task, access }) => {
                self.look(access);
                self.workers[at].say(&Message::GoOn { task });
            }
            Some(Ask::Stop { task, access }) => {
                self.stop(access)?;
                self.workers[at].say(&Message::GoOn { task });
            }
            Some(Ask::Barrier { task, id }) => {
                self.barriers.entry((self.barrier_set(task), id)).or_default().push((at, task));
                self.open_barriers();
            }
            Some(Ask::Administer { task, command }) => {
                let done = administer::carry_out(&command);
                self.link.say(&Report::Command(done));
                self.workers[at].say(&Message::GoOn { task });
            }
            Some(Ask::TaskDone { task }) => {
                self.workers[at].left.remove(&task);
                self.workers[at].busy.remove(&task);
                self.dismiss_if_done(at)?;
                self.open_barriers();
            }
            Some(Ask::Failed { why }) => return Err(why),
            Some(Ask::Measured(measured)) => self.workers[at].ended.measured = Some(measured),
            Some(Ask::Ready | Ask::Counted { .. }) => {}
            None => {
                self.gone(at)?;
                // The event was what ended it.
                if matches!(self.until, Some(Until::Event(_))) && events::are_over() {
                    self.stop(0)?;
                }
            }
        }
        Ok(())
    }

    /// Reports the whole state, once, while the worker that asked stands still. The host then ends
    /// the machine or lets it go on.
    fn stop(&mut self, access: u64) -> Result<(), String> {
        if self.until.take().is_none() {
            return Ok(());
        }
        // The report takes time of its own.
        let at_us = self.observer.at_us();
        let events = events::latest();
        let at = Snapshot { at_us, ..self.observer.snapshot(Done::default()) };
        let step = Step { access, at, pages: self.observer.pages(), events };
        self.link.say(&Report::Stopped { at: Box::new(step), text: symbols::text_address() });
        self.link.await_host()?;
        self.send_all(&Message::PassBy);
        Ok(())
    }

    fn look(&mut self, access: u64) {
        let events = match &self.recording {
            _ if !self.steps.closely => String::new(),
            Some(Ok(())) => events::take(),
            Some(Err(why)) => why.clone(),
            None => String::new(),
        };
        let reports_pages = self.steps.closely || self.steps.pages;
        let pages = if reports_pages { self.observer.pages() } else { Vec::new() };
        let step = Step { access, at: self.observer.state(), pages, events };
        self.link.say(&Report::Step(Box::new(step)));
        if self.steps.closely && self.recording.is_none() {
            self.recording = Some(events::start());
        }
    }

    /// Notes the end of a worker whose line is closed: it was killed, or it broke.
    fn gone(&mut self, at: usize) -> Result<(), String> {
        let worker = &mut self.workers[at];
        let status = worker.child.wait().map_err(|e| format!("worker {at}: {e}"))?;
        worker.line = None;
        worker.left.clear();
        worker.busy.clear();
        (worker.ended.status, worker.ended.signal) = (status.code(), status.signal());
        for waiting in self.barriers.values_mut() {
            waiting.retain(|(worker, _)| *worker != at);
        }
        self.open_barriers();
        match status.code() {
            Some(0) | None => Ok(()),
            Some(code) => Err(format!("worker {at} ended with status {code}; see the console")),
        }
    }

    /// Ends a process whose tasks have all ended while others go on, as a program does: its memory
    /// is given back. Asks for its counts first.
    fn dismiss_if_done(&mut self, at: usize) -> Result<(), String> {
        let others = self.workers.iter().any(|worker| !worker.left.is_empty());
        if !self.workers[at].busy.is_empty() || !others {
            return Ok(());
        }
        let kernel = counts::of_process(self.workers[at].child.id());
        self.workers[at].say(&Message::Count);
        self.workers[at].say(&Message::Finish);
        while self.workers[at].line.is_some() {
            match self.listen() {
                (from, Some(Ask::Counted { ops, reads, writes })) if from == at => {
                    self.workers[at].counted = Done { ops, reads, writes, ..kernel };
                }
                (from, Some(Ask::Measured(measured))) if from == at => {
                    self.workers[at].ended.measured = Some(measured);
                }
                (from, None) if from == at => self.gone(at)?,
                heard => self.later.push_back(heard),
            }
        }
        Ok(())
    }

    fn barrier_set(&self, task: u32) -> Option<u32> {
        self.barrier_sets.get(task as usize).copied().flatten()
    }

    /// Opens each barrier at which every task of a barrier set that has not ended stands.
    fn open_barriers(&mut self) {
        let mut left: BTreeMap<Option<u32>, usize> = BTreeMap::new();
        for task in self.workers.iter().flat_map(|worker| &worker.busy) {
            *left.entry(self.barrier_set(*task)).or_default() += 1;
        }
        let of = |barrier_set: &Option<u32>| left.get(barrier_set).copied().unwrap_or(0);
        let full: Vec<Barrier> = self
            .barriers
            .iter()
            .filter(|((barrier_set, _), waiting)| {
                !waiting.is_empty() && waiting.len() >= of(barrier_set)
            })
            .map(|(id, _)| *id)
            .collect();
        for id in full {
            for (at, task) in self.barriers.remove(&id).unwrap_or_default() {
                self.workers[at].say(&Message::GoOn { task });
            }
        }
    }

    /// Sums the work of all workers so far; one that is gone counts by its last report.
    fn counts(&mut self) -> Done {
        self.send_all(&Message::Count);
        let alive = self.workers.iter().filter(|worker| worker.line.is_some()).count();
        let mut answered = 0;
        while answered < alive {
            match self.listen() {
                (at, Some(Ask::Counted { ops, reads, writes })) => {
                    let kernel = counts::of_process(self.workers[at].child.id());
                    self.workers[at].counted = Done { ops, reads, writes, ..kernel };
                    answered += 1;
                }
                heard => {
                    answered += usize::from(heard.1.is_none());
                    self.later.push_back(heard);
                }
            }
        }
        self.workers.iter().fold(Done::default(), |sum, worker| sum.plus(worker.counted))
    }

    fn finish(mut self) -> Result<(), String> {
        marker::stop();
        let done = self.counts();
        let at = Box::new(self.observer.snapshot(done));
        self.send_all(&Message::Finish);
        while self.workers.iter().any(|worker| worker.line.is_some()) {
            match self.next() {
                (at, Some(Ask::Measured(measured))) => {
                    self.workers[at].ended.measured = Some(measured);
                }
                (at, None) => self.gone(at)?,
                _ => {}
            }
        }
        self.send_events();
        let workers = self.workers.into_iter().map(|worker| worker.ended).collect();
        self.link.say(&Report::Over { at, workers });
        Ok(())
    }
}
