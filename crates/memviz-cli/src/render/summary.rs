//! What a terminal shows at the end of `memviz run` and as `memviz report`, and the same as JSON.
//!
//! A [`Summary`] in, text out. Needs the page and its table from the parent module.

#[cfg(test)]
use std::path::Path;

use memviz_analyze::{Checked, LineTotal, Rest, Summary};

use super::numbers::{percent, thousands};
use super::paint::{Style, clean, glued};
use super::table::{bar, primitives};
use super::{Page, Place, Table, moment, paths, size};
use crate::size::text_from_bytes;

/// The summary for a terminal of `width` columns. Paths below the current folder are shown relative to it.
pub fn summary_text(summary: &Summary, width: usize, color: bool) -> String {
    let mut page = Page::new(width, color);
    draw(&mut page, summary);
    page.finish()
}

/// The summary as JSON, sizes in bytes and times in nanoseconds.
pub fn summary_json(summary: &Summary) -> String {
    // Strings, numbers and lists only: nothing that serde_json could refuse.
    serde_json::to_string_pretty(summary).unwrap_or_default()
}

#[cfg(test)]
pub(super) fn summary_text_in(summary: &Summary, width: usize, color: bool, cwd: &Path) -> String {
    let mut page = Page::below(cwd, width, color);
    draw(&mut page, summary);
    page.finish()
}

/// Draws the summary.
pub(crate) fn draw(page: &mut Page, summary: &Summary) {
    page.title("memviz", &summary.about);
    ended(page, summary);
    if summary.events.seen == 0 && summary.peak_active.active_bytes == 0 {
        page.blank();
        page.plain("No MLX buffer was allocated or freed while recording.");
    } else {
        numbers_block(page, summary);
        by_bytes(page, summary);
        by_count(page, summary);
    }
    ends(page, summary);
}

/// Lines with most bytes at the active peak.
fn by_bytes(page: &mut Page, summary: &Summary) {
    let total = summary.peak_active.active_bytes;
    let cells = |bytes: u64, count: u64| {
        let share = if total == 0 { 0.0 } else { bytes as f64 / total as f64 };
        let count = if count == 0 { String::new() } else { thousands(count) };
        vec![text_from_bytes(bytes), percent(share), bar(share), count]
    };
    let table = Table::new("Active at the peak, by the line that built it", "line");
    let table = table.bytes("bytes").share("share").bars().number("buffers");
    page.table(&filled(table, page, summary, (&summary.top_by_bytes, summary.rest_by_bytes), cells));
}

/// Lines with most buffers at the active peak.
fn by_count(page: &mut Page, summary: &Summary) {
    let cells = |bytes: u64, count: u64| vec![thousands(count), text_from_bytes(bytes)];
    let table = Table::new("The same, by number of buffers", "line").number("buffers").bytes("bytes");
    page.table(&filled(table, page, summary, (&summary.top_by_count, summary.rest_by_count), cells));
}

fn filled(
    mut table: Table,
    page: &Page,
    summary: &Summary,
    (lines, rest): (&[LineTotal], Rest),
    cells: impl Fn(u64, u64) -> Vec<String>,
) -> Table {
    for line in lines {
        table.row(cells(line.bytes, line.count), Place::of(page, line, summary.is_window), primitives(line));
    }
    table.rest(cells(rest.bytes, rest.count), rest.lines, "line");
    table
}

/// Said first when the program did not end by itself.
fn ended(page: &mut Page, summary: &Summary) {
    let ended = &summary.ended;
    if !ended.is_bad() {
        return;
    }
    let what = match ended.kind {
        "exception" => "by an exception that nobody handled",
        "signal" => "by a signal",
        _ => "without a last word: killed, out of power, or the disk was full; this is what was written until then",
    };
    let detail = if ended.detail.is_empty() { String::new() } else { format!(": {}", clean(&ended.detail)) };
    let place =
        ended.line.as_ref().map_or_else(String::new, |line| format!(", at {}", page.short(&line.file, line.line)));
    page.blank();
    page.labelled("Ended", Style::Bad, &format!("{what}{detail}{place}"));
}

