//! Which frame of a stack is the line that a user wants to read.
//!
//! Frames have classes, told apart by path; the line of a stack is the innermost frame of the best class in it. So a
//! training script sees its own lines, and `memviz run -m mlx_lm generate`, where no file of the user's runs, sees the lines
//! of mlx_lm rather than those of `mlx.nn` below them.

use memviz_trace::{Frame, FrameId, StackId, StringId, Trace};
use rustc_hash::FxHashMap;

/// What kind of code a frame belongs to; later is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FrameClass {
    /// Frames of mlx-memviz itself and its launcher: never shown.
    Memviz,
    /// Machine code: never a user's line.
    Native,
    /// MLX and the standard library.
    Library,
    /// Module level of a console script (`bin/mlx_lm.generate`): it only calls an entry point.
    Launcher,
    /// Other installed packages.
    ThirdParty,
    /// Everything else, code given by `-c` and notebook cells included.
    User,
}

impl FrameClass {
    /// Class of a frame of `trace`.
    pub fn of(trace: &Trace, frame: Frame) -> FrameClass {
        if frame.is_native {
            return FrameClass::Native;
        }
        class_of_path(trace.strings.get(frame.file), trace.strings.get(frame.function))
    }

    /// Class of every frame of `trace`, by its id. A path is looked at once, however many frames have it.
    pub fn of_all(trace: &Trace) -> Vec<FrameClass> {
        let mut known: FxHashMap<(StringId, StringId, bool), FrameClass> = FxHashMap::default();
        let frames = (0..trace.stacks.frame_count() as u32).map(|id| trace.stacks.frame(FrameId(id)));
        let class = |frame: Frame| {
            let key = (frame.file, frame.function, frame.is_native);
            *known.entry(key).or_insert_with(|| FrameClass::of(trace, frame))
        };
        frames.map(class).collect()
    }
}

fn class_of_path(path: &str, function: &str) -> FrameClass {
    let parts: Vec<&str> = path.split(['/', '\\']).filter(|part| !part.is_empty()).collect();
    let (folders, name) = parts.split_last().map_or((&parts[..], path), |(name, folders)| (folders, *name));
    let is_script = folders.last() == Some(&"bin") && !name.ends_with(".py") && function == "<module>";
    if folders.contains(&"mlx_memviz") || (is_script && name == "memviz") {
        FrameClass::Memviz
    } else if let Some(at) = folders.iter().rposition(|part| matches!(*part, "site-packages" | "dist-packages")) {
        if folders.get(at + 1) == Some(&"mlx") { FrameClass::Library } else { FrameClass::ThirdParty }
    } else if is_standard_library(folders, name) {
        FrameClass::Library
    } else if is_script {
        FrameClass::Launcher
    } else {
        FrameClass::User
    }
}

/// `lib/python3.12/…`, `lib/python312.zip/…` or a module frozen into the interpreter.
fn is_standard_library(folders: &[&str], name: &str) -> bool {
    let is_home = |part: &str| {
        part.strip_prefix("python").is_some_and(|version| version.starts_with(|digit: char| digit.is_ascii_digit()))
    };
    let mut pairs = folders.windows(2);
    name.starts_with("<frozen ") || pairs.any(|pair| matches!(pair[0], "lib" | "lib64") && is_home(pair[1]))
}

/// The user's line of every stack of a trace, computed once: a stack's line follows from its caller's. Frames that differ in
/// column only are the same line; the first of them stands for all.
#[derive(Clone, Debug)]
pub struct UserLines {
    by_stack: Vec<Choice>,
}

/// Best line and innermost frame of one stack.
#[derive(Clone, Copy, Debug, Default)]
struct Choice {
    line: Option<(FrameClass, FrameId)>,
    innermost: Option<FrameId>,
}

impl Choice {
    /// The stack that calls on into `frame`. An equal class wins, because `frame` is the inner one.
    fn then(self, class: FrameClass, frame: FrameId) -> Choice {
        match class {
            FrameClass::Memviz => self,
            FrameClass::Native => Choice { innermost: Some(frame), ..self },
            _ if self.line.is_some_and(|(best, _)| best > class) => Choice { innermost: Some(frame), ..self },
            _ => Choice { line: Some((class, frame)), innermost: Some(frame) },
        }
    }
}

impl UserLines {
    /// Classifies every frame and stack of `trace`.
    pub fn new(trace: &Trace) -> UserLines {
        let stacks = &trace.stacks;
        let classes = FrameClass::of_all(trace);
        let lines = first_frame_of_each_line(trace);
        let mut by_stack: Vec<Choice> = vec![Choice::default()];
        for stack in (1..stacks.stack_count() as u32).map(StackId) {
            // A caller is interned before the stack that calls on, so its choice is there already.
            let outer = by_stack.get(stacks.caller(stack).index()).copied().unwrap_or_default();
            let innermost = stacks.innermost(stack).map(|frame| (classes[frame.index()], lines[frame.index()]));
            let choice = innermost.map_or(outer, |(class, line)| outer.then(class, line));
            by_stack.push(choice);
        }
        UserLines { by_stack }
    }

    /// The innermost frame of the best class in `stack`; `None` when it has no Python frame but memviz's own.
    pub fn line_of(&self, stack: StackId) -> Option<FrameId> {
        self.by_stack.get(stack.index())?.line.map(|(_, frame)| frame)
    }

