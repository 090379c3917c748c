//! `mglru ctl`: a running pager's groups read, changed, mounted as a directory, scraped.

use std::net::TcpListener;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::Answer;
use super::advise::percent;
use super::ask::Format;
use super::capture::duration;
use mglru_error::Error;
use mglru_lab::render;
use mglru_live::steer::background::{self, Lifetime};
use mglru_live::steer::sample::{self, Sample};
use mglru_live::steer::{Choice, Running, cgroupfs, exposition, hold, http, refused, top, what_if};

/// Arguments of `mglru ctl`.
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    choice: Choice,
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// List the pagers that run, or a pager's groups and files
    Ls {
        /// List this group, such as / or /web; the pagers that run unless given
        group: Option<String>,
    },
    /// Print a file of a group, such as memory.stat, memory.pressure or lru_gen
    Get {
        /// Print this file
        file: String,
        /// Take the file of this group
        #[arg(default_value = "/")]
        group: String,
    },
    /// Write a file of a group, such as memory.max
    Set {
        /// Write this file
        file: String,
        /// Write this value: max, bytes with K, M or G, or what else the file takes
        #[arg(allow_hyphen_values = true)]
        value: String,
        /// Take the file of this group
        #[arg(default_value = "/")]
        group: String,
    },
    /// Make a group
    Mkdir {
        /// Make this group
        group: String,
    },
    /// Remove a group that holds nothing
    Rmdir {
        /// Remove this group
        group: String,
    },
    /// Evict some memory now
    Reclaim {
        /// Evict this much, bytes with K, M or G
        size: String,
        /// Evict from this group
        #[arg(default_value = "/")]
        group: String,
    },
    /// Tell how many major faults more memory would have spared
    WhatIf {
        /// Look at this group
        #[arg(default_value = "/")]
        group: String,
        /// Multiply the memory by each of these
        #[arg(long, value_delimiter = ',', default_value = "1.25,1.5,2,3,4", value_parser = factor)]
        factor: Vec<f64>,
        /// Print the result in this form
        #[arg(long, value_enum, default_value = "table")]
        format: Format,
    },
    /// Reclaim what nobody misses, step by step, until pressure reaches a bound; ^C ends it
    Hold {
        /// Reclaim from this group
        #[arg(default_value = "/")]
        group: String,
        /// Set the share of time that tasks may wait for memory, percent
        #[arg(long, value_name = "PERCENT", default_value = "0.1", value_parser = percent)]
        pressure: f64,
        /// Wait this long between two looks
        #[arg(long, value_name = "TIME", default_value = "6s", value_parser = duration)]
        interval: Duration,
        /// End after this time [default: when the program ends]
        #[arg(long = "for", value_name = "TIME", value_parser = duration)]
        at_most: Option<Duration>,
        #[command(flatten)]
        serving: Serving,
    },
    /// Show the groups as a directory like a cgroup's, until the program ends or ^C
    Mount {
        /// Mount them at this empty directory
        dir: PathBuf,
        #[command(flatten)]
        serving: Serving,
    },
    /// Serve Prometheus metrics at http://ADDRESS/metrics, until the program ends or ^C
    Metrics {
        /// Serve at this address and port, such as 127.0.0.1:9100
        address: String,
        #[command(flatten)]
        serving: Serving,
    },
}

#[derive(clap::Args)]
struct Serving {
    /// Go on in the background
    #[arg(long)]
    background: bool,
    /// Say so on stdout once it serves
    #[arg(long, hide = true)]
    announce: bool,
}

fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|f| (1.0..=1000.0).contains(f));
    factor.ok_or_else(|| "must be 1 to 1000".to_string())
}

pub(super) fn run(args: &Args) -> Answer {
    if let Command::Ls { group: None } = &args.command {
        return Ok((pagers(&args.choice)?, 0));
    }
    let pager = args.choice.one()?;
    let text = match &args.command {
        Command::Ls { group } => list(&pager, group.as_deref().unwrap_or("/"))?,
        Command::Get { file, group } => ask(&pager, &["get", group, file])?,
        Command::Set { file, value, group } => set(&pager, file, value, group)?,
        Command::Mkdir { group } => ask(&pager, &["mkdir", group])?,
        Command::Rmdir { group } => ask(&pager, &["rmdir", group])?,
        Command::Reclaim { size, group } => ask(&pager, &["set", group, "memory.reclaim", size])?,
        Command::WhatIf { group, factor, format } => what_if_text(&pager, group, factor, *format)?,
        Command::Hold { group, pressure, interval, at_most, serving } => {
            let held = Held { pager: &pager, group, bound: *pressure, interval: *interval };
            let pressure = pressure.to_string();
            let what = [group.as_str(), "--pressure", &pressure];
            serve(&pager, serving, "hold", &what, || match serving.announce {
                true => held.serve(),
                false => held.run(*at_most),
            })?
        }
        Command::Mount { dir, serving } => {
            let dir = std::path::absolute(dir).map_err(|error| Error::io(dir, error))?;
            serve(&pager, serving, "mount", &[&dir.display().to_string()], || {
                mount(&pager, &dir, serving)
            })?
        }
        Command::Metrics { address, serving } => {
            serve(&pager, serving, "metrics", &[address], || metrics(&pager, address, serving))?
        }
    };
    Ok((text, 0))
}

