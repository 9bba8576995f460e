//! [`Layout::timeline`]: one picture. Bricks and areas have files of their own.

use memviz_trace::Trace;

use crate::groups::Groups;
use crate::layout::Layout;
use crate::samples::Sampled;
use crate::types::{Invalid, Picture, Scene, Viewport};

/// Sizes beyond are clipped: above it, not every number of bytes is a double.
const MOST_BYTES: u64 = 1 << 53;

pub(crate) fn bytes_as_f64(bytes: u64) -> f64 {
    bytes.min(MOST_BYTES) as f64
}

/// A picture and what it leaves out of each column.
pub(crate) struct Drawn {
    pub(crate) picture: Picture,
    pub(crate) groups: Vec<u32>,
    pub(crate) rest: Vec<f64>,
    pub(crate) outside: Vec<f64>,
    /// Blocks that are drawn by themselves or would be, were they between `low` and `high`.
    pub(crate) bricks: u64,
}

impl Layout {
    /// What is drawn in a viewport. `groups` are of this layout.
    ///
    /// # Errors
    /// A viewport that is empty, endless or too fine, and the step axis of a recording without steps.
    pub fn timeline(&self, trace: &Trace, groups: &Groups, view: &Viewport) -> Result<Scene, Invalid> {
        view.check()?;
        let sampled = self.sampled(trace, &view.window)?;
        let drawn = if view.areas { self.areas(groups, &sampled) } else { self.bricks(groups, &sampled, view) };
        let Sampled { samples, active, lowest } = sampled;
        Ok(Scene {
            small: self.blocks_within(samples.bounds).saturating_sub(drawn.bricks),
            moment: samples.moments,
            active: active.into_iter().map(bytes_as_f64).collect(),
            lowest: lowest.into_iter().map(bytes_as_f64).collect(),
            rest: drawn.rest,
            outside: drawn.outside,
            groups: drawn.groups,
            picture: drawn.picture,
        })
    }
}
