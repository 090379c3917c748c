//! Draws sizes of lists as bars of two kinds of pages, distinguished by their pattern as well as by
//! their colour.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Table, TableState};

/// The sizes of one list or generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bar {
    /// Text before the bar; all of one picture are equally wide.
    pub(super) name: String,
    /// Pages: anon, file.
    pub(super) pages: [u64; 2],
}

/// Draws one bar a line, in `width` columns; all have the same scale.
pub(super) fn lines(bars: &[Bar], width: usize) -> Vec<Line<'static>> {
    let most = bars.iter().map(|bar| bar.pages[0] + bar.pages[1]).max().unwrap_or(0);
    let text = |bar: &Bar| format!(" {} + {}", bar.pages[0], bar.pages[1]);
    let beside = |bar: &Bar| bar.name.chars().count() + 1 + text(bar).chars().count();
    let room = width.saturating_sub(bars.iter().map(beside).max().unwrap_or(0));
    let line = |bar: &Bar| {
        let [anon, file] = bar.pages.map(|pages| length(pages, most, room));
        Line::from(vec![
            format!("{} ", bar.name).into(),
            "█".repeat(anon).fg(Color::Yellow),
            "▒".repeat(file).fg(Color::Blue),
            text(bar).into(),
        ])
    };
    bars.iter().map(line).collect()
}

/// Columns of a part; one for anything that is there.
fn length(pages: u64, most: u64, room: usize) -> usize {
    let exact = pages as u128 * room.saturating_sub(1) as u128 / u128::from(most.max(1));
    (exact as usize).max(usize::from(pages > 0 && room > 1))
}

/// Draws a table with one row highlighted, and scrolls it to where that row shows.
pub(super) fn choose(frame: &mut Frame<'_>, area: Rect, table: Table<'_>, chosen: usize) {
    let mut state = TableState::new().with_selected(chosen);
    let table = table.row_highlight_style(Style::new().reversed());
    frame.render_stateful_widget(table, area, &mut state);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(name: &str, pages: [u64; 2]) -> Bar {
        Bar { name: name.to_string(), pages }
    }

    #[test]
    fn bars_have_one_scale_and_what_is_there_shows() {
        let drawn = lines(&[bar("a", [80, 20]), bar("b", [0, 1]), bar("c", [0, 0])], 24);
        let text: Vec<String> = drawn.iter().map(Line::to_string).collect();
        assert_eq!(text, ["a ██████████▒▒ 80 + 20", "b ▒ 0 + 1", "c  0 + 0"]);
        assert!(text.iter().all(|line| line.chars().count() <= 24));
    }

    #[test]
    fn too_narrow_a_place_has_figures_alone() {
        assert_eq!(lines(&[bar("a", [80, 20])], 3)[0].to_string(), "a  80 + 20");
        assert!(lines(&[], 80).is_empty());
    }
}
