//! What of a recorded MLX run is drawn in a viewport: which blocks there are, bricks or areas, bands, places.
//!
//! Pure functions of a [`memviz_trace::Trace`]. [`Layout::new`] passes over the events once; then [`Layout::timeline`] and
//! [`Layout::bands`] answer any viewport in time that grows with what is drawn, and sums are exact in every column. Events that
//! cannot be true are skipped as in `memviz_analyze`, so both see the same sums. A trace with more than 2^32 - 2 events is cut
//! there.
//!
//! Methods that take a trace need the one that the layout was made of.
//!
//! Not here: files (`memviz-format`), requests and their encoding (`memviz-view`).
//!
//! ```
//! use memviz_layout::{Axis, By, Groups, Layout, Picture, Viewport, Window};
//! use memviz_trace::{Action, Event, TraceBuilder};
//!
//! let mut builder = TraceBuilder::default();
//! builder.push(Event { action: Action::AllocNew, addr: 0x1000, size: 64, ..Event::default() });
//! builder.push(Event { action: Action::AllocNew, addr: 0x2000, size: 32, ..Event::default() });
//! builder.push(Event { action: Action::FreeActiveToOs, addr: 0x1000, size: 64, ..Event::default() });
//! let trace = builder.finish();
//! let layout = Layout::new(&trace);
//! assert_eq!(layout.live_blocks(2), [0, 1]);
//! assert_eq!(layout.block_at(2, 70), Some(1));
//!
//! let window = Window { axis: Axis::Event, from: 0.0, to: 3.0, columns: 3 };
//! let view = Viewport { window, low: 0.0, high: 96.0, rows: 96, areas: false };
//! let scene = layout.timeline(&trace, &Groups::new(&trace, &layout, By::Line), &view)?;
//! assert_eq!(scene.active, [0.0, 64.0, 96.0]);
//! let Picture::Bricks(bricks) = scene.picture else { unreachable!() };
//! assert_eq!(bricks.block, [0, 1]);
//! assert_eq!(bricks.run_bottom, [0.0, 64.0]);
//! # Ok::<(), memviz_layout::Invalid>(())
//! ```

mod areas;
mod axes;
mod bands;
mod blocks;
mod bricks;
mod columns;
mod groups;
mod layout;
mod marks;
mod pass;
mod place;
mod presence;
mod ribbons;
mod samples;
mod scene;
mod spans;
mod stack;
mod sums;
mod types;

pub use axes::Axes;
pub use groups::Groups;
pub use layout::Layout;
pub use types::{
    Axis, BandMark, Bands, BlockId, BlockInfo, Bricks, By, Invalid, Lane, MOST_COLUMNS, MOST_ROWS, Moment, NEVER,
    PeakAt, Picture, Place, Scene, Tenants, Viewport, Window,
};
