//! [`Layout::bands`]: curves of sums and limits, spans of steps, annotations, evaluations and threads, and marks.

use memviz_trace::{MarkKind, StringId, ThreadId, Trace};
use rustc_hash::FxHashMap;

use crate::groups::{cut, thread_name};
use crate::layout::Layout;
use crate::ribbons::Ribbons;
use crate::scene::bytes_as_f64;
use crate::spans::LAST_THREAD;
use crate::types::{Axis, Bands, Invalid, Moment, Window};

/// Annotations nested deeper share a lane.
const MOST_DEPTH: usize = 16;

impl Layout {
    /// What lies above a picture in a window.
    ///
    /// # Errors
    /// A window that is empty, endless or too fine, and the step axis of a recording without steps.
    pub fn bands(&self, trace: &Trace, window: &Window) -> Result<Bands, Invalid> {
        let columns = self.columns(trace, window)?;
        let curve = |most: &dyn Fn(Moment, Moment) -> u64| {
            columns.iter().map(|&(first, last)| bytes_as_f64(most(first, last))).collect::<Vec<f64>>()
        };
        let mut bands = Bands {
            active: curve(&|first, last| self.sums.most_active(first, last).1),
            cached: curve(&|first, last| self.sums.most_cached(first, last)),
            reserved: curve(&|first, last| self.sums.most_reserved(first, last)),
            memory_limit: vec![f64::NAN; columns.len()],
            marks: self.marks(trace, window),
            ..Bands::default()
        };
        let limits = trace.marks.iter().filter_map(|mark| match mark.kind {
            MarkKind::CacheLimit(bytes) => {
                Some((self.position(trace, window.axis, mark.index, mark.time_nanos), bytes))
            }
            _ => None,
        });
        bands.cache_limit = in_force(window, limits);
        let used = trace.checkpoints.iter().filter_map(|point| {
            Some((self.position(trace, window.axis, point.index, point.time_nanos), point.device?.used()))
        });
        bands.device_used = in_force(window, used);
        let mut ribbons = Ribbons::new(window);
        let bounds = (columns.first().map_or(0, |column| column.0), columns.last().map_or(0, |column| column.1));
        self.step_spans(window, &mut ribbons);
        self.annotation_spans(trace, window.axis, &mut ribbons);
        self.evaluation_spans(trace, window.axis, bounds, &mut ribbons);
        self.thread_spans(trace, window, &columns, &mut ribbons);
        ribbons.write(&mut bands);
        Ok(bands)
    }

    /// The moment before an event by its number in the recording.
    pub(crate) fn moment_of_index(&self, trace: &Trace, index: u64) -> Moment {
        index.saturating_sub(trace.first_index).min(self.events().into()) as Moment
    }

    /// Axis position of a mark or checkpoint.
    pub(crate) fn position(&self, trace: &Trace, axis: Axis, index: u64, nanos: u64) -> f64 {
        let moment = self.moment_of_index(trace, index);
        self.axes.position_of_time(trace, axis, moment, nanos).unwrap_or(0.0)
    }

    fn step_spans(&self, window: &Window, ribbons: &mut Ribbons) {
        for step in self.axes.steps() {
            let (from, to) = match window.axis {
                Axis::Event => (f64::from(step.start), f64::from(step.end)),
                Axis::Time => (step.from_nanos as f64, step.to_nanos as f64),
                Axis::Step if step.end > step.start => (step.at, step.at + 1.0),
                Axis::Step => (step.at, step.at),
            };
            ribbons.add("step", 0, || "steps".to_owned(), (from, to), || format!("step {}", step.number));
        }
    }

    fn annotation_spans(&self, trace: &Trace, axis: Axis, ribbons: &mut Ribbons) {
        let mut open: FxHashMap<ThreadId, Vec<(StringId, f64)>> = FxHashMap::default();
        let mut close = |thread: ThreadId, depth: usize, (name, from): (StringId, f64), to: f64| {
            let depth = depth.min(MOST_DEPTH);
            let lane = || match depth {
                0 => thread_name(trace, thread.index()),
                _ => format!("{}, depth {}", thread_name(trace, thread.index()), depth + 1),
            };
            let lane_id = (u64::from(thread.0) << 8) | depth as u64;
            ribbons.add("annotation", lane_id, lane, (from, to), || cut(trace.strings.get(name)));
        };
        for mark in &trace.marks {
            let at = || self.position(trace, axis, mark.index, mark.time_nanos);
            match mark.kind {
                MarkKind::AnnotationBegin(name) => open.entry(mark.thread).or_default().push((name, at())),
                MarkKind::AnnotationEnd => {
                    let names = open.entry(mark.thread).or_default();
                    if let Some(begun) = names.pop() {
                        close(mark.thread, names.len(), begun, at());
                    }
                }
                _ => {}
            }
        }
        let end = self.axes.position(trace, axis, self.events()).unwrap_or(0.0);
        let mut left: Vec<_> = open.into_iter().collect();
        left.sort_unstable_by_key(|(thread, _)| *thread);
        for (thread, names) in left {
            names.into_iter().enumerate().for_each(|(depth, begun)| close(thread, depth, begun, end));
        }
    }

    fn evaluation_spans(&self, trace: &Trace, axis: Axis, (first, last): (Moment, Moment), ribbons: &mut Ribbons) {
        for evaluation in self.activity.evaluations(first, last) {
            let position = |moment| self.axes.position(trace, axis, moment).unwrap_or(0.0);
            // The moment before an evaluation's first event may be long before it.
            let from = if axis == Axis::Event { position(evaluation.from) } else { position(evaluation.from + 1) };
            let lane = || thread_name(trace, evaluation.thread.index());
            let label = || self.activity.label(evaluation).to_owned();
            ribbons.add("evaluation", evaluation.thread.0.into(), lane, (from, position(evaluation.to)), label);
        }
    }

    /// A span for each run of columns in which a thread has events.
    fn thread_spans(&self, trace: &Trace, window: &Window, columns: &[(Moment, Moment)], ribbons: &mut Ribbons) {
        let mut begun = [None; LAST_THREAD + 1];
        let mut before = columns.first().map_or(0, |column| column.0);
        let masks = columns.iter().map(|&(_, last)| {
            let mask = self.activity.threads(trace, before, last);
            before = before.max(last);
            mask
        });
        for (column, mask) in masks.chain([0]).enumerate() {
            for (thread, begun) in begun.iter_mut().enumerate() {
                if mask >> thread & 1 == 1 {
                    begun.get_or_insert(column);
                } else if let Some(first) = begun.take() {
                    let name =
                        || if thread == LAST_THREAD { "other threads".to_owned() } else { thread_name(trace, thread) };
                    ribbons.add("thread", thread as u64, name, (window.edge(first), window.edge(column)), name);
                }
            }
        }
    }
}

/// The last value at or before the right edge of each column; NaN before the first. Positions don't have to rise.
fn in_force(window: &Window, values: impl Iterator<Item = (f64, u64)>) -> Vec<f64> {
    let mut sorted: Vec<(f64, u64)> = values.collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut next, mut now) = (0, f64::NAN);
    let at_end_of = |column| {
        while let Some(&(_, bytes)) = sorted.get(next).filter(|value| value.0 <= window.edge(column + 1)) {
            (next, now) = (next + 1, bytes_as_f64(bytes));
        }
        now
    };
    (0..window.columns).map(at_end_of).collect()
}
