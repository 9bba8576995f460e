//! Files that a command writes, whole or not at all. An existing file is replaced, as compilers and `torch.save` do; an input
//! of the command never is.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use memviz_format::{FormatError, write_whole};
use serde::Serialize;

use crate::answer::{Report, to_json};
use crate::render::Page;
use crate::size::text_from_bytes;

/// Version of the JSON form of [`WrittenFiles`].
const SCHEMA: u32 = 1;

/// Writes `path` through `fill`; nothing is left behind on an error.
///
/// # Errors
/// The destination is one of `inputs`, cannot be written, or `fill` fails.
pub(crate) fn write_file(
    path: &Path,
    inputs: &[PathBuf],
    fill: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), FormatError>,
) -> anyhow::Result<WrittenFile> {
    let is_input = |input: &PathBuf| same_file(input, path);
    if inputs.iter().any(is_input) {
        bail!("cannot write {}: it is the recording that is read; give another name with -o", path.display());
    }
    write_whole(path, fill).with_context(|| format!("cannot write {}", path.display()))?;
    let size_bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    Ok(WrittenFile { path: path.display().to_string(), size_bytes })
}

pub(crate) fn same_file(input: &Path, output: &Path) -> bool {
    match (std::fs::canonicalize(input), std::fs::canonicalize(output)) {
        (Ok(input), Ok(output)) => input == output,
        _ => false,
    }
}

/// A file that was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct WrittenFile {
    /// Where.
    pub(crate) path: String,
    /// How long it is.
    pub(crate) size_bytes: u64,
}

/// What a command that writes files says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct WrittenFiles {
    schema: u32,
    /// Name of the format.
    format: &'static str,
    /// What is in them, for people: "active at the peak, 1.2 GiB".
    content: String,
    /// The files; empty when `text` has the content.
    written: Vec<WrittenFile>,
    /// The content itself, of `-o -`.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl WrittenFiles {
    pub(crate) fn new(format: &'static str, content: String, written: Vec<WrittenFile>) -> WrittenFiles {
        WrittenFiles { schema: SCHEMA, format, content, written, text: None }
    }

    /// Of a text for standard output.
    pub(crate) fn of_text(format: &'static str, content: String, text: String) -> WrittenFiles {
        WrittenFiles { schema: SCHEMA, format, content, written: Vec::new(), text: Some(text) }
    }
}

impl Report for WrittenFiles {
    fn json(&self) -> String {
        to_json(self)
    }

    fn draw(&self, page: &mut Page) {
        if let Some(text) = &self.text {
            text.lines().for_each(|line| page.verbatim(line));
            return;
        }
        page.plain(&self.content);
        for file in &self.written {
            page.verbatim(&format!("wrote {} ({})", file.path, text_from_bytes(file.size_bytes)));
        }
    }
}

/// `file` with another suffix, in the current folder: the default name of what is made of it.
pub(crate) fn default_name(file: &Path, suffix: &str) -> PathBuf {
    let stem = file.file_stem().filter(|stem| *stem != "-").unwrap_or("memviz".as_ref());
    let mut name = stem.to_os_string();
    name.push(".");
    name.push(suffix);
    PathBuf::from(name)
}
