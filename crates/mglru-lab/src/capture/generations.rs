//! Figures of the generation tables (`lru_gen`, `lru_gen_full` of debugfs), by group. Generations
//! are named by their rank, since sequence numbers of two machines have nothing in common.

use indexmap::IndexMap;
use mglru_guest::kernel_text::{self, Generation, MemcgGenerations};

/// A kind of pages, and how many of them a generation has.
type Kind = (&'static str, fn(&Generation) -> u64);
const KINDS: [Kind; 2] = [("anon", |g| g.anon), ("file", |g| g.file)];

/// Adds the figures of a table: per group `generations`, `max_seq`, `age_ms.oldest`, and for `anon`
/// and `file` pages in the `youngest` generation, the `oldest` one and all together; and by rank, 0
/// for the oldest, `age_ms.0`, `anon.0`, `file.0` and so on.
pub fn add(text: &str, values: &mut IndexMap<String, f64>) {
    for group in kernel_text::generations(text) {
        let part = kernel_text::group_part(text, &group.path).unwrap_or_default();
        of_group(&group, values);
        of_tiers(&group.path, part, values);
    }
}

fn of_group(group: &MemcgGenerations, values: &mut IndexMap<String, f64>) {
    let mut put = |name: &str, value: u64| {
        *values.entry(format!("lru_gen.{}.{name}", group.path)).or_insert(0.0) += value as f64;
    };
    for (at, node) in group.nodes.iter().enumerate() {
        let (Some(oldest), Some(youngest)) = (node.generations.first(), node.generations.last())
        else {
            continue;
        };
        if at == 0 {
            put("generations", node.generations.len() as u64);
            put("max_seq", youngest.seq);
            put("age_ms.oldest", oldest.age_ms);
        }
        for (rank, generation) in node.generations.iter().enumerate() {
            if at == 0 {
                put(&format!("age_ms.{rank}"), generation.age_ms);
            }
            KINDS
                .iter()
                .for_each(|(name, pages)| put(&format!("{name}.{rank}"), pages(generation)));
        }
        for (name, pages) in KINDS {
            put(&format!("{name}.youngest"), pages(youngest));
            put(&format!("{name}.oldest"), pages(oldest));
            put(&format!("{name}.all"), node.generations.iter().map(pages).sum());
        }
    }
}

/// A tier's line has its number, then for anonymous and for file pages what was refaulted, evicted
/// and protected: `0  12r  34e  5p  6r  7e  8p`. Sums over generations and nodes.
fn of_tiers(path: &str, text: &str, values: &mut IndexMap<String, f64>) {
    const FIGURES: [(char, &str); 3] = [('r', "refaulted"), ('e', "evicted"), ('p', "protected")];
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [tier, figures @ ..] = &words[..] else { continue };
        if figures.len() != 6 || tier.parse::<u8>().is_err() {
            continue;
        }
        for (at, word) in figures.iter().enumerate() {
            let kind = ["anon", "file"][at / 3];
            let (letter, name) = FIGURES[at % 3];
            let digits = word.strip_suffix(letter);
            let Some(count) = digits.and_then(|digits| digits.parse::<u64>().ok()) else {
                continue;
            };
            let name = format!("lru_gen.{path}.{kind}.tier{tier}.{name}");
            *values.entry(name).or_insert(0.0) += count as f64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generations_have_ranks_and_tiers_sums() {
        let text = concat!(
            "memcg     5 /job\n node     0\n",
            "          8       6124          1           2 \n",
            "           0      10r      20e       0p       3r       4e       5p\n",
            "           1       0r       0e       0p       1r       1e       7p\n",
            "          9        100         30         400 \n",
        );
        let mut values = IndexMap::new();
        add(text, &mut values);
        let of = |name: &str| values[&format!("lru_gen./job.{name}")];
        assert_eq!((of("generations"), of("max_seq"), of("age_ms.oldest")), (2.0, 9.0, 6124.0));
        assert_eq!((of("anon.youngest"), of("anon.oldest"), of("anon.all")), (30.0, 1.0, 31.0));
        assert_eq!((of("file.youngest"), of("file.all")), (400.0, 402.0));
        assert_eq!((of("anon.tier0.refaulted"), of("anon.tier0.evicted")), (10.0, 20.0));
        assert_eq!((of("file.tier1.protected"), of("file.tier0.refaulted")), (7.0, 3.0));
    }
}
