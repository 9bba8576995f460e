//! Interned strings of one trace.

use rustc_hash::FxHashMap;

use crate::ids::StringId;

/// A set of strings with stable ids in order of first sight. Id 0 is the empty string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strings {
    by_id: Vec<Box<str>>,
    ids: FxHashMap<Box<str>, StringId>,
}

impl Default for Strings {
    fn default() -> Self {
        let mut strings = Strings { by_id: Vec::new(), ids: FxHashMap::default() };
        strings.intern("");
        strings
    }
}

impl Strings {
    /// The id of `text`, new or old.
    pub fn intern(&mut self, text: &str) -> StringId {
        if let Some(&id) = self.ids.get(text) {
            return id;
        }
        let id = StringId(self.by_id.len() as u32);
        self.by_id.push(text.into());
        self.ids.insert(text.into(), id);
        id
    }

    /// The string of `id`, or "" when the id is foreign.
    pub fn get(&self, id: StringId) -> &str {
        self.by_id.get(id.index()).map_or("", |text| text)
    }

    /// Number of strings, the empty one included.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Never true: the empty string is always there.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }
}