/// A request that is no more than that: what, the group, and the rest. A refusal names the group.
fn ask(pager: &Running, fields: &[&str]) -> Result<String, Error> {
    pager.call()?.ask(fields).map_err(|error| refused(fields[1], &error))
}

/// Writes a file. A limit that was not reached is set all the same, as in the kernel: that is said.
fn set(pager: &Running, file: &str, value: &str, group: &str) -> Result<String, Error> {
    let answer = ask(pager, &["set", group, file, value])?;
    if ["memory.max", "memory.high"].contains(&file) {
        let get = |file| ask(pager, &["get", group, file]).map(|text| text.trim().parse::<u64>());
        if let (Ok(limit), Ok(current)) = (get(file)?, get("memory.current")?)
            && current > limit
        {
            eprintln!("mglru: {group}: {file} is {limit}, but {current} bytes are still in use");
        }
    }
    Ok(answer)
}

fn pagers(choice: &Choice) -> Result<String, Error> {
    let running = match choice.is_named() {
        true => vec![choice.one()?],
        false => mglru_live::steer::running(),
    };
    let mut rows = Vec::new();
    for pager in &running {
        let read = pager.call().and_then(|mut client| {
            Sample::read(&mut client, "/").map_err(|e| refused(&pager.socket, &e))
        });
        let sample = match read {
            Ok(sample) => sample,
            // It ended meanwhile.
            Err(_) if !choice.is_named() => continue,
            Err(error) => return Err(error),
        };
        let pid = pager.pid.map_or_else(String::new, |pid| pid.to_string());
        let max = sample.max.map_or_else(|| "max".into(), top::bytes);
        let socket = pager.socket.display().to_string();
        rows.push(vec![pid, pager.name.clone(), top::bytes(sample.current), max, socket]);
    }
    Ok(render::plain(&["pid", "program", "current", "max", "socket"], rows))
}

fn list(pager: &Running, group: &str) -> Result<String, Error> {
    let children = pager.call()?.children(group).map_err(|error| refused(group, &error))?;
    let names = children.iter().map(|child| format!("{child}/\n"));
    let files = mglru_pager::files().iter().filter(|file| file.is_in(group));
    Ok(names.chain(files.map(|file| format!("{}\n", file.name))).collect())
}

fn what_if_text(
    pager: &Running,
    group: &str,
    factors: &[f64],
    format: Format,
) -> Result<String, Error> {
    let text = ask(pager, &["get", group, "mglru.distances"])?;
    let distances = sample::distances(&text);
    let savings: Vec<_> = factors.iter().map(|&f| what_if::saving(&distances, f)).collect();
    Ok(match format {
        Format::Json => render::json(&savings),
        Format::Table => render::what_if_table(group, &distances, &savings),
        Format::Html => render::what_if_page(group, &distances, &savings),
    })
}

/// Time between two tries to reach a pager whose program has yet to start.
const FIRST_LOOK: Duration = Duration::from_millis(100);

/// A group whose pressure is held under a bound.
struct Held<'a> {
    pager: &'a Running,
    group: &'a str,
    /// Percent of time.
    bound: f64,
    interval: Duration,
}

