//! What a run's end shows: peaks, the lines behind them, the cache's hit rate, and what may be missing.
//!
//! Plain data that serialises; sentences about it are in `notes`, layout for a terminal is `memviz-cli`.

use memviz_trace::{Action, CheckReport, Hits, Trace, Violation};
use serde::Serialize;

use crate::about::About;
use crate::ended::Ended;
use crate::peak::{LineTotal, Live, Moment, Peaks, find_peaks, live_at, peaks_of_checked, top_lines};

/// Version of the JSON form of [`Summary`]; a field that changes its meaning or goes raises it.
pub const SUMMARY_SCHEMA: u32 = 1;
/// Lines per table.
const TOP: usize = 10;

/// Buffer events: `recorded + dropped + filtered == seen`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EventCounts {
    /// Happened while recording.
    pub seen: u64,
    /// In the trace.
    pub recorded: u64,
    /// Fell out of the ring.
    pub dropped: u64,
    /// Below the minimum size.
    pub filtered: u64,
    /// Could not be recorded.
    pub lost: u64,
}

/// Allocator calls of one action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ActionTotal {
    /// As `get_memory_events` spells it.
    pub action: &'static str,
    /// Recorded events.
    pub events: u64,
    /// Sum of their sizes.
    pub bytes: u64,
}

/// The rows that a table leaves out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rest {
    /// Number of rows.
    pub lines: u64,
    /// Bytes of their buffers.
    pub bytes: u64,
    /// Number of their buffers.
    pub count: u64,
}

/// Whether the equations of the trace hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum Checked {
    /// Every event agrees with those before it, and every checkpoint with MLX's own counters.
    Ok {
        /// Checkpoints compared.
        checkpoints: usize,
    },
    /// The first equation that does not hold: numbers after it are not exact.
    Violated {
        /// As `memviz check` prints it.
        violation: String,
    },
}

/// Buffers that moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Moves {
    /// How often.
    pub count: u64,
    /// Sum of their sizes.
    pub bytes: u64,
}

/// The driver's view beside MLX's, at the checkpoint at which the devices had most in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceView {
    /// Devices that the process used.
    pub devices: u64,
    /// Bytes that they have.
    pub total_bytes: u64,
    /// Bytes in use, by this process and any other.
    pub used_bytes: u64,
    /// Bytes that MLX had, active and cached.
    pub mlx_bytes: u64,
    /// Bytes in use that MLX does not count: contexts, libraries, graphs, other processes.
    pub outside_bytes: u64,
    /// Bytes that the process's memory pools held.
    pub pool_bytes: u64,
    /// When.
    pub time_nanos: u64,
}

/// A file that the run wrote. Filled in by whoever wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Written {
    /// Where.
    pub path: String,
    /// How long it is.
    pub size_bytes: u64,
}

/// A recorded run in short.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// [`SUMMARY_SCHEMA`].
    pub schema: u32,
    /// Which run.
    #[serde(flatten)]
    pub about: About,
    /// How the run ended.
    pub ended: Ended,
    /// Position among the processes of a distributed run.
    pub rank: Option<u32>,
    /// What became of the buffer events.
    pub events: EventCounts,
    /// Older events fell out of the ring: peaks, lines and rates are those of the events that were kept.
    pub is_window: bool,
    /// When most bytes were active.
    pub peak_active: Moment,
    /// When most bytes were active or cached.
    pub peak_reserved: Moment,
    /// After the last event.
    pub end: Moment,
    /// Lines with most bytes at the active peak.
    pub top_by_bytes: Vec<LineTotal>,
    /// What `top_by_bytes` leaves out.
    pub rest_by_bytes: Rest,
    /// Lines with most buffers at the active peak.
    pub top_by_count: Vec<LineTotal>,
    /// What `top_by_count` leaves out.
    pub rest_by_count: Rest,
    /// Share of the recorded allocations that reused a cached buffer; `None` without any. Wrapped memory does not count.
    pub hit_rate: Option<f64>,
    /// Recorded events by action; actions that did not happen are left out.
    pub actions: Vec<ActionTotal>,
    /// Buffers whose memory moved between a device and unified memory; not among the allocations of `hit_rate`.
    pub moves: Moves,
    /// What the driver said; `None` where no driver was asked.
    pub device: Option<DeviceView>,
    /// Whether the equations hold.
    pub checked: Checked,
    /// What may be missing, one sentence each.
    pub notes: Vec<String>,
    /// Files written.
    pub written: Vec<Written>,
}

impl Summary {
    /// Summarises `trace`.
    pub fn new(trace: &Trace) -> Summary {
        let result = trace.check();
        let (peaks, live) = peaks_and_live(trace, &result);
        let rows = top_lines(trace, &live);
        let (top_by_count, rest_by_count) = top(&by_count(&rows));
        let (top_by_bytes, rest_by_bytes) = top(&rows.iter().collect::<Vec<_>>());
        let actions = actions(trace);
        Summary {
            schema: SUMMARY_SCHEMA,
            about: About::new(trace),
            ended: Ended::new(trace),
            rank: trace.header.rank,
            events: event_counts(trace, &actions),
            is_window: trace.counts.dropped.events > 0 || trace.first_index > 0,
            peak_active: peaks.active,
            peak_reserved: peaks.reserved,
            end: peaks.end,
            top_by_bytes,
            rest_by_bytes,
            top_by_count,
            rest_by_count,
            hit_rate: Hits::of(&trace.events).rate(),
            moves: moves(trace),
            device: device(trace),
            actions,
            checked: checked(result),
            notes: notes(trace, peaks.skipped_events),
            written: Vec::new(),
        }
    }

