//! Draws running pagers' groups on the terminal, and the generations of one of them as bars.

use std::time::{Duration, Instant};

use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Stylize;
use ratatui::text::Line;
use ratatui::widgets::{Block, Paragraph, Row as Cells, Table};

use super::super::Answer;
use super::super::bars::{self, Bar};
use super::super::terminal::{Input, Screen};
use super::Watch;
use mglru_live::steer::top::{HEAD, Row};

const KEYS: &str = "up/down group  space look now  q quit";

/// Columns of the table: all but the generations, which are drawn.
const SHOWN: usize = HEAD.len() - 1;

/// Shows the table until somebody has seen enough.
pub(super) fn show(watch: &mut Watch<'_>) -> Answer {
    let mut screen = Screen::open()?;
    let interval = Duration::from_secs_f64(watch.args.interval);
    let mut chosen = 0;
    loop {
        let rows = watch.look()?;
        let next = Instant::now() + interval;
        loop {
            chosen = chosen.min(rows.len().saturating_sub(1));
            screen.draw(|frame| draw(frame, &rows, chosen))?;
            match screen.input(next)? {
                Input::End | Input::Key(KeyCode::Char('q') | KeyCode::Esc) => {
                    return Ok((String::new(), 0));
                }
                Input::Nothing | Input::Key(KeyCode::Char(' ')) => break,
                Input::Key(KeyCode::Up | KeyCode::BackTab) => chosen = chosen.saturating_sub(1),
                Input::Key(KeyCode::Down | KeyCode::Tab) => chosen += 1,
                Input::Key(_) | Input::Resized => {}
            }
        }
    }
}

fn draw(frame: &mut Frame<'_>, rows: &[Row], chosen: usize) {
    let tall = rows.len().min(usize::from(frame.area().height / 2)) as u16;
    let parts = [Constraint::Length(tall + 1), Constraint::Fill(1), Constraint::Length(1)];
    let [table, lists, foot] = Layout::vertical(parts).areas(frame.area());
    draw_table(frame, table, rows, chosen);
    if let Some(row) = rows.get(chosen) {
        draw_lists(frame, lists, row);
    }
    frame.render_widget(Line::from(KEYS).dim(), foot);
}

fn draw_table(frame: &mut Frame<'_>, area: Rect, rows: &[Row], chosen: usize) {
    let cells: Vec<Vec<String>> = rows.iter().map(|row| row.cells()[..SHOWN].to_vec()).collect();
    let width = |at: usize| {
        let all = cells.iter().map(|row| row[at].chars().count());
        Constraint::Length(all.chain([HEAD[at].len()]).max().unwrap_or(0) as u16)
    };
    let widths: Vec<Constraint> = (0..SHOWN).map(width).collect();
    let head = Cells::new(HEAD[..SHOWN].to_vec()).bold();
    let table = Table::new(cells.into_iter().map(Cells::new), widths).header(head);
    bars::choose(frame, area, table, chosen);
}

fn draw_lists(frame: &mut Frame<'_>, area: Rect, row: &Row) {
    let title = format!("Generations of {} {}, pages: anon █, file ▒", row.program, row.group);
    let block = Block::bordered().title(title);
    let bar = |generation: &mglru_live::steer::sample::Generation| Bar {
        name: format!("{:>5}", generation.seq),
        pages: [generation.anon, generation.file],
    };
    let bars: Vec<Bar> = row.generations.iter().rev().map(bar).collect();
    let lines = bars::lines(&bars, usize::from(block.inner(area).width));
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

#[cfg(test)]
mod tests {
    use super::*;
    use mglru_live::steer::sample::{Generation, Sample};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn row(group: &str) -> Row {
        let generations = vec![
            Generation { seq: 3, anon: 10, file: 5 },
            Generation { seq: 4, anon: 20, file: 0 },
        ];
        let sample =
            Sample { group: group.into(), current: 1 << 20, generations, ..Sample::default() };
        Row::new(Some(7), "redis", &sample, &sample, 1.0)
    }

    fn drawn(rows: &[Row], chosen: usize, size: (u16, u16)) -> String {
        let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
        terminal.draw(|frame| draw(frame, rows, chosen)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn the_chosen_group_has_its_generations_drawn() {
        let text = drawn(&[row("/"), row("/b")], 1, (100, 12));
        assert!(text.contains("Generations of redis /b"), "{text}");
        assert!(text.contains("█ 20 + 0") && text.contains("▒ 10 + 5"), "{text}");
        assert!(text.contains("7   redis   /b    1.0M"), "{text}");
    }

    #[test]
    fn nothing_and_no_room_are_drawn_too() {
        drawn(&[], 0, (80, 24));
        drawn(&[row("/"), row("/b")], 1, (3, 2));
    }
}
