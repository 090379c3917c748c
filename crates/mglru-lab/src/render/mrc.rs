//! Miss-ratio curves: a table, a sentence, and a page with the picture.

use mglru_sim::spec::PAGE_SIZE;
use serde_json::json;

use super::picture::Picture;
use super::table::{finish, head, new};
use mglru_traces::tools::{Curve, Point};

/// Rows of the table: more would hide the knee.
const ROWS: usize = 16;

/// Writes the sentence, then the table.
pub fn mrc_table(curve: &Curve) -> String {
    format!("{}\n{}", mrc_sentence(curve), rows(curve))
}

/// Writes LRU at some sizes, then other policies.
fn rows(curve: &Curve) -> String {
    let with_band = curve.sampled.is_some();
    let names = ["pages", "size", "miss ratio"];
    let band = with_band.then_some("95 % interval");
    let names: Vec<&str> = names.into_iter().chain(band).collect();
    let mut table = new(head(false, "policy", &names));
    for point in shown(curve) {
        let band = point.band.map(|[low, high]| format!("[{low:.4}, {high:.4}]"));
        let cells = row("lru", point.size_pages, point.miss_ratio);
        table.add_row(cells.into_iter().chain(band));
    }
    for other in &curve.others {
        let band = with_band.then(|| "exact".to_string());
        table.add_row(
            row(&other.policy, other.size_pages, other.miss_ratio).into_iter().chain(band),
        );
    }
    finish(table)
}

/// Chooses the sizes that were asked for, else some of all.
fn shown(curve: &Curve) -> Vec<&Point> {
    if !curve.asked.is_empty() {
        return curve.lru.iter().filter(|point| curve.asked.contains(&point.size_pages)).collect();
    }
    let step = curve.lru.len().div_ceil(ROWS).max(1);
    let mut some: Vec<&Point> = curve.lru.iter().rev().step_by(step).collect();
    some.reverse();
    some
}

fn row(policy: &str, pages: u64, ratio: f64) -> [String; 4] {
    [policy.to_string(), pages.to_string(), bytes(pages), format!("{ratio:.4}")]
}

/// Says what a limit costs.
pub fn mrc_sentence(curve: &Curve) -> String {
    let start = format!(
        "{}: {} requests, {} distinct pages ({}).",
        curve.trace,
        curve.requests,
        curve.unique,
        bytes(curve.unique)
    );
    let Some(knee) = curve.knee() else {
        return format!("{start} No size looked at keeps misses beyond first uses under 1 %.\n");
    };
    let doubled = match knee.doubled {
        0 => "no size looked at doubles the misses".to_string(),
        pages if !knee.is_steep() => format!("{} doubles the misses", bytes(pages)),
        pages => format!("{} has {:.0} times as many misses", bytes(pages), knee.times),
    };
    format!(
        "{start} Under LRU, {} keeps misses beyond first uses under 1 % of the requests; \
         {doubled}.\n",
        bytes(knee.enough)
    )
}

/// Writes pages of 4 KiB as people say them.
fn bytes(pages: u64) -> String {
    let (mut size, mut unit) = ((pages * PAGE_SIZE) as f64 / 1024.0, "KiB");
    for next in ["MiB", "GiB", "TiB"] {
        if size < 1024.0 {
            break;
        }
        (size, unit) = (size / 1024.0, next);
    }
    let digits = if size < 10.0 { 1 } else { 0 };
    format!("{size:.digits$} {unit}")
}

/// Draws the curve on a page that needs no network.
pub fn mrc_page(curve: &Curve) -> String {
    let (trace, sentence) = (&curve.trace, mrc_sentence(curve));
    let facts = json!({ "curve": curve, "page_kib": PAGE_SIZE / 1024, "knee": curve.knee() });
    Picture {
        title: &format!("{trace}: misses by size"),
        heading: &format!("{trace}: misses by size of the cache"),
        sentence: &sentence,
        how: "Share of requests that miss, by size. The line is LRU, its shade the 95 % interval \
              of a sample; points are other policies. Upright lines: the two sizes of the \
              sentence.",
        about: "Miss ratio by size",
        table: &rows(curve),
        chart: include_str!("report/mrc.js"),
        facts,
    }
    .html()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(band: Option<[f64; 2]>) -> Curve {
        let point = |size_pages, miss_ratio| Point { size_pages, miss_ratio, band };
        Curve {
            trace: "a<b".into(),
            requests: 1_000_000,
            unique: 550_000,
            sampled: band.map(|_| 100),
            asked: Vec::new(),
            lru: vec![point(256, 1.2), point(367_002, 1.12), point(550_502, 0.555)],
            others: Vec::new(),
        }
    }

    #[test]
    fn the_sentence_names_both_sizes() {
        let said = mrc_sentence(&curve(None));
        assert!(said.contains("2.1 GiB keeps misses beyond first uses under 1 %"), "{said}");
        assert!(said.ends_with("1.4 GiB doubles the misses.\n"), "{said}");
    }

    #[test]
    fn a_sample_has_its_band_and_the_page_escapes_names() {
        let table = mrc_table(&curve(Some([0.1, 0.2])));
        assert_eq!(table.matches("[0.1000, 0.2000]").count(), 3, "{table}");
        let page = mrc_page(&curve(None));
        let own = &page[..page.find("<script>").unwrap()];
        assert!(own.contains("a&lt;b") && !own.contains("a<b"), "{own}");
    }
}
