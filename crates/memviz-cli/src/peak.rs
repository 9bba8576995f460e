//! `memviz peak FILE`: what was held when memory was highest, or at another moment.

use clap::ValueEnum;
use memviz_analyze::{Amount, By, Held, HeldGroup, HeldOptions, Instant, TreeRow};

use crate::answer::{Question, Report, to_json};
use crate::input::{Asked, Input, Source};
use crate::render::{Page, Place, Table, bar, clean, moment, percent, primitives, size, thousands};
use crate::size::text_from_bytes;

const EXAMPLES: &str = "\
Examples:
  memviz peak run.memviz                            lines that held the memory at its peak
  memviz peak run.memviz --by primitive --at last   what is left at the end, by primitive
  memviz peak run.memviz --at 12 --frames all       the peak of step 12, with every call below your lines";

/// Flags of `peak`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PeakArgs {
    #[command(flatten)]
    input: Input,
    /// The highest active plus cached bytes, not the highest active ones
    #[arg(long)]
    reserved: bool,
    /// Another moment: start, last, a time (1.5s), or a step (12), of which the highest moment is taken
    #[arg(long, value_name = "MOMENT")]
    at: Option<Instant>,
    /// What a row stands for
    #[arg(long, value_enum, default_value_t)]
    by: ByFlag,
    /// Whether calls below your lines are folded into them, or shown as a tree of all calls
    #[arg(long, value_enum, default_value_t)]
    frames: FramesFlag,
    /// Number of rows
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum ByFlag {
    #[default]
    Line,
    Module,
    Primitive,
    Dtype,
    Shape,
    Annotation,
    Stack,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, ValueEnum)]
enum FramesFlag {
    #[default]
    User,
    All,
}

impl From<ByFlag> for By {
    fn from(flag: ByFlag) -> By {
        match flag {
            ByFlag::Line => By::Line,
            ByFlag::Module => By::Module,
            ByFlag::Primitive => By::Primitive,
            ByFlag::Dtype => By::Dtype,
            ByFlag::Shape => By::Shape,
            ByFlag::Annotation => By::Annotation,
            ByFlag::Stack => By::Stack,
        }
    }
}

impl Question for PeakArgs {
    fn asked(&self) -> Asked {
        self.input.asked()
    }

    fn answer(&self, sources: &[Source]) -> anyhow::Result<Box<dyn Report>> {
        let options = HeldOptions {
            reserved: self.reserved,
            at: self.at,
            by: self.by.into(),
            top: self.top,
            all_frames: self.frames == FramesFlag::All,
        };
        let held = Held::new(&self.input.choose(sources)?.trace, options);
        Ok(Box::new(held.map_err(anyhow::Error::msg)?))
    }
}

impl Report for Held {
    fn json(&self) -> String {
        to_json(self)
    }

    fn draw(&self, page: &mut Page) {
        page.title("memviz peak", &self.about);
        page.blank();
        numbers(page, self);
        if self.tree.is_empty() {
            rows(page, self);
        } else {
            tree(page, self);
        }
    }
}

fn numbers(page: &mut Page, held: &Held) {
    let is_reserved = held.which == "peak reserved";
    let label = match held.which {
        "peak active" => "Peak active",
        "peak reserved" => "Peak reserved",
        "highest of the step" => "Peak of step",
        "last" => "At the end",
        "start" => "At the start",
        _ => "Active",
    };
    let bytes = if is_reserved { held.moment.reserved_bytes() } else { held.moment.active_bytes };
    let cached = format!("{}, and {} cached", moment(&held.moment), size(held.moment.cached_bytes));
    page.number(label, &text_from_bytes(bytes), &cached);
    page.number("Buffers", &thousands(held.total.count), &format!("with {} active", size(held.total.bytes)));
    if held.temporary.count > 0 {
        let place = held
            .evaluated_at
            .as_ref()
            .map_or_else(String::new, |line| format!(" of the evaluation at {}", page.short(&line.file, line.line)));
        let text = format!("temporaries{place}: {}, freed by MLX before it ended", buffers(held.temporary));
        page.number("Of them", &text_from_bytes(held.temporary.bytes), &text);
        let text = format!("survive it: {}", buffers(held.surviving));
        page.number("", &text_from_bytes(held.surviving.bytes), &text);
    }
}

fn buffers(amount: Amount) -> String {
    format!("{} buffer{}", thousands(amount.count), if amount.count == 1 { "" } else { "s" })
}

fn noun(by: By) -> &'static str {
    match by {
        By::Line => "line",
        By::Module => "module",
        By::Primitive => "primitive",
        By::Dtype => "dtype",
        By::Shape => "shape",
        By::Annotation => "annotation",
        By::Stack => "stack",
    }
}

fn rows(page: &mut Page, held: &Held) {
    let noun = noun(held.by);
    let title = match held.by {
        By::Line | By::Stack => format!("By the {noun} that built it"),
        _ => format!("By {noun}"),
    };
    let share = |bytes: u64| if held.total.bytes == 0 { 0.0 } else { bytes as f64 / held.total.bytes as f64 };
    let count = |count: u64| if count == 0 { String::new() } else { thousands(count) };
    let temporary = |bytes: u64| if bytes == 0 { String::new() } else { text_from_bytes(bytes) };
    let mut table = Table::new(&title, noun).bytes("bytes").share("share").bars().number("buffers");
    let has_temporaries = held.temporary.count > 0;
    if has_temporaries {
        table = table.bytes("temporary");
    }
    let cells = |bytes: u64, buffers: u64, temporaries: u64| {
        vec![text_from_bytes(bytes), percent(share(bytes)), bar(share(bytes)), count(buffers), temporary(temporaries)]
    };
    for group in &held.groups {
        let place = place(page, held, group);
        table.row(
            cells(group.line.bytes, group.line.count, group.temporary.bytes),
            place,
            trailing(page, held.by, group),
        );
    }
    let shown: u64 = held.groups.iter().map(|group| group.temporary.bytes).sum();
    let left_out = held.temporary.bytes.saturating_sub(shown);
    table.rest(cells(held.rest.bytes, held.rest.count, left_out), held.rest.lines, noun);
    page.table(&table);
}

fn place(page: &Page, held: &Held, group: &HeldGroup) -> Place {
    if group.name.is_empty() { Place::of(page, &group.line, held.is_window) } else { Place::Words(clean(&group.name)) }
}

/// Of lines their primitives, of stacks the callers, of other groups the line with most of it.
fn trailing(page: &Page, by: By, group: &HeldGroup) -> Vec<String> {
    match by {
        By::Line => primitives(&group.line),
        By::Stack => group.stack.iter().rev().skip(1).map(|call| page.short(&call.file, call.line)).collect(),
        _ if group.line.file.is_empty() => Vec::new(),
        _ => vec![page.short(&group.line.file, group.line.line)],
    }
}

fn tree(page: &mut Page, held: &Held) {
    let mut table = Table::new("By call, outermost first; each with all that it called", "call");
    table = table.bytes("bytes").number("buffers");
    for TreeRow { depth, line, amount } in &held.tree {
        let place = format!("{}{}", "  ".repeat(*depth), page.short(&line.file, line.line));
        let place = Place::Line(place, clean(&line.function));
        table.row(vec![text_from_bytes(amount.bytes), thousands(amount.count)], place, Vec::new());
    }
    page.table(&table);
}
