//! Sides set beside each other: a row for each function, those that differ most first.

use std::collections::BTreeSet;

use clap::ValueEnum;
use serde::Serialize;

use super::Side;

/// Chooses the divisor of instructions. Sides that reclaim very different numbers of pages for the
/// same work are better compared by operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Per {
    /// Counts per page that was reclaimed.
    Page,
    /// Counts per page that reclaim looked at.
    Scanned,
    /// Counts per operation of the workload.
    Operation,
    /// Counts per run.
    Run,
}

impl Per {
    /// How many of them a side has.
    fn of(self, side: &Side) -> u64 {
        match self {
            Self::Page => side.reclaimed,
            Self::Scanned => side.scanned,
            Self::Operation => side.operations,
            Self::Run => side.runs,
        }
    }
}

/// Sets sides beside each other, by function.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Table {
    /// Holds the divisor of the figures: a run, where a side has none of the asked-for unit.
    pub per: Per,
    /// Lists the sides; the first is the measure of the others.
    pub sides: Vec<Side>,
    /// Holds rows: code of programs and of the kernel, then its functions.
    pub rows: Vec<Row>,
}

/// Holds the figures of one function.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Names the function.
    pub function: String,
    /// Counts instructions, by side.
    pub instructions: Vec<u64>,
    /// Holds the same as figures that are compared.
    pub figures: Vec<f64>,
}

impl Row {
    /// Returns how far a side is from the first.
    pub fn difference(&self, side: usize) -> f64 {
        self.figures[side] - self.figures[0]
    }

    /// Returns the sort key of a row: the largest difference, or the figure of a lone side.
    fn weight(&self) -> f64 {
        let others = (1..self.figures.len()).map(|side| self.difference(side).abs());
        match self.figures.len() {
            1 => self.figures[0],
            _ => others.fold(0.0, f64::max),
        }
    }
}

impl Table {
    /// Sets sides beside each other.
    pub fn new(sides: Vec<Side>, per: Per) -> Self {
        let per = if sides.iter().all(|side| per.of(side) > 0) { per } else { Per::Run };
        let row = |function: &str, of: &dyn Fn(&Side) -> u64| {
            let instructions: Vec<u64> = sides.iter().map(of).collect();
            let figure = |(count, side): (&u64, &Side)| *count as f64 / per.of(side) as f64;
            let figures = instructions.iter().zip(&sides).map(figure).collect();
            Row { function: function.to_string(), instructions, figures }
        };
        let names: BTreeSet<&String> =
            sides.iter().flat_map(|side| side.functions.keys()).collect();
        let of = |name: &String| row(name, &|side| side.functions.get(name).copied().unwrap_or(0));
        let mut functions: Vec<Row> = names.into_iter().map(of).collect();
        functions.sort_by(|a, b| b.weight().total_cmp(&a.weight()));
        let both = [row("user, all", &|side| side.user), row("kernel, all", &|side| side.system)];
        let rows = both.into_iter().chain(functions).collect();
        Self { per, sides, rows }
    }

    /// Returns the rows of functions alone.
    pub fn functions(&self) -> &[Row] {
        &self.rows[self.rows.len().min(2)..]
    }

    /// Leaves the first functions.
    pub fn cut(&mut self, functions: usize) {
        self.rows.truncate(functions.saturating_add(2));
    }
}

#[cfg(test)]
pub(crate) fn example() -> Table {
    let side = |name: &str, reclaimed, functions: &[(&str, u64)]| Side {
        name: name.to_string(),
        kernel: "6.12".to_string(),
        runs: 1,
        reclaimed,
        scanned: 2 * reclaimed,
        operations: 5,
        user: 5 * reclaimed,
        system: functions.iter().map(|(_, n)| n).sum(),
        functions: functions.iter().map(|(name, n)| (name.to_string(), *n)).collect(),
    };
    let a = side("classic", 10, &[("shrink", 1000), ("walk", 300), ("same", 50)]);
    let b = side("k6.12", 20, &[("shrink", 1000), ("look", 800), ("walk", 700), ("same", 100)]);
    Table::new(vec![a, b], Per::Page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_differ_most_come_first() {
        let mut table = example();
        let names: Vec<&str> = table.functions().iter().map(|row| row.function.as_str()).collect();
        assert_eq!(names, ["shrink", "look", "walk", "same"]);
        let shrink = &table.functions()[0];
        assert_eq!((shrink.difference(1), &shrink.figures[..]), (-50.0, &[100.0, 50.0][..]));
        assert_eq!(table.rows[1].instructions, [1350, 2600]);
        table.cut(1);
        assert_eq!((table.rows.len(), table.functions().len()), (3, 1));
    }

    #[test]
    fn where_a_side_reclaims_nothing_counts_are_whole() {
        let mut sides = example().sides;
        sides[0].reclaimed = 0;
        let table = Table::new(sides, Per::Page);
        assert_eq!(table.per, Per::Run);
        assert_eq!(table.functions()[0].function, "look");
        let lone = Table::new(vec![example().sides.remove(0)], Per::Operation);
        assert_eq!(lone.functions()[0].function, "shrink");
        assert_eq!(lone.functions()[0].figures, [200.0]);
    }
}
