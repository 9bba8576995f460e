//! The one place where Rust errors become Python exceptions.

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyOSError};
use pyo3::prelude::*;

create_exception!(mlx_memviz, MemvizError, PyException, "Base of every error that mlx_memviz raises itself.");
create_exception!(mlx_memviz, AttachError, MemvizError, "Recording was refused; nothing in the process was changed.");
create_exception!(
    mlx_memviz,
    TraceError,
    MemvizError,
    "A trace breaks one of its equations, or a file is not a trace."
);

/// A text with its causes: "cannot read x: permission denied".
fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// Attaching was refused.
pub fn attach(error: memviz_agent::error::AttachError) -> PyErr {
    AttachError::new_err(with_sources(&error))
}

/// A trace does not hold.
pub fn violation(error: memviz_trace::Violation) -> PyErr {
    TraceError::new_err(with_sources(&error))
}

/// A file could not be written: an `OSError` with errno and path where the system gave one.
pub fn io(error: std::io::Error, path: &std::path::Path) -> PyErr {
    match error.raw_os_error() {
        Some(errno) => {
            let text = error.to_string();
            PyOSError::new_err((errno, text, path.to_path_buf()))
        }
        None => PyOSError::new_err(format!("{error}: {}", path.display())),
    }
}

/// A trace could not be written or read; what the system refused is an `OSError`.
pub fn format(error: memviz_format::FormatError, path: &std::path::Path) -> PyErr {
    use memviz_format::FormatError::{Read, Write};
    let error = match error {
        Read(error) | Write(error) => return io(error, path),
        error => error,
    };
    TraceError::new_err(format!("{}: {}", path.display(), with_sources(&error)))
}
