//! From a window to the moments of its columns.
//!
//! A column has the moments whose positions lie in it, its left edge included; where none lies on that edge, it begins with
//! the moment before, whose state is in force there. The last column has its right edge too, so that a window over the whole
//! axis misses nothing.

use memviz_trace::Trace;

use crate::layout::Layout;
use crate::types::{Axis, Invalid, MOST_COLUMNS, MOST_ROWS, Moment, Viewport, Window};

impl Window {
    /// Position of the left edge of a column, or of the right edge of the last one.
    pub(crate) fn edge(&self, column: usize) -> f64 {
        if column >= self.columns {
            return self.to;
        }
        self.from + (self.to - self.from) * column as f64 / self.columns as f64
    }

    pub(crate) fn check(&self) -> Result<(), Invalid> {
        check_edges(("from", self.from), ("to", self.to))?;
        check_count("columns", self.columns, MOST_COLUMNS)
    }
}

impl Viewport {
    pub(crate) fn check(&self) -> Result<(), Invalid> {
        self.window.check()?;
        check_edges(("low", self.low), ("high", self.high))?;
        check_count("rows", self.rows, MOST_ROWS)
    }

    /// Bytes of a row.
    pub(crate) fn row_bytes(&self) -> f64 {
        (self.high - self.low) / self.rows as f64
    }
}

fn check_edges((low_name, low): (&'static str, f64), (high_name, high): (&'static str, f64)) -> Result<(), Invalid> {
    for (name, value) in [(low_name, low), (high_name, high), (high_name, high - low)] {
        if !value.is_finite() {
            return Err(Invalid::NotFinite { name, value });
        }
    }
    if low >= high { Err(Invalid::Empty { low_name, low, high_name, high }) } else { Ok(()) }
}

fn check_count(name: &'static str, value: usize, most: usize) -> Result<(), Invalid> {
    if (1..=most).contains(&value) { Ok(()) } else { Err(Invalid::Count { name, value, most }) }
}

impl Layout {
    /// First and last moment of each column, both included: what a curve over the columns is drawn from.
    ///
    /// # Errors
    /// A window that is empty, endless or too fine, and the step axis of a recording without steps.
    pub fn columns(&self, trace: &Trace, window: &Window) -> Result<Vec<(Moment, Moment)>, Invalid> {
        window.check()?;
        if window.axis == Axis::Step && self.axes.steps().is_empty() {
            return Err(Invalid::NoSteps);
        }
        let count = |column: usize| self.axes.count(trace, window.axis, window.edge(column), column >= window.columns);
        let mut before = count(0);
        let moments = (0..window.columns).map(|column| {
            let (first, end) = (before, count(column + 1).max(before));
            before = end;
            let is_on_edge = first < end && self.axes.position(trace, window.axis, first) == Some(window.edge(column));
            let first = if is_on_edge { first } else { first.saturating_sub(1) };
            (first.min(self.events()), end.saturating_sub(1).max(first).min(self.events()))
        });
        Ok(moments.collect())
    }
}
