//! The self-contained page: one HTML file with the viewer and the answers that it needs, for a colleague without memviz.
//!
//! What is stored is what the server would answer, to the byte; how much of it is decided by size. What was left out is said
//! on the page. Not here: which answers (`choose`), how they are stored (`pack`).

mod choose;
mod html;
mod pack;

use std::path::Path;

use memviz_format::{FormatError, write_whole};

use crate::api::Api;
use crate::store::State;
use pack::Pack;

/// How large a page may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageOptions {
    /// Most bytes of the answers, compressed; base64 makes a third more of them.
    pub budget_bytes: usize,
}

impl Default for PageOptions {
    fn default() -> PageOptions {
        PageOptions { budget_bytes: 8 << 20 }
    }
}

/// A page that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageWritten {
    /// How long the file is.
    pub size_bytes: u64,
    /// Answers in it.
    pub answers: usize,
    /// What is not in it, one sentence each.
    pub left_out: Vec<String>,
}

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PageError {
    /// A recording could not be read.
    #[error("{name}: {error}")]
    Recording {
        /// Short name.
        name: String,
        /// Why.
        error: String,
    },
    /// The viewer that was built into this program lacks a part.
    #[error(
        "the viewer in this program has no {missing}; build it by `npm ci && npm run build` in viewer/ and build again"
    )]
    NoViewer {
        /// What was looked for.
        missing: &'static str,
    },
    /// The file could not be written.
    #[error(transparent)]
    Write(#[from] FormatError),
}

/// Writes the page of `api`'s recordings, waiting until they are read. `progress` hears what is being done and its part.
///
/// # Errors
/// A recording can't be read, or the file can't be written; nothing is left behind then.
pub fn write_page(
    api: &Api,
    path: &Path,
    options: PageOptions,
    progress: &mut dyn FnMut(&str, f64),
) -> Result<PageWritten, PageError> {
    api.store().wait(|part| progress("reading", part));
    for state in api.store().states() {
        if let State::Failed(error) = state {
            return Err(PageError::Recording { name: path.display().to_string(), error });
        }
    }
    let mut pack = Pack::new(api, options.budget_bytes);
    choose::fill(&mut pack, progress);
    let (answers, left_out) = (pack.len(), pack.left_out().to_vec());
    progress("compressing", 1.0);
    let page = html::page(&pack.base64())?;
    write_whole(path, |out| out.write_all(page.as_bytes()).map_err(FormatError::Write))?;
    Ok(PageWritten { size_bytes: page.len() as u64, answers, left_out })
}
