//! Files under another name: what a notebook compiles as `/tmp/ipykernel_71/19.py`, its user knows as `In [3]`.

use rustc_hash::FxHashMap;

use crate::ids::StackId;
use crate::stacks::{Frame, StackTable};
use crate::trace::Trace;

impl Trace {
    /// Shows `to` for every frame in the file `from`, for all pairs (from, to). Stacks that become equal become one.
    pub fn rename_files<'a>(&mut self, names: impl IntoIterator<Item = (&'a str, &'a str)>) {
        let names: FxHashMap<&str, &str> = names.into_iter().collect();
        let files = (0..self.stacks.frame_count() as u32).map(|id| self.stacks.frame(crate::FrameId(id)).file);
        let files: Vec<_> = files.filter(|&file| names.contains_key(self.strings.get(file))).collect();
        let mut new_of = FxHashMap::default();
        for file in files {
            if let Some(to) = names.get(self.strings.get(file)) {
                new_of.insert(file, self.strings.intern(to));
            }
        }
        if !new_of.is_empty() {
            self.replace_frames(|frame| Frame { file: *new_of.get(&frame.file).unwrap_or(&frame.file), ..frame });
        }
    }

    fn replace_frames(&mut self, replace: impl Fn(Frame) -> Frame) {
        let mut stacks = StackTable::default();
        let mut new_of = vec![StackId(0)];
        for old in (1..self.stacks.stack_count() as u32).map(StackId) {
            // A caller has a lower id than the stacks it calls into, so it is there already.
            let caller = new_of[self.stacks.caller(old).index()];
            let frame = self.stacks.innermost(old).map(|id| replace(self.stacks.frame(id)));
            let frame = frame.map(|frame| stacks.intern_frame(frame));
            new_of.push(frame.map_or(caller, |frame| stacks.push(caller, frame)));
        }
        let new = |old: &mut StackId| *old = new_of.get(old.index()).copied().unwrap_or_default();
        for event in &mut self.events {
            new(&mut event.built);
            new(&mut event.triggered);
        }
        for buffer in &mut self.start {
            new(&mut buffer.built);
            new(&mut buffer.triggered);
        }
        new(&mut self.header.ending.stack);
        self.stacks = stacks;
    }
}

#[cfg(test)]
mod tests {
    use crate::{Action, Event, Frame, StackId, TraceBuilder};

    #[test]
    fn files_have_new_names_and_equal_stacks_are_one() {
        let mut builder = TraceBuilder::default();
        let stacks = ["/tmp/1.py", "/tmp/2.py", "train.py"].map(|file| {
            let frame = Frame { file: builder.intern(file), line: 7, ..Frame::default() };
            let frame = builder.trace.stacks.intern_frame(frame);
            builder.trace.stacks.push(StackId(0), frame)
        });
        for (at, built) in stacks.into_iter().enumerate() {
            let addr = 0x1000 * (at as u64 + 1);
            builder.push(Event { action: Action::AllocNew, addr, size: 64, built, ..Event::default() });
        }
        let mut trace = builder.finish();
        trace.rename_files([("/tmp/1.py", "In [3]"), ("/tmp/2.py", "In [3]"), ("none.py", "In [4]")]);
        let file = |event: &Event| {
            let frame = trace.stacks.innermost(event.built).unwrap();
            trace.strings.get(trace.stacks.frame(frame).file)
        };
        assert_eq!(trace.events.iter().map(file).collect::<Vec<_>>(), ["In [3]", "In [3]", "train.py"]);
        assert_eq!(trace.events[0].built, trace.events[1].built);
        assert!(trace.check().is_ok());
    }
}
