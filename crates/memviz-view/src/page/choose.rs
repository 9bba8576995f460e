//! Which answers a page holds: first what every part of the viewer opens with, then detail as far as the size allows.
//!
//! Requests are written as `viewer/src/data/request.ts` writes them, so that the page finds them by their text.

use std::collections::BTreeSet;

use memviz_layout::{Axis, By, Moment};

use super::pack::Pack;
use crate::query::encoded;
use crate::store::{EntryState, Loaded};

/// Pixels of a tile.
const COLUMNS: usize = 1024;
/// Pixels of a tile.
const ROWS: usize = 512;
/// Columns of a replay.
const WHATIF_COLUMNS: usize = 1024;
/// Head room above the peak.
const HEAD_ROOM: f64 = 1.05;
/// Moments of one recording whose tables are stored.
const MOST_MOMENTS: usize = 256;
/// Moments of one recording whose flame graphs are stored.
const MOST_FLAMES: usize = 128;
/// Blocks of one recording that are stored.
const MOST_BLOCKS: usize = 4000;
/// Finest level of tiles: 2^k parts.
const MOST_LEVEL: u32 = 7;

/// Parts of the page's size: what opens, then moments, then tiles; blocks get the rest.
const OPENING: f64 = 0.45;
const MOMENTS: f64 = 0.65;
const TILES: f64 = 0.92;

