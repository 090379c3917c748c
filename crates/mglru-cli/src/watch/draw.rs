//! Draws a watched run: groups, the lists of one of them as bars, rates, and threads.

use mglru_sim::live::Look;
use mglru_sim::samples::{COLUMNS, GroupSample};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Gauge, Paragraph, Row, Table};

use super::history::History;
use super::pace::time;
use super::threads;
use crate::bars::{self, Bar};
use mglru_lab::watch::Break;
use mglru_live::steer::top::bytes;

/// All keys, in a line.
const KEYS: &str =
    "space pause  s event  m 1 ms  +/- f pace  tab group  b/x break  n to end  q quit";

/// Holds what is drawn.
pub(super) struct View<'a> {
    /// Name of the run.
    pub(super) run: &'a str,
    /// Whether it goes on, and how fast.
    pub(super) state: String,
    /// How much of it is done, where that is known.
    pub(super) share: Option<f64>,
    /// The machine now.
    pub(super) look: &'a Look,
    /// The machine before.
    pub(super) history: &'a History,
    /// Paths of groups.
    pub(super) groups: &'a [String],
    /// Limits of the sampled groups, bytes.
    pub(super) limits: Vec<Option<u64>>,
    /// The group whose lists are shown.
    pub(super) group: usize,
    /// Conditions that stop the run.
    pub(super) breaks: &'a [Break],
    /// A condition that is being typed.
    pub(super) prompt: Option<&'a str>,
    /// Says what was wrong with it.
    pub(super) complaint: &'a str,
}

/// Draws all of it.
pub(super) fn draw(frame: &mut Frame<'_>, view: &View<'_>) {
    let rows = [Constraint::Length(2), Constraint::Fill(1), Constraint::Length(2)];
    let [head, middle, foot] = Layout::vertical(rows).areas(frame.area());
    draw_head(frame, head, view);
    let columns = [Constraint::Percentage(58), Constraint::Percentage(42)];
    let [left, right] = Layout::horizontal(columns).areas(middle);
    let tall = 3 + view.look.sample.groups.len().min(6) as u16;
    let [groups, lists] =
        Layout::vertical([Constraint::Length(tall), Constraint::Fill(1)]).areas(left);
    let [rates, threads] =
        Layout::vertical([Constraint::Length(11), Constraint::Fill(1)]).areas(right);
    draw_groups(frame, groups, view);
    draw_lists(frame, lists, view);
    draw_rates(frame, rates, view.history);
    draw_threads(frame, threads, view);
    draw_foot(frame, foot, view);
}

fn draw_head(frame: &mut Frame<'_>, area: Rect, view: &View<'_>) {
    let [first, second] = Layout::vertical([Constraint::Length(1); 2]).areas(area);
    let at = format!("  {} of virtual time  ", time(view.look.sample.at));
    let title = [view.run.to_string().bold(), at.into(), view.state.clone().reversed()];
    frame.render_widget(Line::from(title.to_vec()), first);
    match view.share {
        Some(share) => {
            let share = share.clamp(0.0, 1.0);
            let gauge = Gauge::default().ratio(share).label(format!("{:.1} %", share * 100.0));
            frame.render_widget(gauge.gauge_style(Style::new().fg(Color::Blue)), second);
        }
        None => frame.render_widget(format!("{} accesses", view.look.accesses), second),
    }
}

fn draw_groups(frame: &mut Frame<'_>, area: Rect, view: &View<'_>) {
    let groups = view.look.sample.groups.iter().enumerate();
    let rows = groups.map(|(at, group)| Row::new(group_cells(view, at, group)));
    let widths = [14, 8, 8, 8, 8, 8, 8].map(Constraint::Length);
    let head = ["group", "current", "max", "anon", "file", "dirty", "stall %"];
    let table = Table::new(rows, widths).header(Row::new(head).bold());
    bars::choose(frame, area, table.block(Block::bordered().title("Groups")), view.group);
}

fn group_cells(view: &View<'_>, at: usize, group: &GroupSample) -> [String; 7] {
    let size = |name: &str| {
        let column = COLUMNS.iter().position(|known| *known == name);
        bytes(group.columns[column.expect("a sampled column")])
    };
    let lost = view.look.pressure[at].some as f64 * 100.0 / view.look.sample.at.max(1) as f64;
    [
        view.groups[at].clone(),
        size("current"),
        view.limits[at].map_or_else(|| "max".to_string(), bytes),
        size("anon"),
        size("file"),
        size("dirty"),
        format!("{lost:.1}"),
    ]
}

