//! A line of the recorded program, as data.

use memviz_trace::{FrameId, Trace};
use serde::Serialize;

/// A line of the program; all empty and 0 where there is no Python line.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct CodeLine {
    /// Path as Python says it.
    pub file: String,
    /// Line number, from 1; 0 when not known.
    pub line: u32,
    /// Qualified name of the function.
    pub function: String,
}

impl CodeLine {
    /// The line of a frame.
    pub(crate) fn of(trace: &Trace, frame: Option<FrameId>) -> CodeLine {
        let Some(frame) = frame.map(|id| trace.stacks.frame(id)) else { return CodeLine::default() };
        let text = |id| trace.strings.get(id).to_owned();
        CodeLine { file: text(frame.file), line: frame.line, function: text(frame.function) }
    }
}
