//! The texts the kernel reports in: `name value` lines, pressure, and the generations of lru_gen.

/// Returns the pairs of a text of `name value` lines (memory.stat, memory.events, vmstat).
pub fn pairs(text: &str) -> impl Iterator<Item = (&str, u64)> {
    text.lines().filter_map(|line| {
        let (name, value) = line.split_once(' ')?;
        Some((name, value.trim().parse().ok()?))
    })
}

/// Returns one value of such a text.
pub fn value(text: &str, name: &str) -> Option<u64> {
    pairs(text).find(|(known, _)| *known == name).map(|(_, value)| value)
}

/// Returns the microseconds of a pressure text's line (`some` or `full`).
pub fn stalled_us(text: &str, kind: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(kind))?;
    line.split_once("total=")?.1.trim().parse().ok()
}

/// Holds the generations of a group from the text of lru_gen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemcgGenerations {
    /// Holds the number that the debug commands take.
    pub id: u64,
    /// Holds the path below the root.
    pub path: String,
    /// Lists generations by node.
    pub nodes: Vec<NodeGenerations>,
}

/// Holds the generations of a group on a node, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeGenerations {
    /// Numbers the node.
    pub node: u32,
    /// Lists its generations.
    pub generations: Vec<Generation>,
}

/// Holds one generation, a line of lru_gen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Generation {
    /// Holds the sequence number.
    pub seq: u64,
    /// Holds the age, ms.
    pub age_ms: u64,
    /// Counts anonymous pages.
    pub anon: u64,
    /// Counts file pages.
    pub file: u64,
}

/// Reads the text of lru_gen (not that of lru_gen_full). Lines it does not know are passed over:
/// later kernels may add some.
pub fn generations(text: &str) -> Vec<MemcgGenerations> {
    let mut memcgs: Vec<MemcgGenerations> = Vec::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        match (&fields[..], memcgs.last_mut()) {
            (["memcg", id, path @ ..], _) => memcgs.push(MemcgGenerations {
                id: id.parse().unwrap_or(0),
                path: path.join(" "),
                nodes: Vec::new(),
            }),
            (["node", node], Some(memcg)) => {
                let node = node.parse().unwrap_or(0);
                memcg.nodes.push(NodeGenerations { node, generations: Vec::new() });
            }
            (fields, Some(memcg)) => {
                let line = generation(fields);
                memcg.nodes.last_mut().zip(line).into_iter().for_each(|(node, line)| {
                    node.generations.push(line);
                });
            }
            _ => {}
        }
    }
    memcgs
}

fn generation(fields: &[&str]) -> Option<Generation> {
    let [seq, age_ms, anon, file] = fields else { return None };
    Some(Generation {
        seq: seq.parse().ok()?,
        age_ms: age_ms.parse().ok()?,
        anon: pages(anon)?,
        file: pages(file)?,
    })
}

/// A size that is out of the type's window carries an `x`; one that is a moment below 0 a minus.
fn pages(word: &str) -> Option<u64> {
    let digits = word.trim_end_matches('x');
    if digits.starts_with('-') {
        return Some(0);
    }
    digits.parse().ok()
}

/// Returns the part of lru_gen's text that is about one group, without its first line.
pub fn group_part<'a>(text: &'a str, path: &str) -> Option<&'a str> {
    let is_head = |line: &str| {
        let mut fields = line.split_whitespace();
        fields.next() == Some("memcg") && fields.nth(1) == Some(path)
    };
    let mut at = 0;
    let mut start = None;
    for line in text.split_inclusive('\n') {
        match start {
            None if is_head(line) => start = Some(at + line.len()),
            Some(start) if line.starts_with("memcg") => return Some(&text[start..at]),
            _ => {}
        }
        at += line.len();
    }
    start.map(|start| &text[start..])
}

#[cfg(test)]
mod tests {
    use super::*;

    const LRU_GEN: &str = concat!(
        "memcg     1 /\n node     0\n",
        "          0        464          2           0 \n",
        "memcg     2 /job\n node     0\n",
        "          8       6124          0x          0 \n",
        "          9        100         -3        7332 \n",
        " node     1\n",
        "          0         10          5           6 \n",
    );

    #[test]
    fn named_values_are_found_and_others_passed_over() {
        let text = "pgscan 12\nodd line here\nallocstall_normal 0\npgsteal 7\n";
        assert_eq!(
            pairs(text).collect::<Vec<_>>(),
            [("pgscan", 12), ("allocstall_normal", 0), ("pgsteal", 7)]
        );
        assert_eq!((value(text, "pgsteal"), value(text, "pg")), (Some(7), None));
    }

    #[test]
    fn pressure_is_read_by_kind() {
        let text = "some avg10=0.00 avg60=1.52 avg300=0.33 total=2306574\nfull avg10=0.00 \
            avg60=0.00 avg300=0.00 total=17\n";
        assert_eq!(stalled_us(text, "some"), Some(2_306_574));
        assert_eq!(stalled_us(text, "full"), Some(17));
        assert_eq!(stalled_us("", "some"), None);
    }

    #[test]
    fn generations_are_read_by_group_and_node() {
        let memcgs = generations(LRU_GEN);
        let about: Vec<_> = memcgs.iter().map(|m| (m.id, m.path.as_str(), m.nodes.len())).collect();
        assert_eq!(about, [(1, "/", 1), (2, "/job", 2)]);
        let lines = &memcgs[1].nodes[0].generations;
        assert_eq!(lines[0], Generation { seq: 8, age_ms: 6124, anon: 0, file: 0 });
        assert_eq!(lines[1], Generation { seq: 9, age_ms: 100, anon: 0, file: 7332 });
    }

    #[test]
    fn a_group_is_cut_out_of_the_text() {
        let part = group_part(LRU_GEN, "/job").unwrap();
        assert!(part.starts_with(" node     0\n          8"), "{part}");
        assert!(group_part(LRU_GEN, "/").unwrap().ends_with("2           0 \n"));
        assert_eq!(group_part(LRU_GEN, "/jo"), None);
    }
}
