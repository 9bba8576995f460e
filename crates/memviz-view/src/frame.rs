//! Frames: a JSON header and typed arrays, as `formats/view.md` describes them.
//!
//! ```text
//!  0      4        8            8+H          8+H+at
//!  | MVV1 | H, u32 | JSON, H B  | array …    | array …
//! ```
//!
//! Everything is little endian, the arrays begin at multiples of 8. Example: a header `{"arrays":{…}}` of 61 bytes is padded
//! to 64, so that its first array is at 72.

use serde_json::{Map, Value, json};

const MAGIC: &[u8; 4] = b"MVV1";

/// A frame under construction.
#[derive(Debug, Default)]
pub(crate) struct Frame {
    header: Map<String, Value>,
    arrays: Map<String, Value>,
    bytes: Vec<u8>,
}

impl Frame {
    /// A frame whose header has the fields of `header`, a JSON object.
    pub(crate) fn new(header: Value) -> Frame {
        let header = if let Value::Object(fields) = header { fields } else { Map::new() };
        Frame { header, ..Frame::default() }
    }

    pub(crate) fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.header.insert(name.to_owned(), value.into());
    }

    pub(crate) fn u8(&mut self, name: &str, values: &[u8]) {
        self.begin(name, "u8", values.len());
        self.bytes.extend_from_slice(values);
    }

    pub(crate) fn u32(&mut self, name: &str, values: impl ExactSizeIterator<Item = u32>) {
        self.begin(name, "u32", values.len());
        values.for_each(|value| self.bytes.extend_from_slice(&value.to_le_bytes()));
    }

    pub(crate) fn f32(&mut self, name: &str, values: impl ExactSizeIterator<Item = f32>) {
        self.begin(name, "f32", values.len());
        values.for_each(|value| self.bytes.extend_from_slice(&value.to_le_bytes()));
    }

    pub(crate) fn f64(&mut self, name: &str, values: impl ExactSizeIterator<Item = f64>) {
        self.begin(name, "f64", values.len());
        values.for_each(|value| self.bytes.extend_from_slice(&value.to_le_bytes()));
    }

    fn begin(&mut self, name: &str, kind: &str, length: usize) {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        self.arrays.insert(name.to_owned(), json!({ "type": kind, "at": self.bytes.len(), "length": length }));
    }

    /// The frame as bytes.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.header.insert("arrays".to_owned(), Value::Object(self.arrays));
        let mut header = Value::Object(self.header).to_string().into_bytes();
        header.resize((8 + header.len()).next_multiple_of(8) - 8, b' ');
        let mut frame = Vec::with_capacity(8 + header.len() + self.bytes.len());
        frame.extend_from_slice(MAGIC);
        frame.extend_from_slice(&crate::clip::short(header.len()).to_le_bytes());
        frame.append(&mut header);
        frame.append(&mut self.bytes);
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_where_the_header_says() {
        let mut frame = Frame::new(json!({ "columns": 3 }));
        frame.u8("a", &[1, 2, 3]);
        frame.u32("b", [4].into_iter());
        frame.f64("c", [f64::NAN, 0.5].into_iter());
        let bytes = frame.finish();
        let length = u32::from_le_bytes(bytes[4..8].try_into().unwrap()) as usize;
        assert_eq!((&bytes[..4], (8 + length) % 8), (&b"MVV1"[..], 0));
        let header: Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
        let at = |name: &str| 8 + length + header["arrays"][name]["at"].as_u64().unwrap() as usize;
        assert_eq!((header["columns"].as_u64(), bytes[at("a") + 2], at("b") % 8), (Some(3), 3, 0));
        assert_eq!(bytes[at("b")..at("b") + 4], [4, 0, 0, 0]);
        assert_eq!(bytes[at("c") + 8..], 0.5_f64.to_le_bytes());
    }
}
