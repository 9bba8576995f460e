//! Marks above a picture: failed allocations, snapshots, cleared caches, changed limits and checkpoints.

use memviz_analyze::size::text_from_bytes;
use memviz_trace::{CheckpointKind, MarkKind, Trace};

use crate::layout::Layout;
use crate::pass::HappeningKind;
use crate::types::{BandMark, Window};

impl Layout {
    /// Marks of the window, those of one kind and pixel joined.
    pub(crate) fn marks(&self, trace: &Trace, window: &Window) -> Vec<BandMark> {
        let mut marks = self.happened(trace, window);
        self.limits(trace, window, &mut marks);
        self.checkpoints(trace, window, &mut marks);
        marks.sort_by(|a, b| a.at.total_cmp(&b.at).then(a.event.cmp(&b.event)));
        join(marks, window)
    }

    fn happened(&self, trace: &Trace, window: &Window) -> Vec<BandMark> {
        let first = self.axes.count(trace, window.axis, window.from, false);
        let end = self.axes.count(trace, window.axis, window.to, true);
        let begin = self.happenings.partition_point(|happening| happening.moment < first);
        let until = self.happenings.partition_point(|happening| happening.moment < end);
        let within = self.happenings.get(begin..until).unwrap_or_default();
        let mark = |happening: &crate::pass::Happening| {
            let (kind, label) = match happening.kind {
                HappeningKind::Oom => ("oom", asked(trace, happening.moment)),
                HappeningKind::Snapshot => ("snapshot", "snapshot".to_owned()),
                HappeningKind::ClearCache => ("clear_cache", "clear_cache".to_owned()),
            };
            let at = self.axes.position(trace, window.axis, happening.moment).unwrap_or(0.0);
            BandMark { at, event: happening.moment, kind, label, count: 1 }
        };
        within.iter().map(mark).collect()
    }

    fn limits(&self, trace: &Trace, window: &Window, marks: &mut Vec<BandMark>) {
        for mark in &trace.marks {
            let MarkKind::CacheLimit(bytes) = mark.kind else { continue };
            let label = format!("cache limit {}", text_from_bytes(bytes));
            self.add(trace, window, (mark.index, mark.time_nanos), ("cache_limit", label), marks);
        }
    }

    /// Checkpoints but those of steps, which the ribbon of steps shows.
    fn checkpoints(&self, trace: &Trace, window: &Window, marks: &mut Vec<BandMark>) {
        for point in trace.checkpoints.iter().filter(|point| point.kind != CheckpointKind::Step) {
            let label = format!("checkpoint: {}", point.kind.name());
            self.add(trace, window, (point.index, point.time_nanos), ("checkpoint", label), marks);
        }
    }

    fn add(
        &self,
        trace: &Trace,
        window: &Window,
        (index, nanos): (u64, u64),
        (kind, label): (&'static str, String),
        marks: &mut Vec<BandMark>,
    ) {
        let at = self.position(trace, window.axis, index, nanos);
        if window.from <= at && at <= window.to {
            marks.push(BandMark { at, event: self.moment_of_index(trace, index), kind, label, count: 1 });
        }
    }
}

fn asked(trace: &Trace, moment: u32) -> String {
    let event = (moment as usize).checked_sub(1).and_then(|position| trace.events.get(position));
    format!("out of memory: asked for {}", text_from_bytes(event.map_or(0, |event| event.size)))
}

/// The first mark of a kind in a pixel stands for all of them.
fn join(marks: Vec<BandMark>, window: &Window) -> Vec<BandMark> {
    let pixel = (window.to - window.from) / window.columns as f64;
    let mut joined: Vec<BandMark> = Vec::new();
    let mut last_of_kind: Vec<(&str, usize)> = Vec::new();
    for mark in marks {
        let known = last_of_kind.iter_mut().find(|(kind, _)| *kind == mark.kind);
        let last = known.as_ref().map(|(_, at)| *at).filter(|&at| mark.at - joined[at].at < pixel);
        if let Some(at) = last {
            joined[at].count = joined[at].count.saturating_add(1);
            continue;
        }
        match known {
            Some((_, at)) => *at = joined.len(),
            None => last_of_kind.push((mark.kind, joined.len())),
        }
        joined.push(mark);
    }
    joined
}
