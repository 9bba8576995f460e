//! How frames, devices and threads are called in answers.

use std::borrow::Cow;

use memviz_analyze::{FrameClass, StackLine};
use memviz_trace::{Device, DeviceKind, Frame, StackId, ThreadId, Trace};
use serde_json::{Value, json};

use crate::clip;
use crate::store::Loaded;

/// Folders of a path that are shown before its file.
const FOLDERS: usize = 1;
/// Frames of one stack: more are not read, and a damaged file may claim millions.
const MOST_FRAMES: usize = 400;

/// "gpu 0".
pub(super) fn device(device: Device) -> String {
    let kind = match device.kind() {
        DeviceKind::Cpu => "cpu",
        DeviceKind::Gpu => "gpu",
    };
    format!("{kind} {}", device.index())
}

/// Name of a thread, else its number; "" when neither is known.
pub(super) fn thread(trace: &Trace, id: ThreadId) -> String {
    let Some(thread) = trace.threads.get(id.index()).filter(|_| id != ThreadId(0)) else { return String::new() };
    match (trace.strings.get(thread.name), thread.native_id) {
        ("", 0) => format!("thread {}", id.0),
        ("", native_id) => format!("thread {native_id}"),
        (name, _) => clip::owned(name),
    }
}

/// The file with the folder it is in: "nn/linear.py".
pub(super) fn short_file(path: &str) -> &str {
    // A path of megabytes is looked at from its end only.
    let from = path.char_indices().rev().nth(clip::MOST_CHARS).map_or(0, |(at, _)| at);
    let path = &path[from..];
    let mut cuts = path.rmatch_indices(['/', '\\']).map(|(at, _)| at + 1);
    cuts.nth(FOLDERS).map_or(path, |at| &path[at..])
}

/// "nn/linear.py:12 Linear.__call__".
pub(super) fn line(file: &str, line: u32, function: &str) -> String {
    let file = clip::text(short_file(file));
    clip::owned(format!("{file}:{line} {}", clip::text(function)))
}

/// [`line`] of a frame.
pub(super) fn frame(trace: &Trace, frame: Frame) -> String {
    line(trace.strings.get(frame.file), frame.line, trace.strings.get(frame.function))
}

/// [`line`] of a line of a report.
pub(super) fn stack_line(at: &StackLine) -> String {
    line(&at.file, at.line, &at.function)
}

/// Frames of a stack, innermost first; memviz's own are left out.
pub(super) fn stack(loaded: &Loaded, stack: StackId) -> Vec<Value> {
    let trace = loaded.trace();
    let frames = trace.stacks.innermost_first(stack);
    let classed = frames.map(|id| (trace.stacks.frame(id), loaded.class(id)));
    let shown = classed.filter(|(_, class)| *class != FrameClass::Memviz).take(MOST_FRAMES);
    shown
        .map(|(frame, class)| {
            let file = trace.strings.get(frame.file);
            let is_absolute = file.starts_with('/') || file.get(1..3).is_some_and(|drive| drive == ":\\");
            // A path that is cut opens nothing.
            let path = if is_absolute && matches!(clip::text(file), Cow::Borrowed(_)) { file } else { "" };
            json!({
                "name": clip::text(trace.strings.get(frame.function)),
                "file": clip::text(short_file(file)),
                "line": frame.line,
                "own": class == FrameClass::User,
                "path": path,
            })
        })
        .collect()
}