fn draw_lists(frame: &mut Frame<'_>, area: Rect, view: &View<'_>) {
    let name = &view.groups[view.group];
    let group = &view.look.sample.groups[view.group];
    let block = Block::bordered().title(format!("Lists of {name}, pages: anon █, file ▒"));
    let width = usize::from(block.inner(area).width);
    let bars = match group.generations.is_empty() {
        true => classic(view),
        false => generations(view, group),
    };
    let mut lines = bars::lines(&bars, width);
    if !group.generations.is_empty() {
        lines.push(Line::default());
        lines.push(tiers(group));
    }
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

/// Bars of generations, the youngest first.
fn generations(view: &View<'_>, group: &GroupSample) -> Vec<Bar> {
    let now = view.look.sample.at;
    let bar = |generation: &mglru::GenerationSize| Bar {
        name: format!("{:>5} {:>8}", generation.seq, time(now.saturating_sub(generation.born))),
        pages: generation.pages,
    };
    group.generations.iter().rev().map(bar).collect()
}

/// Bars of the classic lists.
fn classic(view: &View<'_>) -> Vec<Bar> {
    let sizes = &view.look.lists[view.group];
    [
        ("active", [sizes.active_anon, sizes.active_file]),
        ("inactive", [sizes.inactive_anon, sizes.inactive_file]),
        ("unevictable", [sizes.unevictable, 0]),
    ]
    .map(|(name, pages)| Bar { name: format!("{name:>14}"), pages })
    .to_vec()
}

/// Says what the controller evicts: refaults over evictions of each tier, the limit marked.
fn tiers(group: &GroupSample) -> Line<'static> {
    let mut spans = Vec::new();
    for (at, kind) in ["anon", "file"].into_iter().enumerate() {
        spans.push(Span::from(format!("{kind} tiers ")));
        for tier in 0..4 {
            let share = group.refaulted[at][tier] as f64 * 100.0;
            let share = share / group.judged[at][tier].max(1) as f64;
            let text = format!("{share:.0}% ");
            let is_evicted = tier <= usize::from(group.limits[at]);
            spans.push(if is_evicted { text.bold() } else { text.dim() });
        }
    }
    Line::from(spans)
}

fn draw_rates(frame: &mut Frame<'_>, area: Rect, history: &History) {
    let rows = history.rates().into_iter().map(|rate| {
        let value = Line::from(format!("{:.0}", rate.per_second)).right_aligned();
        Row::new([Line::from(rate.name), value, Line::from(rate.curve).fg(Color::Blue)])
    });
    let widths = [Constraint::Length(17), Constraint::Length(11), Constraint::Fill(1)];
    let block = Block::bordered().title("A second of virtual time");
    frame.render_widget(Table::new(rows, widths).block(block), area);
}

fn draw_threads(frame: &mut Frame<'_>, area: Rect, view: &View<'_>) {
    let rows = threads::busy(&view.look.actors).into_iter().map(|actor| {
        let act = threads::act(actor.act, view.groups);
        Row::new([actor.name.clone(), act, threads::wait(actor.wait).to_string()])
    });
    let widths = [Constraint::Length(11), Constraint::Fill(3), Constraint::Fill(2)];
    let title = format!("Threads: {}", threads::summary(&view.look.actors));
    frame.render_widget(Table::new(rows, widths).block(Block::bordered().title(title)), area);
}

fn draw_foot(frame: &mut Frame<'_>, area: Rect, view: &View<'_>) {
    let breaks: Vec<String> = view.breaks.iter().map(ToString::to_string).collect();
    let first = match (view.prompt, breaks.is_empty()) {
        (Some(text), _) => Line::from(vec![
            "stop at (COUNTER>N, GROUP:FIGURE<=N, invariants): ".into(),
            format!("{text}_ ").bold(),
            view.complaint.to_string().red(),
        ]),
        (None, true) => Line::default(),
        (None, false) => Line::from(format!("stops at: {}", breaks.join(", "))),
    };
    frame.render_widget(Paragraph::new(vec![first, Line::from(KEYS).dim()]), area);
}

#[cfg(test)]
mod tests;
