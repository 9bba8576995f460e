//! What a request is answered with: a status and a body, or a refusal that says what to do.

use serde::Serialize;
use serde_json::json;

/// What a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentType {
    /// JSON in UTF-8.
    Json,
    /// A frame of typed arrays, see `formats/view.md`.
    Frame,
}

impl ContentType {
    /// As HTTP spells it.
    pub fn mime(self) -> &'static str {
        match self {
            ContentType::Json => "application/json",
            ContentType::Frame => "application/octet-stream",
        }
    }

    /// As the pack of the self-contained page spells it.
    pub fn name(self) -> &'static str {
        match self {
            ContentType::Json => "json",
            ContentType::Frame => "frame",
        }
    }
}

/// An answer, ready to be sent or stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Of HTTP: 200, or 4xx and 5xx with `{"error": …}`.
    pub status: u16,
    /// What `body` is.
    pub content_type: ContentType,
    /// The bytes.
    pub body: Vec<u8>,
}

impl Answer {
    /// Was the question answered?
    pub fn is_ok(&self) -> bool {
        self.status == 200
    }

    pub(crate) fn frame(body: Vec<u8>) -> Answer {
        Answer { status: 200, content_type: ContentType::Frame, body }
    }

    pub(crate) fn json(data: &impl Serialize) -> Answer {
        match serde_json::to_vec(data) {
            Ok(body) => Answer { status: 200, content_type: ContentType::Json, body },
            Err(error) => Refusal::new(500, format!("the answer is no JSON: {error}; report this")).into(),
        }
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) error: String,
}

impl Refusal {
    pub(crate) fn new(status: u16, error: impl Into<String>) -> Refusal {
        Refusal { status, error: error.into() }
    }

    /// The request is wrong.
    pub(crate) fn bad(error: impl Into<String>) -> Refusal {
        Refusal::new(400, error)
    }
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Answer {
        let body = json!({ "error": crate::clip::text(&refusal.error) }).to_string().into_bytes();
        Answer { status: refusal.status, content_type: ContentType::Json, body }
    }
}
