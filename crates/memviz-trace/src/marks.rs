//! Where in the user's loop an event happened: the step and the annotation that are open at an event.
//!
//! The one place that gives marks a meaning; writers and reports ask here. Needs events to be asked for in order; does not
//! know events, only their index and thread.

use rustc_hash::FxHashMap;

use crate::ids::{StringId, ThreadId};
use crate::trace::{Mark, MarkKind, Trace};

/// Walks along the marks of a trace. `Step(n)` begins step `n`: events after it belong to `n`, events before the first
/// such mark to the step before it.
#[derive(Clone, Debug)]
pub struct MarkCursor<'a> {
    marks: &'a [Mark],
    next: usize,
    step: Option<u64>,
    open: FxHashMap<ThreadId, Vec<StringId>>,
}

impl Trace {
    /// A cursor that stands before the first mark.
    pub fn mark_cursor(&self) -> MarkCursor<'_> {
        let first = self.marks.iter().find_map(|mark| match mark.kind {
            MarkKind::Step(number) => Some(number),
            _ => None,
        });
        let step = first.and_then(|number| number.checked_sub(1));
        MarkCursor { marks: &self.marks, next: 0, step, open: FxHashMap::default() }
    }
}

impl MarkCursor<'_> {
    /// Takes in every mark that was set before event `index`, counted from the start of the recording.
    pub fn advance_to(&mut self, index: u64) {
        while let Some(mark) = self.marks.get(self.next).filter(|mark| mark.index <= index) {
            self.next += 1;
            self.take(mark);
        }
    }

    fn take(&mut self, mark: &Mark) {
        match mark.kind {
            MarkKind::Step(number) => self.step = Some(number),
            MarkKind::AnnotationBegin(name) => self.open.entry(mark.thread).or_default().push(name),
            MarkKind::CacheLimit(_) => {}
            MarkKind::AnnotationEnd => {
                if let Some(names) = self.open.get_mut(&mark.thread) {
                    names.pop();
                }
            }
        }
    }

    /// The step under way, or `None` when the loop is not marked.
    pub fn step(&self) -> Option<u64> {
        self.step
    }

    /// Names of the annotations open on `thread`, outermost first.
    pub fn annotations(&self, thread: ThreadId) -> &[StringId] {
        self.open.get(&thread).map_or(&[], |names| names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_and_annotations_follow_marks() {
        let mut trace = Trace::default();
        let name = trace.strings.intern("forward");
        let mark = |index, kind| Mark { index, time_nanos: 0, thread: ThreadId(1), kind };
        trace.marks = vec![
            mark(2, MarkKind::AnnotationBegin(name)),
            mark(4, MarkKind::AnnotationEnd),
            mark(4, MarkKind::AnnotationEnd),
            mark(5, MarkKind::Step(8)),
        ];
        let mut cursor = trace.mark_cursor();
        let mut seen = Vec::new();
        for index in 0..6 {
            cursor.advance_to(index);
            seen.push((cursor.step(), cursor.annotations(ThreadId(1)).to_vec(), cursor.annotations(ThreadId(0)).len()));
        }
        let (none, one) = (vec![], vec![name]);
        let expected = [(7, &none), (7, &none), (7, &one), (7, &one), (7, &none), (8, &none)];
        assert_eq!(seen, expected.map(|(step, names)| (Some(step), names.clone(), 0)));
        assert_eq!(Trace::default().mark_cursor().step(), None);
    }
}
