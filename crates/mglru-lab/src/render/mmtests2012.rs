//! The vmstat table that reports on page reclaim carried in 2012 (experiments §18.1): a column per
//! variant, a row per formula. A row whose counter a backend does not have says `n/a`, never 0.
//!
//! Counters are means over the seeds of a variant, whole; efficiencies and shares are cut off to
//! whole per cent, as they were.

use crate::record::Record;

/// Holds the averages of a variant's runs.
struct Column<'a> {
    name: &'a str,
    records: Vec<&'a Record>,
}

/// A row: its name, and how a column's cell comes about.
type Row = (&'static str, fn(&Column<'_>) -> Option<String>);

const ROWS: [Row; 38] = [
    ("Success pass 1 (%)", |c| c.whole("custom.success_pass1")),
    ("Success pass 2 (%)", |c| c.whole("custom.success_pass2")),
    ("Success while rested (%)", |c| c.whole("custom.success_rested")),
    ("Sys time (s)", |c| c.mean("system_us").map(|us| format!("{:.2}", us / 1e6))),
    ("User+sys time (s)", |_| None),
    ("Elapsed time (s)", |c| c.mean("virtual_s").map(|s| format!("{s:.2}"))),
    ("Page ins", |c| c.whole("pgpgin")),
    ("Page outs", |c| c.whole("pgpgout")),
    ("Swap ins", |c| c.whole("pswpin")),
    ("Swap outs", |c| c.whole("pswpout")),
    ("Direct pages scanned", |c| c.whole("pgscan_direct")),
    ("Kswapd pages scanned", |c| c.whole("pgscan_kswapd")),
    ("Kswapd pages reclaimed", |c| c.whole("pgsteal_kswapd")),
    ("Direct pages reclaimed", |c| c.whole("pgsteal_direct")),
    ("Kswapd efficiency", |c| c.efficiency("pgsteal_kswapd", "pgscan_kswapd")),
    ("Kswapd velocity", |c| c.velocity("pgscan_kswapd")),
    ("Direct efficiency", |c| c.efficiency("pgsteal_direct", "pgscan_direct")),
    ("Direct velocity", |c| c.velocity("pgscan_direct")),
    ("Percentage direct scans", |c| c.direct_share()),
    ("Page writes by reclaim", |c| c.whole("nr_vmscan_write")),
    ("Page writes file", |c| c.file_writes()),
    ("Page writes anon", |c| c.whole("pswpout")),
    ("Page reclaim immediate", |c| c.whole("nr_vmscan_immediate_reclaim")),
    ("Page rescued immediate", |c| c.whole("pgrescued")),
    ("Slabs scanned", |c| c.whole("slabs_scanned")),
    ("Direct inode steals", |c| c.whole("pginodesteal")),
    ("Kswapd inode steals", |c| c.whole("kswapd_inodesteal")),
    ("Kswapd skipped wait", |c| c.whole("kswapd_skip_congestion_wait")),
    ("THP fault alloc", |c| c.whole("thp_fault_alloc")),
    ("THP collapse alloc", |c| c.whole("thp_collapse_alloc")),
    ("THP splits", |c| c.whole("thp_split")),
    ("THP fault fallback", |c| c.whole("thp_fault_fallback")),
    ("THP collapse fail", |c| c.whole("thp_collapse_alloc_failed")),
    ("Compaction stalls", |c| c.whole("compact_stall")),
    ("Compaction success", |c| c.whole("compact_success")),
    ("Compaction failures", |c| c.whole("compact_fail")),
    ("Compaction pages moved", |c| c.whole("compact_pages_moved")),
    ("Compaction move failure", |c| c.whole("compact_pagemigrate_failed")),
];

