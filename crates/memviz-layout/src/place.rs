//! Where a moment is on the axes, and the other way round.

use memviz_trace::Trace;

use crate::layout::Layout;
use crate::types::{Axis, Invalid, Moment, Place};

impl Layout {
    /// First and last position of an axis; `None` on the step axis of a recording without steps.
    pub fn bounds(&self, trace: &Trace, axis: Axis) -> Option<(f64, f64)> {
        let position = |moment| self.axes.position(trace, axis, moment);
        Some((position(0)?, position(self.events())?))
    }

    /// The last moment at or before a position; 0 where there is none.
    ///
    /// # Errors
    /// A position that is no number, and the step axis of a recording without steps.
    pub fn moment_of(&self, trace: &Trace, axis: Axis, at: f64) -> Result<Moment, Invalid> {
        if !at.is_finite() {
            return Err(Invalid::NotFinite { name: "at", value: at });
        }
        if axis == Axis::Step && self.axes.steps().is_empty() {
            return Err(Invalid::NoSteps);
        }
        Ok(self.axes.moment(trace, axis, at))
    }

    /// Position of a moment; `None` on the step axis of a recording without steps.
    pub fn position_of(&self, trace: &Trace, axis: Axis, moment: Moment) -> Option<f64> {
        self.axes.position(trace, axis, moment)
    }

    /// A moment on all axes; the end for moments beyond it.
    pub fn place(&self, trace: &Trace, moment: Moment) -> Place {
        let event = moment.min(self.events());
        let nanos = self.axes.nanos(trace, event);
        let step_number = self.axes.step_under_way(event).map(|step| step.number);
        Place { event, nanos, time: nanos as f64, step: self.axes.position(trace, Axis::Step, event), step_number }
    }

    /// The moment at which the next step begins; `None` in the last one.
    pub fn next_step(&self, moment: Moment) -> Option<Moment> {
        let steps = self.axes.steps();
        steps.get(steps.partition_point(|step| step.start <= moment)).map(|step| step.start)
    }

    /// The last moment before this one at which a step begins.
    pub fn previous_step(&self, moment: Moment) -> Option<Moment> {
        let steps = self.axes.steps();
        let before = steps.partition_point(|step| step.start < moment);
        before.checked_sub(1).and_then(|at| steps.get(at)).map(|step| step.start)
    }

    /// First and last marked step that has events; of those without events where no other is.
    pub fn steps(&self) -> Option<(u64, u64)> {
        let steps = self.axes.steps();
        let has_events = |step: &&crate::axes::Step| step.end > step.start;
        let first = steps.iter().find(has_events).or(steps.first())?;
        let last = steps.iter().rev().find(has_events).or(steps.last())?;
        Some((first.number, last.number))
    }
}
