//! Answers of a page, within a size: a frame that names each request and holds its answer, compressed.

use std::io::Write as _;

use base64::Engine as _;
use flate2::Compression;
use flate2::write::GzEncoder;
use rustc_hash::FxHashSet;
use serde_json::{Value, json};

use crate::answer::{Answer, ContentType};
use crate::api::Api;
use crate::frame::Frame;

/// Answers under construction.
pub(super) struct Pack<'a> {
    api: &'a Api,
    budget: usize,
    /// Compressed bytes so far, each answer by itself: a bit more than they take together.
    used: usize,
    index: Vec<Value>,
    known: FxHashSet<String>,
    bytes: Vec<u8>,
    left_out: Vec<String>,
}

impl<'a> Pack<'a> {
    pub(super) fn new(api: &'a Api, budget: usize) -> Pack<'a> {
        let (index, known) = (Vec::new(), FxHashSet::default());
        Pack { api, budget, used: 0, index, known, bytes: Vec::new(), left_out: Vec::new() }
    }

    pub(super) fn api(&self) -> &'a Api {
        self.api
    }

    /// Asks and stores; a refusal is not stored, the page says then that it doesn't have it. `None` when the answer would
    /// take the pack beyond `share` of its size, from 0 to 1.
    pub(super) fn ask(&mut self, request: &str, share: f64) -> Option<Answer> {
        let (path, query) = request.split_once('?').unwrap_or((request, ""));
        let answer = self.api.answer(path, query);
        let is_new = answer.is_ok() && !self.known.contains(request);
        if is_new && !self.store(request, answer.content_type, &answer.body, share) {
            return None;
        }
        Some(answer)
    }

    fn store(&mut self, request: &str, kind: ContentType, body: &[u8], share: f64) -> bool {
        let size = compressed(body, Compression::fast()).len() + request.len();
        if (self.used + size) as f64 > self.budget as f64 * share {
            return false;
        }
        self.used += size;
        self.push(request, kind, body);
        true
    }

    fn push(&mut self, request: &str, kind: ContentType, body: &[u8]) {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        let (at, length) = (self.bytes.len(), body.len());
        self.index.push(json!({ "request": request, "kind": kind.name(), "at": at, "length": length }));
        self.known.insert(request.to_owned());
        self.bytes.extend_from_slice(body);
    }

    /// Says what is not in the page.
    pub(super) fn leave_out(&mut self, sentence: String) {
        self.left_out.push(sentence);
    }

    pub(super) fn left_out(&self) -> &[String] {
        &self.left_out
    }

    pub(super) fn len(&self) -> usize {
        self.index.len()
    }

    /// Stores the list of recordings as that of a page.
    pub(super) fn finish(&mut self) {
        let answer = self.api.answer("recordings", "");
        if let Ok(mut list) = serde_json::from_slice::<Value>(&answer.body) {
            list["form"] = json!("page");
            list["left_out"] = json!(self.left_out);
            self.push("recordings", ContentType::Json, list.to_string().as_bytes());
        }
    }

    /// The text of the page's script element.
    pub(super) fn base64(self) -> String {
        let mut frame = Frame::new(json!({ "answers": self.index, "left_out": self.left_out }));
        frame.u8("bytes", &self.bytes);
        base64::engine::general_purpose::STANDARD.encode(compressed(&frame.finish(), Compression::best()))
    }
}

fn compressed(bytes: &[u8], level: Compression) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), level);
    // A Vec takes every byte.
    let _never_fails = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}
