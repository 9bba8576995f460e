//! Names of groups for people: of lines as short as they stay clear, of modules.
//!
//! Not here: which line stands for a stack (`lines`), sums of groups (`groups`).

use memviz_trace::{FrameId, StackId, Trace};
use rustc_hash::FxHashSet;

use crate::groups::module;

/// "Model/Block/Linear", as `By::Module` names it.
pub fn module_name(trace: &Trace, stack: StackId) -> String {
    module(trace, stack)
}

/// Names lines: `models/llama.py:12 __call__`.
///
/// Files of installed packages begin with their package; all others lose the folder that all of them are in.
#[derive(Clone, Debug, Default)]
pub struct LineNames {
    /// With its last slash.
    folder: String,
}

impl LineNames {
    /// Looks at the file of every frame of `trace`.
    pub fn new(trace: &Trace) -> LineNames {
        let frames = (0..trace.stacks.frame_count() as u32).map(|id| trace.stacks.frame(FrameId(id)));
        let files: FxHashSet<_> = frames.filter(|frame| !frame.is_native).map(|frame| frame.file).collect();
        let paths = files.into_iter().map(|file| trace.strings.get(file));
        let mut own = paths.filter(|path| path.contains('/') && !path.starts_with('<') && installed(path).is_none());
        let folder = own.next().map_or("", folder_of);
        let folder = own.fold(folder, |folder, path| folder_of(common(folder, path)));
        LineNames { folder: folder.to_owned() }
    }

    /// The name of a frame's line.
    pub fn name(&self, trace: &Trace, id: FrameId) -> String {
        let frame = trace.stacks.frame(id);
        let (path, function) = (trace.strings.get(frame.file), trace.strings.get(frame.function));
        format!("{}:{} {function}", self.short(path), frame.line)
    }

    /// A path without what says nothing.
    pub fn short<'a>(&self, path: &'a str) -> &'a str {
        installed(path).unwrap_or_else(|| path.strip_prefix(&self.folder).unwrap_or(path))
    }
}

fn folder_of(path: &str) -> &str {
    path.rfind('/').map_or("", |slash| &path[..=slash])
}

/// What two paths begin with.
fn common<'a>(a: &'a str, b: &str) -> &'a str {
    let same = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
    &a[..same]
}

/// "mlx_lm/models/llama.py" of "/…/site-packages/mlx_lm/models/llama.py", "runpy.py" of "/…/lib/python3.12/runpy.py".
fn installed(path: &str) -> Option<&str> {
    for folder in ["/site-packages/", "/dist-packages/"] {
        if let Some(at) = path.rfind(folder) {
            return Some(&path[at + folder.len()..]);
        }
    }
    let after = &path[path.rfind("/lib/python3.")? + "/lib/".len()..];
    after.split_once('/').map(|(_, below)| below)
}

#[cfg(test)]
mod tests {
    use super::*;
    use memviz_trace::{Frame, TraceBuilder};

    #[test]
    fn lines_are_named_below_their_common_folder() {
        let names = |files: &[&str]| {
            let mut builder = TraceBuilder::default();
            for file in files {
                let (file, function) = (builder.intern(file), builder.intern("step"));
                builder.trace.stacks.intern_frame(Frame { file, function, line: 3, ..Frame::default() });
            }
            let trace = builder.finish();
            let names = LineNames::new(&trace);
            (0..files.len() as u32).map(|id| names.name(&trace, FrameId(id))).collect::<Vec<_>>()
        };
        let installed = "/home/u/.venv/lib/python3.12/site-packages/mlx_lm/generate.py";
        let found = names(&["/home/u/proj/train.py", "/home/u/proj/models/a.py", installed, "<string>"]);
        assert_eq!(found, ["train.py:3 step", "models/a.py:3 step", "mlx_lm/generate.py:3 step", "<string>:3 step"]);
        assert_eq!(names(&["/h/é/a.py", "/h/è/b.py"]), ["é/a.py:3 step", "è/b.py:3 step"]);
        assert_eq!(names(&["train.py"]), ["train.py:3 step"]);
    }
}
