//! How a run ended, as far as its recording knows.

use memviz_trace::{EndingKind, Trace};
use serde::Serialize;

use crate::held::{StackLine, user_line};

/// How a run ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Ended {
    /// "unknown", "stopped", "exception", "signal" or "cut".
    pub kind: &'static str,
    /// "ValueError: …", "SIGSEGV at address 0x0"; empty when there is nothing to add.
    pub detail: String,
    /// The user's line where it ended.
    pub line: Option<StackLine>,
}

impl Ended {
    /// The ending of `trace`.
    pub fn new(trace: &Trace) -> Ended {
        let ending = &trace.header.ending;
        let line = user_line(trace, ending.stack);
        Ended { kind: ending.kind.name(), detail: ending.detail.clone(), line }
    }

    /// Whether something other than the program's own end ended it.
    pub fn is_bad(&self) -> bool {
        [EndingKind::Exception, EndingKind::Signal, EndingKind::Cut].iter().any(|kind| kind.name() == self.kind)
    }
}
