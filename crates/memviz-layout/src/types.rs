//! The questions and answers of this crate as plain data: viewports in, arrays out. `formats/view.md` says what each means.

/// A number of events: the state after that many events. 0 is before the first.
pub type Moment = u32;

/// Number of a block, in order of allocation.
pub type BlockId = u32;

/// `BlockInfo::died` of a block that is still alive at the end.
pub const NEVER: Moment = Moment::MAX;

/// Most columns of a picture.
pub const MOST_COLUMNS: usize = 4096;

/// Most rows of a picture.
pub const MOST_ROWS: usize = 2048;

/// What the picture extends over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Axis {
    /// Nanoseconds since the recording started.
    #[default]
    Time,
    /// Moments.
    Event,
    /// Number of the step plus the part of its time that has passed.
    Step,
}

impl Axis {
    /// Every axis.
    pub const ALL: [Axis; 3] = [Axis::Time, Axis::Event, Axis::Step];

    /// As requests spell it.
    pub fn name(self) -> &'static str {
        match self {
            Axis::Time => "time",
            Axis::Event => "event",
            Axis::Step => "step",
        }
    }

    /// The axis of that name.
    pub fn from_name(name: &str) -> Option<Axis> {
        Axis::ALL.into_iter().find(|axis| axis.name() == name)
    }
}

/// What colour groups of blocks stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum By {
    /// The line that built the array: `short/path.py:12 function`.
    #[default]
    Line,
    /// The chain of modules on the stack.
    Module,
    /// As MLX prints it.
    Primitive,
    /// "float32".
    Dtype,
    /// Annotations open where the block was allocated.
    Annotation,
    /// Device of the stream.
    Device,
    /// Thread that allocated.
    Thread,
    /// Step that it was allocated in.
    Step,
}

impl By {
    /// Every one.
    pub const ALL: [By; 8] =
        [By::Line, By::Module, By::Primitive, By::Dtype, By::Annotation, By::Device, By::Thread, By::Step];

    /// As requests spell it.
    pub fn name(self) -> &'static str {
        match self {
            By::Line => "line",
            By::Module => "module",
            By::Primitive => "primitive",
            By::Dtype => "dtype",
            By::Annotation => "annotation",
            By::Device => "device",
            By::Thread => "thread",
            By::Step => "step",
        }
    }

    /// The one of that name.
    pub fn from_name(name: &str) -> Option<By> {
        By::ALL.into_iter().find(|by| by.name() == name)
    }
}

/// A part of an axis in equal columns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Which axis.
    pub axis: Axis,
    /// Left edge of the first column.
    pub from: f64,
    /// Right edge of the last column.
    pub to: f64,
    /// How many columns.
    pub columns: usize,
}

/// A picture: `columns` × `rows` pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Viewport {
    /// The columns.
    pub window: Window,
    /// Bytes at the bottom.
    pub low: f64,
    /// Bytes at the top.
    pub high: f64,
    /// How many rows.
    pub rows: usize,
    /// Stacked areas of groups instead of bricks.
    pub areas: bool,
}

/// A picture's content. In every column `Σ bricks drawn + rest + outside == active`, or `Σ areas + rest == active`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scene {
    /// Sample of each column.
    pub moment: Vec<Moment>,
    /// Active bytes there: the highest of the column.
    pub active: Vec<f64>,
    /// Lowest active bytes within the column.
    pub lowest: Vec<f64>,
    /// Bytes of the sample that no brick or area shows.
    pub rest: Vec<f64>,
    /// Bytes of bricks beyond `low..high`; 0 with areas.
    pub outside: Vec<f64>,
    /// Groups that occur in the picture, as indices for [`crate::Groups::name`] and [`crate::Groups::key`], largest first.
    /// `Bricks::group` and the order of areas are positions in this.
    pub groups: Vec<u32>,
    /// Blocks alive within the window that are no bricks; with areas, all of them.
    pub small: u64,
    /// What is drawn.
    pub picture: Picture,
}

/// Bricks or areas.
#[derive(Clone, Debug, PartialEq)]
pub enum Picture {
    /// Blocks, each by itself.
    Bricks(Bricks),
    /// `Scene::groups.len() × columns` values, group after group.
    Areas(Vec<f64>),
}

impl Default for Picture {
    fn default() -> Picture {
        Picture::Bricks(Bricks::default())
    }
}