/// What is being done, up to which part of the page's size, and the work itself.
type Stage = (&'static str, f64, fn(&mut Part<'_, '_>));

pub(super) fn fill(pack: &mut Pack<'_>, progress: &mut dyn FnMut(&str, f64)) {
    let entries = pack.api().store().entries().into_iter().enumerate();
    let ready: Vec<_> = entries
        .filter_map(|(r, entry)| match entry.state {
            EntryState::Ready(loaded) => Some((r, loaded)),
            EntryState::Reading(_) | EntryState::Failed(_) => None,
        })
        .collect();
    // What one recording doesn't take of its part is there for the next.
    let count = ready.len().max(1) as f64;
    let stages: [Stage; 4] = [
        ("pictures", OPENING, opening),
        ("moments", MOMENTS, moments),
        ("details", TILES, tiles),
        ("blocks", 1.0, blocks),
    ];
    let mut from = 0.0;
    for (stage, (name, to, work)) in stages.into_iter().enumerate() {
        for (nth, (r, loaded)) in ready.iter().enumerate() {
            progress(name, (stage as f64 + nth as f64 / count) / stages.len() as f64);
            let share = from + (to - from) * (nth + 1) as f64 / count;
            work(&mut Part { pack, r: *r, loaded, share });
        }
        from = to;
    }
    if ready.len() == 2 {
        let compared = pack.ask("report?command=diff&r=0&r=1", 1.0);
        if compared.is_none_or(|answer| !answer.is_ok()) {
            pack.leave_out("the comparison of the two recordings: use `memviz diff`".to_owned());
        }
    }
    pack.leave_out(
        "searches, ranges, and replays under other settings: open the recording with `memviz view`".to_owned(),
    );
    pack.finish();
}

/// One recording's part of the page.
struct Part<'p, 'a> {
    pack: &'p mut Pack<'a>,
    r: usize,
    loaded: &'p Loaded,
    share: f64,
}

impl Part<'_, '_> {
    /// Stores an answer; false when there is no room.
    fn ask(&mut self, request: &str) -> bool {
        self.pack.ask(request, self.share).is_some()
    }

    fn leave_out(&mut self, what: &str) {
        let name = crate::clip::owned(self.loaded.name());
        self.pack.leave_out(format!("{name}: {what}"));
    }

    /// First and last position, a bit apart.
    fn bounds(&self, axis: Axis) -> Option<(f64, f64)> {
        let (from, to) = self.loaded.layout().bounds(self.loaded.trace(), axis)?;
        Some(if to > from { (from, to) } else { (from, from + 1.0) })
    }

    fn timeline(&self, axis: Axis, (from, to): (f64, f64), by: By, areas: bool) -> String {
        let high = self.loaded.layout().peak_active().bytes.max(1) as f64 * HEAD_ROOM;
        let (r, axis, by, areas) = (self.r, axis.name(), by.name(), if areas { "&areas=1" } else { "" });
        format!(
            "timeline?r={r}&axis={axis}&from={from}&to={to}&columns={COLUMNS}&low=0&high={high}&rows={ROWS}&by={by}{areas}"
        )
    }

    fn bands(&self, axis: Axis, (from, to): (f64, f64)) -> String {
        format!("bands?r={}&axis={}&from={from}&to={to}&columns={COLUMNS}", self.r, axis.name())
    }

    fn peaks_and_end(&self) -> [Moment; 3] {
        let layout = self.loaded.layout();
        [layout.peak_active().event, layout.peak_reserved().event, layout.events()]
    }

    /// Samples of the first tile of each axis.
    fn samples(&self, axis: Axis) -> Vec<Moment> {
        let Some((from, to)) = self.bounds(axis) else { return Vec::new() };
        let window = memviz_layout::Window { axis, from, to, columns: COLUMNS };
        let view = memviz_layout::Viewport { window, low: 0.0, high: 1.0, rows: 1, areas: true };
        let groups = self.loaded.groups(By::Line);
        let scene = self.loaded.layout().timeline(self.loaded.trace(), groups, &view);
        scene.map(|scene| scene.moment).unwrap_or_default()
    }
}

/// What the viewer's parts open with.
fn opening(part: &mut Part<'_, '_>) {
    let r = part.r;
    let mut is_whole = true;
    for axis in Axis::ALL {
        let Some(bounds) = part.bounds(axis) else { continue };
        let mut requests = vec![part.bands(axis, bounds)];
        requests.extend(By::ALL.map(|by| part.timeline(axis, bounds, by, false)));
        requests.extend(By::ALL.map(|by| part.timeline(axis, bounds, by, true)));
        for request in requests {
            is_whole &= part.ask(&request);
        }
    }
    for name in ["peak-active", "peak-reserved", "start", "end"] {
        is_whole &= part.ask(&format!("place?r={r}&name={name}&event=0"));
    }
    for event in part.peaks_and_end() {
        is_whole &= part.ask(&format!("place?r={r}&event={event}"));
    }
    for command in ["report", "peak", "growth", "leaks", "cache", "pinned", "retrace", "advise", "replay"] {
        is_whole &= part.ask(&format!("report?command={command}&r={r}"));
    }
    is_whole &= part.ask(&format!("whatif/choices?r={r}"));
    for axis in Axis::ALL {
        let Some((from, to)) = part.bounds(axis) else { continue };
        let window = format!("r={r}&axis={}&from={from}&to={to}&columns={WHATIF_COLUMNS}", axis.name());
        let empty = encoded("");
        is_whole &= part.ask(&format!("whatif?{window}&policy={empty}&device=&cache_limit=&memory_limit="));
    }
    if !is_whole {
        part.leave_out("some pictures or reports, for size");
    }
}

/// Tables and flame graphs of the moments that one clicks on first.
fn moments(part: &mut Part<'_, '_>) {
    let r = part.r;
    for event in part.peaks_and_end() {
        for by in By::ALL {
            part.ask(&format!("moment?r={r}&event={event}&by={}", by.name()));
        }
        part.ask(&format!("flame?r={r}&event={event}"));
    }
    let all: BTreeSet<Moment> = Axis::ALL.into_iter().flat_map(|axis| part.samples(axis)).collect();
    let (tables, flames) = (spread(&all, MOST_MOMENTS), spread(&all, MOST_FLAMES));
    let mut stored = 0;
    for event in &tables {
        if !part.ask(&format!("moment?r={r}&event={event}&by=line")) {
            break;
        }
        stored += 1;
    }
    for event in &flames {
        if !part.ask(&format!("flame?r={r}&event={event}")) {
            break;
        }
    }
    let events = part.loaded.layout().events();
    part.leave_out(&format!(
        "what was live: in {stored} of {} moments by line, else at both peaks and the end",
        u64::from(events) + 1
    ));
}

/// About `count` of them, evenly over the whole.
fn spread(all: &BTreeSet<Moment>, count: usize) -> Vec<Moment> {
    let step = all.len().div_ceil(count).max(1);
    all.iter().copied().step_by(step).collect()
}

/// Ever finer tiles, a level of all axes after the other.
fn tiles(part: &mut Part<'_, '_>) {
    let mut level = 0;
    'levels: for next in 1..=MOST_LEVEL {
        // A column of one event shows all there is.
        if u64::from(part.loaded.layout().events()) < (COLUMNS as u64) << (next - 1) {
            break;
        }
        for axis in Axis::ALL {
            let Some((from, to)) = part.bounds(axis) else { continue };
            let count = 1_u32 << next;
            let edge = |nth: u32| from + (to - from) * f64::from(nth) / f64::from(count);
            for nth in 0..count {
                let bounds = (edge(nth), edge(nth + 1));
                let requests = [part.timeline(axis, bounds, By::Line, false), part.bands(axis, bounds)];
                if !requests.iter().all(|request| part.ask(request)) {
                    break 'levels;
                }
            }
        }
        level = next;
    }
    part.leave_out(&format!(
        "pictures finer than 1/{} of the recording; by others than line only the whole",
        1_u64 << level
    ));
}

/// Blocks of the first tiles, largest first.
fn blocks(part: &mut Part<'_, '_>) {
    let layout = part.loaded.layout();
    let row = layout.peak_active().bytes.max(1) as f64 * HEAD_ROOM / ROWS as f64;
    let size = |id: u32| layout.block(id).map_or(0, |block| block.size);
    let mut bricks: Vec<u32> = (0..layout.blocks()).filter(|id| size(*id) as f64 >= row).collect();
    bricks.sort_by_key(|id| std::cmp::Reverse(size(*id)));
    let mut stored: u32 = 0;
    for id in bricks.iter().take(MOST_BLOCKS) {
        if !part.ask(&format!("block?r={}&id={id}", part.r)) {
            break;
        }
        stored += 1;
    }
    if stored < layout.blocks() {
        part.leave_out(&format!("all but the {stored} largest of {} blocks", layout.blocks()));
    }
}