    /// Recorded events of an action.
    pub fn action(&self, action: Action) -> ActionTotal {
        let found = self.actions.iter().find(|total| total.action == action.name());
        found.copied().unwrap_or(ActionTotal { action: action.name(), events: 0, bytes: 0 })
    }
}

fn peaks_and_live(trace: &Trace, result: &Result<CheckReport, Violation>) -> (Peaks, Live) {
    if let Ok(report) = result {
        return peaks_of_checked(trace, report);
    }
    let peaks = find_peaks(trace);
    (peaks, live_at(trace, peaks.active.after_events))
}

/// Rows that have buffers, most first.
fn by_count(rows: &[LineTotal]) -> Vec<&LineTotal> {
    let mut rows: Vec<&LineTotal> = rows.iter().filter(|row| row.count > 0).collect();
    rows.sort_by(|a, b| (b.count, b.bytes).cmp(&(a.count, a.bytes)).then_with(|| a.place().cmp(&b.place())));
    rows
}

fn top(rows: &[&LineTotal]) -> (Vec<LineTotal>, Rest) {
    let mut rest = Rest::default();
    for row in rows.iter().skip(TOP) {
        rest = Rest { lines: rest.lines + 1, bytes: rest.bytes + row.bytes, count: rest.count + row.count };
    }
    (rows.iter().take(TOP).map(|row| (*row).clone()).collect(), rest)
}

fn event_counts(trace: &Trace, actions: &[ActionTotal]) -> EventCounts {
    let is_buffer = |total: &&ActionTotal| Action::ALL.iter().any(|a| a.is_buffer() && a.name() == total.action);
    EventCounts {
        seen: trace.counts.seen.events,
        recorded: actions.iter().filter(is_buffer).map(|total| total.events).sum(),
        dropped: trace.counts.dropped.events,
        filtered: trace.counts.filtered.events,
        lost: trace.counts.lost,
    }
}

fn actions(trace: &Trace) -> Vec<ActionTotal> {
    let mut sums = [(0_u64, 0_u64); Action::ALL.len()];
    for event in &trace.events {
        let sum = &mut sums[event.action as usize];
        // FilteredNet keeps a signed change in `size`, array events ids: these are no sizes.
        let is_size = event.action != Action::FilteredNet && !event.action.is_array();
        let size = if is_size { event.size } else { 0 };
        *sum = (sum.0 + 1, sum.1.wrapping_add(size));
    }
    let totals = Action::ALL.iter().zip(sums);
    let totals = totals.map(|(action, (events, bytes))| ActionTotal { action: action.name(), events, bytes });
    totals.filter(|total| total.events > 0).collect()
}

fn moves(trace: &Trace) -> Moves {
    let came = trace.events.iter().filter(|event| event.is_move() && event.action == Action::AllocNew);
    came.fold(Moves::default(), |sum, event| Moves {
        count: sum.count + 1,
        bytes: sum.bytes.saturating_add(event.size),
    })
}

fn device(trace: &Trace) -> Option<DeviceView> {
    let known = trace.checkpoints.iter().filter_map(|point| Some((point, point.device?)));
    let (point, device) = known.max_by_key(|(_, device)| device.used())?;
    let mlx_bytes = point.mlx_active.saturating_add(point.mlx_cached);
    Some(DeviceView {
        devices: device.devices,
        total_bytes: device.total,
        used_bytes: device.used(),
        mlx_bytes,
        outside_bytes: device.used().saturating_sub(mlx_bytes),
        pool_bytes: device.pool,
        time_nanos: point.time_nanos,
    })
}

fn checked(result: Result<CheckReport, Violation>) -> Checked {
    match result {
        Ok(report) => Checked::Ok { checkpoints: report.checkpoints },
        Err(violation) => Checked::Violated { violation: violation.to_string() },
    }
}

fn notes(trace: &Trace, skipped_events: u64) -> Vec<String> {
    let counts = &trace.counts;
    let mut notes = trace.header.notes.clone();
    if counts.dropped.events > 0 {
        notes.push(format!(
            "{} older events fell out of the ring of {}: peaks and lines are those of the events that were kept. \
             --max-entries 0 keeps all",
            counts.dropped.events, trace.header.max_entries
        ));
    }
    if counts.filtered.events > 0 {
        let (events, min_size) = (counts.filtered.events, trace.header.min_size);
        notes.push(format!("{events} events below {min_size} bytes are in the sums, not in the lines"));
    }
    if counts.lost > 0 {
        notes.push(format!("{} events could not be recorded: sums after them are not exact", counts.lost));
    }
    if skipped_events > 0 {
        notes.push(format!("events skipped because they contradict those before them: {skipped_events}"));
    }
    notes
}