impl Held<'_> {
    /// Looks, reclaims and says so, until the time is over or the pager has ended.
    fn run(&self, at_most: Option<Duration>) -> Result<(), Error> {
        let before = self.look()?;
        self.go_on(before, at_most, |line| println!("{line}"));
        Ok(())
    }

    /// Does so in silence from when the pager answers, as long as the program lives.
    fn serve(&self) -> Result<(), Error> {
        lifetime(self.pager)?.on_end(|| std::process::exit(0))?;
        background::announce();
        let first = || {
            self.look().ok().or_else(|| {
                std::thread::sleep(FIRST_LOOK);
                None
            })
        };
        if let Some(before) = std::iter::repeat_with(first).flatten().next() {
            self.go_on(before, None, |_| ());
        }
        Ok(())
    }

    fn go_on(&self, mut before: Sample, at_most: Option<Duration>, say: impl Fn(String)) {
        let begun = Instant::now();
        let wait = |left: Duration| std::thread::sleep(self.interval.min(left));
        while let Some(left) = at_most.unwrap_or(Duration::MAX).checked_sub(begun.elapsed()) {
            let looked = Instant::now();
            wait(left);
            // The program's end is the end of this one.
            let Ok(now) = self.look() else { break };
            let us = now.some.total.saturating_sub(before.some.total) as f64;
            let stalled = us / looked.elapsed().as_secs_f64() / 1e4;
            let bytes = hold::step(now.current, stalled, self.bound);
            say(self.reclaim(now.current, stalled, bytes));
            before = now;
        }
    }

    fn look(&self) -> Result<Sample, Error> {
        Sample::read(&mut self.pager.call()?, self.group).map_err(|e| refused(self.group, &e))
    }

    /// Asks for what can go. That less went is no error: there may be nothing more.
    fn reclaim(&self, current: u64, stalled: f64, bytes: u64) -> String {
        let (in_use, asked) = (top::bytes(current), top::bytes(bytes));
        let line = format!("{}: {in_use} in use, {stalled:.2} % stalled", self.group);
        if bytes == 0 {
            return format!("{line}, nothing asked for");
        }
        match ask(self.pager, &["set", self.group, "memory.reclaim", &bytes.to_string()]) {
            Ok(_) => format!("{line}, {asked} reclaimed"),
            Err(_) => format!("{line}, {asked} asked for, less was found"),
        }
    }
}

/// In the background, or here.
fn serve(
    pager: &Running,
    serving: &Serving,
    command: &str,
    what: &[&str],
    here: impl FnOnce() -> Result<(), Error>,
) -> Result<String, Error> {
    if !serving.background {
        return here().map(|()| String::new());
    }
    let which = match pager.pid {
        Some(pid) => ["--pid".to_string(), pid.to_string()],
        None => ["--socket".to_string(), pager.socket.display().to_string()],
    };
    let head = ["ctl".to_string()].into_iter().chain(which);
    let tail = [&[command], what, &["--announce"]].concat();
    let tail = tail.into_iter().map(str::to_string);
    background::start(&head.chain(tail).collect::<Vec<_>>())?;
    Ok(String::new())
}

/// Finds the process of a pager: named, or asked of the pager itself.
fn lifetime(pager: &Running) -> Result<Lifetime, Error> {
    if let Some(pid) = pager.pid {
        return Lifetime::of(pid);
    }
    let text = ask(pager, &["get", "/", "cgroup.procs"])?;
    let bad = || Error::Request(format!("{}: no process", pager.socket.display()));
    Lifetime::of(text.trim().parse().map_err(|_| bad())?)
}

fn mount(pager: &Running, dir: &std::path::Path, serving: &Serving) -> Result<(), Error> {
    let lifetime = lifetime(pager)?;
    let failed = |error| Error::io(dir, error);
    let mut mounted = cgroupfs::mount(pager.socket.clone(), dir).map_err(failed)?;
    let unmounter = std::sync::Arc::new(std::sync::Mutex::new(mounted.unmount_callable()));
    lifetime.on_end(move || {
        // Somebody else may have unmounted it.
        let _ = unmounter.lock().map(|mut unmounter| unmounter.unmount());
    })?;
    if serving.announce {
        background::announce();
    }
    mounted.run().map_err(failed)
}

fn metrics(pager: &Running, address: &str, serving: &Serving) -> Result<(), Error> {
    let lifetime = lifetime(pager)?;
    let failed = |error| Error::Request(format!("{address}: {error}"));
    let listener = TcpListener::bind(address).map_err(failed)?;
    let at = listener.local_addr().map_err(failed)?;
    if !at.ip().to_canonical().is_loopback() {
        eprintln!("mglru: metrics are served to other hosts at http://{at}/metrics");
    }
    lifetime.on_end(|| std::process::exit(0))?;
    if serving.announce {
        background::announce();
    }
    let page = || {
        let mut client = pager.call().map_err(|error| error.to_string())?;
        let samples = Sample::read_all(&mut client, "/").map_err(|error| error.to_string())?;
        Ok(exposition::exposition(&samples))
    };
    http::serve(&listener, exposition::CONTENT_TYPE, page);
    Ok(())
}