    /// The innermost frame of `stack`, of any class but memviz's own.
    pub fn innermost(&self, stack: StackId) -> Option<FrameId> {
        self.by_stack.get(stack.index())?.innermost
    }
}

/// For every frame, the first one on the same line of the same function.
fn first_frame_of_each_line(trace: &Trace) -> Vec<FrameId> {
    let mut firsts: FxHashMap<Frame, FrameId> = FxHashMap::default();
    let frames = (0..trace.stacks.frame_count() as u32).map(FrameId);
    frames.map(|id| *firsts.entry(Frame { column: 0, ..trace.stacks.frame(id) }).or_insert(id)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use memviz_trace::TraceBuilder;

    const SITE: &str = "/home/u/.venv/lib/python3.12/site-packages";

    #[test]
    fn columns_of_a_line_are_one_line() {
        let mut builder = TraceBuilder::default();
        let file = builder.intern("train.py");
        let ids =
            [5, 9].map(|column| builder.trace.stacks.intern_frame(Frame { file, line: 3, column, ..Frame::default() }));
        let stacks = ids.map(|id| builder.trace.stacks.push(StackId(0), id));
        let lines = UserLines::new(&builder.finish());
        assert_eq!(stacks.map(|stack| lines.line_of(stack)), [Some(ids[0]); 2]);
    }

    #[test]
    fn paths_tell_classes_apart() {
        let cases = [
            ("/home/u/train.py", FrameClass::User),
            ("train.py", FrameClass::User),
            ("/home/u/lib/pythonic/train.py", FrameClass::User),
            ("/home/u/mlx/train.py", FrameClass::User),
            ("<string>", FrameClass::User),
            ("<stdin>", FrameClass::User),
            ("", FrameClass::User),
            ("/home/u/bin/tool.py", FrameClass::User),
            ("/home/u/.venv/bin/mlx_lm.generate", FrameClass::Launcher),
            ("/home/u/.venv/bin/memviz", FrameClass::Memviz),
            (&format!("{SITE}/mlx_lm/models/llama.py"), FrameClass::ThirdParty),
            ("/usr/lib/python3/dist-packages/numpy/core.py", FrameClass::ThirdParty),
            (&format!("{SITE}/mlx/nn/layers/linear.py"), FrameClass::Library),
            (&format!("{SITE}/mlx_memviz/run.py"), FrameClass::Memviz),
            ("/src/mlx-memviz/python/mlx_memviz/run.py", FrameClass::Memviz),
            ("/usr/lib/python3.12/runpy.py", FrameClass::Library),
            ("/usr/lib64/python3.13t/threading.py", FrameClass::Library),
            ("/Library/Frameworks/Python.framework/Versions/3.12/lib/python3.12/runpy.py", FrameClass::Library),
            ("/usr/lib/python312.zip/runpy.py", FrameClass::Library),
            ("<frozen runpy>", FrameClass::Library),
        ];
        for (path, class) in cases {
            assert_eq!(class_of_path(path, "<module>"), class, "{path}");
        }
        assert_eq!(class_of_path("/home/u/bin/tool", "main"), FrameClass::User);
    }

    /// Line and innermost frame of a stack, outermost first, as positions in `paths`.
    fn choose(paths: &[&str]) -> (Option<usize>, Option<usize>) {
        let mut builder = TraceBuilder::default();
        let mut stack = StackId(0);
        let mut ids = Vec::new();
        for (line, path) in paths.iter().enumerate() {
            let file = builder.intern(path);
            let function = builder.intern("<module>");
            let is_native = path.ends_with(".cpp");
            let frame = Frame { file, function, line: line as u32, column: 0, is_native };
            ids.push(builder.trace.stacks.intern_frame(frame));
            stack = builder.trace.stacks.push(stack, ids[line]);
        }
        let lines = UserLines::new(&builder.finish());
        let position = |found: Option<FrameId>| found.map(|id| ids.iter().position(|other| *other == id).unwrap());
        (position(lines.line_of(stack)), position(lines.innermost(stack)))
    }

    #[test]
    fn innermost_frame_of_the_best_class_wins() {
        let (memviz, runpy) = (format!("{SITE}/mlx_memviz/run.py"), "<frozen runpy>");
        let (lm, nn) = (format!("{SITE}/mlx_lm/models/llama.py"), format!("{SITE}/mlx/nn/layers/linear.py"));
        assert_eq!(choose(&[&memviz, runpy, "/u/train.py", "/u/model.py", &lm, &nn]), (Some(3), Some(5)));
        assert_eq!(choose(&["/venv/bin/memviz", &memviz, runpy, &lm, &lm, &nn]), (Some(4), Some(5)));
        assert_eq!(choose(&["/venv/bin/mlx_lm.generate", &lm, &nn, "mlx/ops.cpp"]), (Some(1), Some(3)));
        assert_eq!(choose(&[&memviz, runpy, &nn]), (Some(2), Some(2)));
        assert_eq!(choose(&[&memviz, runpy]), (Some(1), Some(1)));
        assert_eq!(choose(&[&memviz]), (None, None));
        assert_eq!(choose(&["mlx/ops.cpp"]), (None, Some(0)));
        assert_eq!(choose(&[]), (None, None));
    }

    #[test]
    fn foreign_ids_have_no_line() {
        let lines = UserLines::new(&Trace::default());
        assert_eq!((lines.line_of(StackId(9)), lines.innermost(StackId(9))), (None, None));
    }
}