fn numbers_block(page: &mut Page, summary: &Summary) {
    page.blank();
    let active = &summary.peak_active;
    page.number(
        "Peak active",
        &text_from_bytes(active.active_bytes),
        &format!("{}{}", moment(active), window(summary)),
    );
    let reserved = &summary.peak_reserved;
    let parts = format!(
        "{} ({} active, {} cached)",
        moment(reserved),
        size(reserved.active_bytes),
        size(reserved.cached_bytes)
    );
    page.number("Peak reserved", &text_from_bytes(reserved.reserved_bytes()), &parts);
    let end = &summary.end;
    let cached = format!("active, and {} cached", size(end.cached_bytes));
    page.number("At the end", &text_from_bytes(end.active_bytes), &cached);
    device(page, summary);
    hit_rate(page, summary);
    events(page, summary);
}

/// Of which part of the run a peak is the peak, when it is not all of it.
fn window(summary: &Summary) -> String {
    if !summary.is_window {
        return String::new();
    }
    format!(" (of the last {} events: older ones were dropped)", thousands(summary.events.recorded))
}

/// The driver's view, and what moved between its memories.
fn device(page: &mut Page, summary: &Summary) {
    if let Some(view) = &summary.device {
        let meaning = format!(
            "in use of {}; MLX says {}, {} outside MLX (contexts, libraries, graphs, other processes)",
            size(view.total_bytes),
            size(view.mlx_bytes),
            size(view.outside_bytes),
        );
        let label = if view.devices == 1 { "Device" } else { "Devices" };
        page.number(label, &text_from_bytes(view.used_bytes), &meaning);
    }
    if summary.moves.count > 0 {
        let meaning = format!("times a buffer moved to unified memory, {} in all", size(summary.moves.bytes));
        page.number("Moves", &thousands(summary.moves.count), &meaning);
    }
}

fn hit_rate(page: &mut Page, summary: &Summary) {
    use memviz_trace::Action;
    let Some(rate) = summary.hit_rate else { return };
    let (hits, new) = (summary.action(Action::AllocReuse), summary.action(Action::AllocNew));
    let meaning = format!(
        "{} of {} allocations reused a cached buffer; {} came new",
        thousands(hits.events),
        thousands((hits.events + new.events).saturating_sub(summary.moves.count)),
        size(new.bytes.saturating_sub(summary.moves.bytes)),
    );
    page.number("Cache hits", &percent(rate), &meaning);
}

fn events(page: &mut Page, summary: &Summary) {
    let events = &summary.events;
    let noun = if events.seen == 1 { "event" } else { "events" };
    let mut parts = vec![format!("{noun} seen, {} dropped", thousands(events.dropped))];
    if events.filtered > 0 {
        parts.push(format!("{} below the minimum size", thousands(events.filtered)));
    }
    if events.lost > 0 {
        parts.push(format!("{} lost", thousands(events.lost)));
    }
    page.number("Events", &thousands(events.seen), &parts.join(", "));
}

/// Whether it adds up, what is missing, what was written.
fn ends(page: &mut Page, summary: &Summary) {
    page.blank();
    match &summary.checked {
        Checked::Violated { violation } => page.labelled("Not exact", Style::Bad, &clean(violation)),
        Checked::Ok { checkpoints: 0 } => {
            page.labelled("Checked", Style::Plain, "every event agrees with those before it")
        }
        Checked::Ok { checkpoints } => page.labelled("Checked", Style::Good, &agreement(*checkpoints)),
    }
    for note in &summary.notes {
        page.labelled("Note", Style::Warn, &clean(note));
    }
    for file in &summary.written {
        let path = paths::relative(&file.path, &page.cwd);
        page.labelled("Wrote", Style::Plain, &format!("{} ({})", glued(&clean(&path)), size(file.size_bytes)));
    }
    if summary.written.iter().any(|file| file.path.ends_with(".pickle")) {
        page.labelled("", Style::Dim, "opens at https://pytorch.org/memory_viz");
    }
}

fn agreement(checkpoints: usize) -> String {
    let count = thousands(checkpoints as u64);
    let noun = if checkpoints == 1 { "checkpoint" } else { "checkpoints" };
    format!("sums agree with MLX's own counters at {count} {noun}")
}