/// Bricks, by rising number of their blocks, and their runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bricks {
    /// Number of the block.
    pub block: Vec<BlockId>,
    /// Bytes.
    pub size: Vec<f64>,
    /// Position in `Scene::groups`.
    pub group: Vec<u32>,
    /// First run of each brick; one more at the end.
    pub run: Vec<u32>,
    /// First column of each run.
    pub run_from: Vec<u32>,
    /// Column after the last of each run.
    pub run_to: Vec<u32>,
    /// Rows above `low`.
    pub run_bottom: Vec<f32>,
}

/// The bands above a picture.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bands {
    /// Texts of spans.
    pub labels: Vec<String>,
    /// Rows of spans.
    pub lanes: Vec<Lane>,
    /// Points, in order of the axis.
    pub marks: Vec<BandMark>,
    /// Highest active bytes within each column.
    pub active: Vec<f64>,
    /// Highest cached bytes.
    pub cached: Vec<f64>,
    /// Highest active plus cached bytes.
    pub reserved: Vec<f64>,
    /// Limit of the cache in force at the end of the column, NaN when not known.
    pub cache_limit: Vec<f64>,
    /// Limit of memory, NaN when not known: no event of a recording tells it so far.
    pub memory_limit: Vec<f64>,
    /// What the driver said at the last checkpoint, NaN when not known.
    pub device_used: Vec<f64>,
    /// Index into `lanes`.
    pub span_lane: Vec<u32>,
    /// Index into `labels`.
    pub span_label: Vec<u32>,
    /// Axis position.
    pub span_from: Vec<f64>,
    /// Axis position.
    pub span_to: Vec<f64>,
    /// Spans drawn as this one.
    pub span_count: Vec<u32>,
}

/// A row of spans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// "step", "annotation", "evaluation" or "thread".
    pub kind: &'static str,
    /// For people.
    pub name: String,
}

/// A point above the picture.
#[derive(Clone, Debug, PartialEq)]
pub struct BandMark {
    /// Axis position.
    pub at: f64,
    /// Moment.
    pub event: Moment,
    /// "oom", "snapshot", "clear_cache", "cache_limit" or "checkpoint".
    pub kind: &'static str,
    /// For people.
    pub label: String,
    /// Marks drawn as this one.
    pub count: u32,
}

/// What is known of a block by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockInfo {
    /// Bytes.
    pub size: u64,
    /// Moment that it is alive from: 0 when it was there before the first event.
    pub born: Moment,
    /// Moment that it is gone from, or [`NEVER`].
    pub died: Moment,
    /// Position in `Trace::events` of its allocation.
    pub alloc_event: Option<usize>,
    /// Position in `Trace::events` of its free.
    pub free_event: Option<usize>,
}

/// Who else had the address of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tenants {
    /// The block that had it before.
    pub previous: Option<BlockId>,
    /// The block that had it next.
    pub next: Option<BlockId>,
    /// Blocks that ever had it, this one included.
    pub count: u64,
}

/// A moment on all axes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Place {
    /// The moment, which is its position on the event axis.
    pub event: Moment,
    /// Time of its last event.
    pub nanos: u64,
    /// Position on the time axis.
    pub time: f64,
    /// Position on the step axis, when the recording has steps.
    pub step: Option<f64>,
    /// Step under way, when the recording has steps.
    pub step_number: Option<u64>,
}

/// The highest value of a sum, and the first moment that has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeakAt {
    /// Moment.
    pub event: Moment,
    /// Bytes.
    pub bytes: u64,
}

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Invalid {
    /// An edge is NaN or infinite.
    #[error("{name} is {value}: expected a finite number")]
    NotFinite {
        /// Name of the parameter.
        name: &'static str,
        /// Its value.
        value: f64,
    },
    /// Nothing lies between two edges.
    #[error("{low_name} is {low} and {high_name} is {high}: expected {low_name} below {high_name}")]
    Empty {
        /// Name of the lower edge.
        low_name: &'static str,
        /// Its value.
        low: f64,
        /// Name of the upper edge.
        high_name: &'static str,
        /// Its value.
        high: f64,
    },
    /// Too many columns or rows, or none.
    #[error("{name} is {value}: expected 1 to {most}")]
    Count {
        /// Name of the parameter.
        name: &'static str,
        /// Its value.
        value: usize,
        /// The most that is answered.
        most: usize,
    },
    /// The step axis of a recording without steps.
    #[error("axis is step, but the recording has no steps: expected time or event; mark steps by mlx_memviz.step()")]
    NoSteps,
}