/// Writes the table over all records, one column for each variant in the order they came.
pub fn mmtests2012(records: &[Record]) -> String {
    let columns = columns(records);
    let cell = |row: &Row, column: &Column| row.1(column).unwrap_or_else(|| "n/a".to_string());
    let cells = |row: &Row| columns.iter().map(|column| cell(row, column)).collect();
    let heads: Vec<String> = columns.iter().map(|c| c.name.to_string()).collect();
    let body: Vec<Vec<String>> = ROWS.iter().map(cells).collect();
    let width = |at: usize| {
        let all = body.iter().map(|cells| cells[at].len());
        all.chain([heads[at].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let first = ROWS.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let line = |name: &str, cells: &[String]| {
        let cells = cells.iter().zip(&widths).map(|(cell, width)| format!("  {cell:>width$}"));
        format!("{name:first$}{}\n", cells.collect::<String>())
    };
    let rows = ROWS.iter().zip(&body).map(|((name, _), cells)| line(name, cells));
    std::iter::once(line("", &heads)).chain(rows).collect()
}

fn columns(records: &[Record]) -> Vec<Column<'_>> {
    let mut columns: Vec<Column<'_>> = Vec::new();
    for record in records {
        match columns.iter_mut().find(|column| column.name == record.variant) {
            Some(column) => column.records.push(record),
            None => columns.push(Column { name: &record.variant, records: vec![record] }),
        }
    }
    columns
}

impl Column<'_> {
    /// Nothing when a run does not have it.
    fn mean(&self, metric: &str) -> Option<f64> {
        let figures: Option<Vec<f64>> = self.records.iter().map(|r| r.metric(metric)).collect();
        figures.map(|all| all.iter().sum::<f64>() / all.len() as f64)
    }

    fn count(&self, metric: &str) -> Option<i64> {
        self.mean(metric).map(|mean| mean.round() as i64)
    }

    fn whole(&self, metric: &str) -> Option<String> {
        self.count(metric).map(|n| n.to_string())
    }

    /// 100 % where nothing was scanned.
    fn efficiency(&self, reclaimed: &str, scanned: &str) -> Option<String> {
        let (reclaimed, scanned) = (self.count(reclaimed)?, self.count(scanned)?);
        let percent = if scanned == 0 { 100 } else { 100 * reclaimed / scanned };
        Some(format!("{percent}%"))
    }

    /// Pages scanned per second.
    fn velocity(&self, scanned: &str) -> Option<String> {
        let (scanned, elapsed) = (self.count(scanned)?, self.mean("virtual_s")?);
        (elapsed > 0.0).then(|| format!("{:.3}", scanned as f64 / elapsed))
    }

    /// 0 % where kswapd scanned nothing.
    fn direct_share(&self) -> Option<String> {
        let (direct, kswapd) = (self.count("pgscan_direct")?, self.count("pgscan_kswapd")?);
        let percent = if kswapd == 0 { 0 } else { 100 * direct / (direct + kswapd) };
        Some(format!("{percent}%"))
    }

    /// A difference, which may be negative.
    fn file_writes(&self) -> Option<String> {
        let (all, anon) = (self.count("nr_vmscan_write")?, self.count("pswpout")?);
        Some((all - anon).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::example;

    fn record(variant: &str, seconds: f64, counters: &[(&str, u64)]) -> Record {
        let mut record = example(variant, 1, 1.0);
        record.metrics.virtual_s = seconds;
        record.counters = counters.iter().map(|&(name, n)| (name.to_string(), n)).collect();
        record
    }

    /// The cells of a row.
    fn row(table: &str, name: &str) -> Vec<String> {
        let line = table.lines().find(|line| line.starts_with(name)).expect("a row of the table");
        line[name.len()..].split_whitespace().map(str::to_string).collect()
    }

    #[test]
    fn the_published_columns_come_out_of_their_own_counters() {
        let highalloc = [
            ("pgscan_kswapd", 26_658_682),
            ("pgsteal_kswapd", 2_248_583),
            ("pgscan_direct", 31_981),
            ("pgsteal_direct", 6_397),
            ("nr_vmscan_write", 6_530_481),
            ("pswpout", 76_903),
        ];
        let postmark = [
            ("pgscan_kswapd", 9_664_358),
            ("pgsteal_kswapd", 9_621_893),
            ("pgscan_direct", 334_395),
            ("pgsteal_direct", 334_395),
            ("nr_vmscan_write", 9_619),
            ("pswpout", 9_617),
        ];
        let records = [record("a", 1204.41, &highalloc), record("b", 1171.34, &postmark)];
        let table = mmtests2012(&records);
        assert_eq!(row(&table, "Kswapd efficiency"), ["8%", "99%"]);
        assert_eq!(row(&table, "Kswapd velocity"), ["22134.225", "8250.686"]);
        assert_eq!(row(&table, "Direct efficiency"), ["20%", "100%"]);
        assert_eq!(row(&table, "Direct velocity"), ["26.553", "285.481"]);
        assert_eq!(row(&table, "Percentage direct scans"), ["0%", "3%"]);
        assert_eq!(row(&table, "Page writes file"), ["6453578", "2"]);
        assert_eq!(row(&table, "Elapsed time (s)"), ["1204.41", "1171.34"]);
    }

    /// The checks that the specification gives in numbers (experiments §18.1).
    #[test]
    fn a_share_is_cut_off_to_whole_per_cent_and_a_velocity_to_three_places() {
        let column = [("pgscan_kswapd", 1000), ("pgsteal_kswapd", 89), ("pgscan_direct", 999)];
        let steals = [("pgsteal_direct", 998), ("system_us", 12_345_678)];
        let table = mmtests2012(&[record("a", 3.0, &[&column[..], &steals[..]].concat())]);
        assert_eq!(row(&table, "Kswapd efficiency"), ["8%"], "8.9 is no 9");
        assert_eq!(row(&table, "Direct efficiency"), ["99%"], "99.9 is no 100");
        assert_eq!(row(&table, "Percentage direct scans"), ["49%"]);
        assert_eq!(row(&table, "Kswapd velocity"), ["333.333"]);
        assert_eq!(row(&table, "Sys time (s)"), ["12.35"]);
        assert_eq!(row(&table, "User+sys time (s)"), ["n/a"]);
    }

    #[test]
    fn every_row_of_the_table_has_its_place() {
        let names = ROWS.map(|(name, _)| name);
        let of = |name: &str| names.iter().position(|n| *n == name).expect(name);
        for pair in [
            ["Page ins", "Page outs"],
            ["Swap ins", "Swap outs"],
            ["Kswapd pages scanned", "Kswapd pages reclaimed"],
            ["Page writes file", "Page writes anon"],
            ["Page reclaim immediate", "Page rescued immediate"],
            ["Direct inode steals", "Kswapd inode steals"],
            ["Compaction stalls", "Compaction success"],
        ] {
            assert_eq!(of(pair[0]) + 1, of(pair[1]), "{pair:?}");
        }
    }

    #[test]
    fn what_is_not_counted_is_not_zero() {
        let table = mmtests2012(&[record("a", 10.0, &[("pgpgin", 3)])]);
        assert_eq!(row(&table, "Page ins"), ["3"]);
        for name in ["Page outs", "Kswapd efficiency", "Page writes file", "THP splits"] {
            assert_eq!(row(&table, name), ["n/a"], "{name}");
        }
    }

    #[test]
    fn nothing_scanned_is_full_efficiency_and_writes_may_be_negative() {
        let idle = [("pgscan_kswapd", 0), ("pgsteal_kswapd", 0), ("pgscan_direct", 7)];
        let writes = [("nr_vmscan_write", 1), ("pswpout", 5)];
        let table = mmtests2012(&[record("a", 10.0, &[&idle[..], &writes[..]].concat())]);
        assert_eq!(row(&table, "Kswapd efficiency"), ["100%"]);
        assert_eq!(row(&table, "Percentage direct scans"), ["0%"]);
        assert_eq!(row(&table, "Page writes file"), ["-4"]);
    }

    #[test]
    fn seeds_are_averaged() {
        let pair = [record("a", 1.0, &[("pgpgin", 4)]), record("a", 1.0, &[("pgpgin", 7)])];
        assert_eq!(row(&mmtests2012(&pair), "Page ins"), ["6"]);
    }
}
