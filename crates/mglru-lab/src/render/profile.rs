//! A kernel's instructions by function: as a table, as lines for other programs, as a picture.

use minijinja::{Environment, Value, context};

use super::{count, number, table};
use crate::profile::{Per, Row, Side, Table};

/// Lists colours of sides, distinct on light and dark ground.
const COLOURS: [&str; 6] = ["#4c78a8", "#f58518", "#54a24b", "#e45756", "#b279a2", "#9d755d"];
/// Columns of the picture.
const WIDTH: usize = 960;
/// Where bars begin; names stand before it.
const LEFT: usize = 300;
/// The longest bar; its figure stands behind it.
const LONGEST: f64 = 570.0;
/// A bar, and the room it has.
const THICK: usize = 10;
const BAR: usize = 12;
/// Room between functions.
const GAP: usize = 6;

/// Says what is compared, then a row for each function.
pub fn profile_table(table: &Table) -> String {
    let mut out = format!("{}\n", unit(table));
    for side in &table.sides {
        let Side { name, kernel, runs, reclaimed, scanned, .. } = side;
        let pages = format!("{reclaimed} pages reclaimed of {scanned} scanned");
        out += &format!("{name}: kernel {kernel}, {}, {pages}\n", count(*runs, "run", "runs"));
    }
    let mut head = vec!["function".to_string(), table.sides[0].name.clone()];
    for side in &table.sides[1..] {
        head.extend([side.name.clone(), "difference".to_string()]);
    }
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    out + &table::figures(&head, table.rows.iter().map(cells))
}

fn unit(table: &Table) -> &'static str {
    match table.per {
        Per::Page => "instructions for each page reclaimed",
        Per::Scanned => "instructions for each page scanned",
        Per::Operation => "instructions for each operation",
        Per::Run => "instructions for each run",
    }
}

fn cells(row: &Row) -> Vec<String> {
    let mut cells = vec![row.function.clone(), number(row.figures[0])];
    for side in 1..row.figures.len() {
        let difference = row.difference(side);
        let sign = if difference > 0.0 { "+" } else { "" };
        cells.extend([number(row.figures[side]), format!("{sign}{}", number(difference))]);
    }
    cells
}

/// Writes lines of `side;kernel;function count`, as programs that draw flame graphs read them.
pub fn collapsed(table: &Table) -> String {
    let mut out = String::new();
    for (at, side) in table.sides.iter().enumerate() {
        out += &format!("{};user {}\n", side.name, side.user);
        for row in table.functions().iter().filter(|row| row.instructions[at] > 0) {
            let function = row.function.replace(' ', "_");
            out += &format!("{};kernel;{function} {}\n", side.name, row.instructions[at]);
        }
    }
    out
}

/// Draws a picture of the functions, a bar for each side.
pub fn profile_picture(table: &Table) -> String {
    let rows = table.functions();
    let most = rows.iter().flat_map(|row| &row.figures).fold(f64::MIN_POSITIVE, |a, b| a.max(*b));
    let top = 40 + 16 * table.sides.len();
    let step = BAR * table.sides.len() + GAP;
    let colour = |side: usize| COLOURS[side % COLOURS.len()];
    let bar = |y: usize, side: usize, figure: f64| {
        let width = (figure / most * LONGEST).round() as usize;
        let (name, figure) = (&table.sides[side].name, number(figure));
        context! { y => y + BAR * side, width, colour => colour(side), side => name, figure }
    };
    let drawn = rows.iter().enumerate().map(|(at, row)| {
        let y = top + at * step;
        let bars = row.figures.iter().enumerate().map(|(side, figure)| bar(y, side, *figure));
        let bars: Vec<Value> = bars.collect();
        context! { name => &row.function, y => y + step / 2 + 2, bars }
    });
    let sides = table.sides.iter().enumerate().map(|(at, side)| {
        let name = format!("{} (kernel {})", side.name, side.kernel);
        context! { name, y => 34 + 16 * at, colour => colour(at) }
    });
    let mut environment = Environment::new();
    // The name says to the engine which characters to escape.
    environment.add_template("profile.xml", include_str!("profile.svg")).expect("it is fixed");
    let template = environment.get_template("profile.xml").expect("it was added");
    let page = context! {
        title => unit(table), width => WIDTH, height => top + rows.len() * step + 8,
        left => LEFT, top, thick => THICK,
        sides => sides.collect::<Vec<_>>(), rows => drawn.collect::<Vec<_>>(),
    };
    template.render(page).expect("every value is given")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::table_example;

    #[test]
    fn a_table_says_what_it_compares() {
        let mut table = table_example();
        table.cut(2);
        insta::assert_snapshot!(profile_table(&table), @r"
        instructions for each page reclaimed
        classic: kernel 6.12, 1 run, 10 pages reclaimed of 20 scanned
        k6.12: kernel 6.12, 1 run, 20 pages reclaimed of 40 scanned
        | function    | classic | k6.12 | difference |
        |-------------|---------|-------|------------|
        | user, all   |       5 |     5 |          0 |
        | kernel, all |     135 |   130 |         -5 |
        | shrink      |     100 |    50 |        -50 |
        | look        |       0 |    40 |        +40 |
        ");
    }

    #[test]
    fn lines_for_other_programs_hold_whole_counts() {
        let text = collapsed(&table_example());
        assert!(text.starts_with("classic;user 50\nclassic;kernel;shrink 1000\n"), "{text}");
        assert!(text.contains("k6.12;kernel;look 800\n") && !text.contains("classic;kernel;look"));
    }

    #[test]
    fn a_picture_has_a_bar_for_each_side_and_stands_alone() {
        let mut sides = table_example().sides;
        sides[1].name = "a<b".to_string();
        let picture = profile_picture(&Table::new(sides, Per::Page));
        assert_eq!(picture.matches("<rect x=\"300\"").count(), 8, "{picture}");
        assert!(picture.contains("width=\"570\"") && picture.contains("a&lt;b"), "{picture}");
        assert_eq!(picture.matches("http").count(), 1, "the name space alone: {picture}");
    }
}
