//! Names of a kernel's functions by address.

use super::UNKNOWN;

/// Code further behind a name than this is of something else.
const LONGEST: u64 = 1 << 20;

/// Holds functions, by address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Symbols(Vec<(u64, String)>);

impl Symbols {
    /// Reads lines of a distance from the function before, in hexadecimal digits, and a name. What
    /// a compiler put behind a name, because it split or changed the function, is left out: the
    /// parts of a function count as one, and two kernels have the same names.
    pub fn parse(text: &str) -> Self {
        let mut address = 0_u64;
        let symbol = |line: &str| {
            let (distance, name) = line.split_once(' ')?;
            address = address.wrapping_add(u64::from_str_radix(distance, 16).ok()?);
            Some((address, plain(name)))
        };
        Self(text.lines().filter_map(symbol).collect())
    }

    /// Says whether no function is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names the function at an address.
    pub fn at(&self, address: u64) -> &str {
        let behind = self.0.partition_point(|(start, _)| *start <= address);
        let last = behind.checked_sub(1).map(|at| &self.0[at]);
        last.filter(|(start, _)| address - start < LONGEST).map_or(UNKNOWN, |(_, name)| name)
    }
}

/// `name.part.0` and `name.cold` are `name`; a module stays behind it.
fn plain(name: &str) -> String {
    let (name, module) = name.split_once('\t').unwrap_or((name, ""));
    let end = name.char_indices().skip(1).find(|(_, c)| *c == '.').map_or(name.len(), |(at, _)| at);
    match module.is_empty() {
        true => name[..end].to_string(),
        false => format!("{} {module}", &name[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_of_the_function_that_begins_before_it() {
        let symbols = Symbols::parse("ffffffff81000000 a.isra.0\n10 b\n3efffff0 c\t[m]\n");
        for (address, want) in [
            (0xffff_ffff_8100_0000, "a"),
            (0xffff_ffff_8100_000f, "a"),
            (0xffff_ffff_8100_0010, "b"),
            (0xffff_ffff_c000_0001, "c [m]"),
            (0xffff_ffff_b000_0000, UNKNOWN),
            (0x1000, UNKNOWN),
        ] {
            assert_eq!(symbols.at(address), want, "{address:x}");
        }
        assert!(Symbols::parse("").is_empty() && Symbols::parse("").at(9) == UNKNOWN);
    }

    #[test]
    fn names_lose_what_the_compiler_put_behind_them() {
        assert_eq!(plain("shrink_folio_list.constprop.0.cold"), "shrink_folio_list");
        assert_eq!(plain(".text"), ".text");
        assert_eq!(plain("null_queue_rq.part.0\t[null_blk]"), "null_queue_rq [null_blk]");
    }
}
