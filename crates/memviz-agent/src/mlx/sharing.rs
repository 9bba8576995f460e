//! Primitives whose outputs use their input's buffer instead of one of their own (`mlx/backend/common/*.cpp`: the `eval`
//! functions that end in `copy_shared_buffer`). `tests/test_graph.py` runs each of them and looks at what it allocates.

/// Whether a primitive's outputs share the buffer of its first input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// It allocates.
    Never,
    /// A view.
    Always {
        /// The elements of the view lie in the order of the input's.
        keeps_order: bool,
    },
    /// A view if the input's elements lie in memory in order, else a copy.
    WhenRowContiguous,
}

/// For a primitive by MLX's name; one that is not known allocates.
pub fn sharing(primitive: &str) -> Sharing {
    match primitive {
        "Broadcast" | "BroadcastAxes" | "Transpose" | "Slice" | "Split" | "AsStrided" => {
            Sharing::Always { keeps_order: false }
        }
        "Copy" | "CustomTransforms" | "Depends" | "ExpandDims" | "Squeeze" | "StopGradient" | "Unflatten" => {
            Sharing::Always { keeps_order: true }
        }
        "Contiguous" | "Flatten" | "Reshape" => Sharing::WhenRowContiguous,
        // "View int32". One with wider items copies when its last axis is not contiguous, which is not looked at.
        view if view.starts_with("View ") => Sharing::Always { keeps_order: true },
        _ => Sharing::Never,
    }
}
