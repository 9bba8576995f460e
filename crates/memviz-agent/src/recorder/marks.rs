//! Steps, annotations, limits and checkpoints: what is kept beside the events, at their positions.

use memviz_trace::{Checkpoint, CheckpointKind, DeviceMemory, Mark, MarkKind, ThreadId, Totals};

use super::Recorder;

/// Marks that wait for a writer that does not come.
const MAX_WAITING_MARKS: usize = 1 << 16;

impl Recorder {
    /// Compares with MLX's counters, and keeps what the driver says beside.
    pub fn checkpoint(
        &mut self,
        kind: CheckpointKind,
        time_nanos: u64,
        mlx: Totals,
        device: Option<DeviceMemory>,
    ) -> Checkpoint {
        if kind == CheckpointKind::Stop {
            self.close_gap();
        }
        if !self.store.is_full() {
            self.write_unwritten(time_nanos);
        }
        let point = Checkpoint {
            index: self.store.next_index(),
            time_nanos: self.forward(time_nanos),
            kind,
            active: self.totals.active,
            cached: self.totals.cached,
            mlx_active: mlx.active,
            mlx_cached: mlx.cached,
            device,
        };
        // While the queue is full the sums may not be those of the events written.
        if self.gap.is_empty() && self.unwritten == (0, 0) {
            self.checkpoints.push(point);
        }
        point
    }

    /// Ends a step and begins the next; returns the number of steps ended.
    pub fn step(&mut self, time_nanos: u64, thread: ThreadId) -> u64 {
        self.steps += 1;
        self.mark(time_nanos, thread, MarkKind::Step(self.steps));
        self.steps
    }

    /// Sets a mark at the present moment.
    pub fn mark(&mut self, time_nanos: u64, thread: ThreadId, kind: MarkKind) {
        if self.store.is_full() && self.marks.len() >= MAX_WAITING_MARKS {
            self.dropped_others += 1;
            return;
        }
        if self.marks.len() == self.marks.capacity() && self.marks.len() >= 1 << 16 {
            self.forget_old_marks();
        }
        let time_nanos = self.forward(time_nanos);
        self.marks.push(Mark { index: self.store.next_index(), time_nanos, thread, kind });
    }

    /// The cache's limit is `limit` now: a mark, if that is news.
    #[inline]
    pub fn cache_limit(&mut self, now: fn() -> u64, limit: u64) {
        if limit != self.cache_limit {
            self.cache_limit = limit;
            self.mark(now(), ThreadId(0), MarkKind::CacheLimit(limit));
        }
    }

    /// Drops the marks before the oldest event, but for annotations that are still open there.
    fn forget_old_marks(&mut self) {
        let first = self.store.first_index();
        let old = self.marks.partition_point(|mark| mark.index < first);
        let mut open: Vec<usize> = Vec::new();
        for (position, mark) in self.marks[..old].iter().enumerate() {
            match mark.kind {
                MarkKind::AnnotationBegin(_) => open.push(position),
                MarkKind::AnnotationEnd => {
                    if let Some(at) = open.iter().rposition(|&begin| self.marks[begin].thread == mark.thread) {
                        open.remove(at);
                    }
                }
                MarkKind::CacheLimit(_) => {
                    open.retain(|&at| !matches!(self.marks[at].kind, MarkKind::CacheLimit(_)));
                    open.push(position);
                }
                MarkKind::Step(_) => {}
            }
        }
        let kept: Vec<Mark> = open.iter().map(|&at| self.marks[at]).chain(self.marks[old..].iter().copied()).collect();
        self.marks = kept;
    }
}
