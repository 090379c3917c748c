//! Checks states that the table of generations may never show, on any kernel.

/// Most generations of a list.
const MOST: usize = 4;
/// Pages of a type above this are no pages: a counter that went below 0.
const WRAPPED: u64 = 1 << 52;
/// The types, in the order of their columns.
const TYPES: [&str; 2] = ["anon", "file"];

/// Finds what is wrong in a text of lru_gen, each in a line of its own.
///
/// # Errors
/// The text holds no generation: the kernel keeps none, or does not report them.
pub fn faults(text: &str) -> Result<Vec<String>, String> {
    let mut memcg = String::new();
    let mut tables: Vec<(String, Vec<Line>)> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["memcg", _, ref path @ ..] => memcg = path.join(" "),
            ["node", number] => {
                tables.push((format!("{memcg} node {number}"), Vec::new()));
            }
            _ => {
                let line = Line::read(&words);
                tables.last_mut().zip(line).into_iter().for_each(|((_, t), line)| t.push(line));
            }
        }
    }
    match tables.iter().all(|(_, lines)| lines.is_empty()) {
        true => Err("the kernel reported no generations".to_string()),
        false => Ok(tables.iter().flat_map(|(place, lines)| of_table(place, lines)).collect()),
    }
}

/// A generation.
struct Line {
    seq: u64,
    /// Pages by type, as they are written.
    sizes: [String; 2],
}

impl Line {
    /// Sequence number, age, sizes; other lines are none.
    fn read(words: &[&str]) -> Option<Self> {
        let [seq, _, anon, file] = words else { return None };
        Some(Self { seq: seq.parse().ok()?, sizes: [anon, file].map(|size| size.to_string()) })
    }

    /// Whether the generation is one of the type's: outside of its window its size has an `x`.
    fn has(&self, kind: usize) -> bool {
        !self.sizes[kind].ends_with('x')
    }
}

fn of_table(place: &str, lines: &[Line]) -> Vec<String> {
    let mut faults = Vec::new();
    if !(1..=MOST).contains(&lines.len()) {
        faults.push(format!("{place}: {} generations", lines.len()));
    }
    if let Some(pair) = lines.windows(2).find(|pair| pair[1].seq != pair[0].seq + 1) {
        faults.push(format!("{place}: generation {} after {}", pair[1].seq, pair[0].seq));
    }
    for (kind, name) in TYPES.iter().enumerate() {
        // The window of a type reaches from its oldest generation to the youngest of all.
        let min = lines.iter().position(|line| line.has(kind)).unwrap_or(lines.len());
        if lines[min..].iter().any(|line| !line.has(kind)) || min == lines.len() {
            faults.push(format!("{place}: min_seq of {name} is above max_seq"));
        }
        let wrong = lines.iter().find(|line| !is_size(&line.sizes[kind]));
        faults.extend(wrong.map(|line| {
            format!("{place}: generation {}: {} pages of {name}", line.seq, line.sizes[kind])
        }));
    }
    faults
}

fn is_size(word: &str) -> bool {
    word.trim_end_matches('x').parse::<u64>().is_ok_and(|pages| pages < WRAPPED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &str) -> Vec<String> {
        faults(&format!("memcg     2 /job\n node     0\n{rows}")).unwrap()
    }

    #[test]
    fn a_table_of_a_kernel_is_sound() {
        let rows = " 8 6124 0x 0 \n 9 100 3 7332 \n 10 5 0 1 \n";
        assert_eq!(table(rows), [""; 0]);
    }

    #[test]
    fn what_cannot_be_is_named() {
        let five = " 1 9 0 0\n 2 9 0 0\n 3 9 0 0\n 4 9 0 0\n 5 9 0 0\n";
        assert_eq!(table(five), ["/job node 0: 5 generations"]);
        assert_eq!(table(" 1 9 0 0\n 3 9 0 0\n"), ["/job node 0: generation 3 after 1"]);
        let below = table(" 1 9 0 -3\n 2 9 18446744073709551613 0\n");
        assert_eq!(
            below,
            [
                "/job node 0: generation 2: 18446744073709551613 pages of anon",
                "/job node 0: generation 1: -3 pages of file"
            ]
        );
        let above = table(" 1 9 0 0x\n 2 9 0 0x\n");
        assert_eq!(above, ["/job node 0: min_seq of file is above max_seq"]);
        assert_eq!(table(" 1 9 0 0\n 2 9 0x 0\n").len(), 1, "the window has a hole");
    }

    #[test]
    fn a_kernel_without_generations_is_not_judged() {
        assert!(faults("").is_err() && faults("memcg 1 /\n").is_err());
    }
}
