//! Reads what valgrind's `--tool=lackey --trace-mem=yes` prints: `I  04001090,3`,
//! ` L 1ffeffe7e0,8`, ` S …`, ` M …`.

use super::fields::hexadecimal;
use super::{Found, Parser};
use crate::trace::event::{Event, Head, Operation, TimeUnit};
use crate::trace::record::{PAGE_SHIFT, Run};

/// Counts instructions, which are the time; what modifies is a store.
#[derive(Default)]
pub(super) struct Lackey {
    instructions: u64,
}

impl Parser for Lackey {
    fn head(&self) -> Head {
        Head { page_shift: PAGE_SHIFT as u8, time: TimeUnit::Instruction, spaces: false }
    }

    fn line(&mut self, line: &[u8], found: &mut Found) -> Result<(), String> {
        const EXPECTED: &str = "I, L, S or M, an address in hexadecimal, a comma and a size";
        if line.starts_with(b"==") || line.starts_with(b"--") {
            return Ok(());
        }
        let (kind, rest) = line.trim_ascii().split_at_checked(1).ok_or(EXPECTED)?;
        let (address, size) = split(rest.trim_ascii()).ok_or(EXPECTED)?;
        let operation = match kind {
            b"I" => {
                self.instructions += 1;
                return Ok(());
            }
            b"L" => Operation::Load,
            b"S" | b"M" => Operation::Store,
            _ => return Err(EXPECTED.to_string()),
        };
        let run = Run::covering(address, 0, size.into(), false).ok_or("addresses below 2^64")?;
        let time = self.instructions;
        found.push((Event { time, operation, space: 0, page: run.first, nr: run.nr }, 1));
        Ok(())
    }
}

fn split(text: &[u8]) -> Option<(u64, u64)> {
    let comma = text.iter().position(|&b| b == b',')?;
    let size = super::fields::number(&text[comma + 1..])?;
    Some((hexadecimal(&text[..comma])?, size))
}
