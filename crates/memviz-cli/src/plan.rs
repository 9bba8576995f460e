//! What a command line asks for, as plain data: the Python package carries out `run` and `doctor` from these.

use std::ffi::OsString;
use std::path::PathBuf;

use memviz_trace::{Context, Level};

/// What became of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was carried out: the exit code.
    Exit(i32),
    /// A program is to be recorded, in a Python process.
    Run(RunPlan),
    /// The surroundings are to be probed, in a Python process.
    Doctor(DoctorPlan),
}

/// The program to record, as Python would be told it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// `script.py`, or `-` for standard input.
    Script {
        /// As it was typed.
        path: PathBuf,
    },
    /// `-m name`.
    Module {
        /// Dotted name.
        name: String,
    },
    /// `-c text`.
    Code {
        /// Source text.
        text: String,
    },
}

/// `memviz run`: record a program from its first line to its last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunPlan {
    /// The program.
    pub what: Program,
    /// Its arguments, untouched.
    pub args: Vec<OsString>,
    /// Where the recording goes; `None` is `memviz-<script stem>-<pid>.memviz` in the current folder.
    pub output: Option<PathBuf>,
    /// Capacity of the ring, 0 for no limit.
    pub max_entries: u64,
    /// Events of smaller buffers are summed up, not kept; bytes.
    pub min_size: u64,
    /// What is recorded.
    pub level: Level,
    /// Innermost frames kept of a stack, 0 for all.
    pub depth: u32,
    /// Stacks of machine code as well.
    pub native: bool,
    /// For which events stacks are kept.
    pub context: Context,
    /// No summary.
    pub quiet: bool,
    /// Open the recording in the viewer afterwards.
    pub view: bool,
    /// Summary as JSON.
    pub json: bool,
}

/// `memviz doctor`: would attaching work here, and why not?
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DoctorPlan {
    /// Findings as JSON.
    pub json: bool,
}
