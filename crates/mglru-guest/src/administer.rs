//! An administrator's commands between phases, given from outside the groups.

use std::fs;
use std::io;
use std::time::Instant;

use mglru_guest::kernel_text::{MemcgGenerations, NodeGenerations, generations};
use mglru_guest::report::Command;

use crate::ask::Administer;
use crate::setup::group_dir;
use crate::snapshot::LRU_GEN;

/// Error of an operation on a group the kernel does not know.
const NO_ENTRY: i32 = -2;

/// Carries a command out; the outcome of one that the kernel refuses has its error.
pub fn carry_out(command: &Administer) -> Command {
    let start = Instant::now();
    let mut done = match command {
        Administer::Sync => {
            rustix::fs::sync();
            outcome("sync", Ok(()))
        }
        Administer::DropCaches => write("/proc/sys/vm/drop_caches", "3"),
        Administer::Write { path, value } => write(path, value),
        Administer::Reclaim { group, bytes, swappiness } => {
            let swappiness = swappiness.iter().map(|value| format!(" swappiness={value}"));
            let swappiness: String = swappiness.collect();
            write(&format!("{}/memory.reclaim", group_dir(group)), &format!("{bytes}{swappiness}"))
        }
        Administer::Remove { group } => {
            let dir = group_dir(group);
            outcome(&format!("rmdir {dir}"), fs::remove_dir(&dir))
        }
        Administer::Age { group, can_swap, force } => debug(group, |id, node| {
            let max_seq = node.generations.last()?.seq;
            let (can_swap, force) = (u8::from(*can_swap), u8::from(*force));
            Some(format!("+ {id} {} {max_seq} {can_swap} {force}", node.node))
        }),
        Administer::Evict { group, offset, swappiness, nr } => debug(group, |id, node| {
            let seq = node.generations.first()?.seq + u64::from(*offset);
            let nr = if *nr == u64::MAX { String::new() } else { format!(" {nr}") };
            Some(format!("- {id} {} {seq} {swappiness}{nr}", node.node))
        }),
    };
    done.took_us = start.elapsed().as_micros() as u64;
    done
}

fn write(path: &str, value: &str) -> Command {
    outcome(&format!("{value} > {path}"), fs::write(path, value))
}

/// Carries out a command for each node of the group; returns the first that is refused.
fn debug(group: &str, text: impl Fn(u64, &NodeGenerations) -> Option<String>) -> Command {
    let all = generations(&fs::read_to_string(LRU_GEN).unwrap_or_default());
    let Some(MemcgGenerations { id, nodes, .. }) = all.iter().find(|memcg| memcg.path == group)
    else {
        return Command { text: format!("{LRU_GEN}: no {group}"), rc: NO_ENTRY, took_us: 0 };
    };
    let lines = nodes.iter().filter_map(|node| text(*id, node));
    let commands: Vec<Command> =
        lines.map(|line| outcome(&line, fs::write(LRU_GEN, &line))).collect();
    let refused = commands.iter().position(|command| command.rc != 0).unwrap_or(0);
    commands.get(refused).cloned().unwrap_or(Command {
        text: format!("{LRU_GEN}: {group} has no node"),
        rc: NO_ENTRY,
        took_us: 0,
    })
}

fn outcome(text: &str, result: io::Result<()>) -> Command {
    let rc = result.err().map_or(0, |e| -e.raw_os_error().unwrap_or(1));
    Command { text: text.to_owned(), rc, took_us: 0 }
}
