//! What the tests share: an API over traces, and frames read back.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::path::PathBuf;
use std::sync::Arc;

use memviz_trace::Trace;
use memviz_view::{Api, ContentType, Input, Store};
use serde_json::Value;

pub fn no_reports(_: &str, _: &[String], _: &[(String, Arc<Trace>)]) -> Result<String, String> {
    Ok(r#"{"schema": 1}"#.to_owned())
}

pub fn stored(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/traces").join(name)
}

/// An API over inputs that are read.
pub fn api_of(inputs: Vec<Input>) -> Api {
    let store = Store::open(inputs);
    store.wait(|_| ());
    Api::new(store, no_reports)
}

pub fn api_of_trace(trace: Trace) -> Api {
    api_of(vec![Input::Trace("test".to_owned(), Arc::new(trace))])
}

/// Status and JSON of `path?query`.
pub fn ask(api: &Api, request: &str) -> (u16, Value) {
    let (path, query) = request.split_once('?').unwrap_or((request, ""));
    let answer = api.answer(path, query);
    assert_eq!(answer.content_type, ContentType::Json, "{request}");
    (answer.status, serde_json::from_slice(&answer.body).unwrap())
}

/// JSON of a request that is answered.
pub fn json(api: &Api, request: &str) -> Value {
    let (status, value) = ask(api, request);
    assert_eq!(status, 200, "{request}: {value}");
    value
}

/// A frame, read back.
pub struct Frame {
    pub header: Value,
    bytes: Vec<u8>,
}

impl Frame {
    pub fn ask(api: &Api, request: &str) -> Frame {
        let (path, query) = request.split_once('?').unwrap();
        let answer = api.answer(path, query);
        assert_eq!(answer.status, 200, "{request}: {}", String::from_utf8_lossy(&answer.body));
        Frame::of(answer.body)
    }

    pub fn of(body: Vec<u8>) -> Frame {
        assert_eq!(&body[..4], b"MVV1");
        let length = u32::from_le_bytes(body[4..8].try_into().unwrap()) as usize;
        assert_eq!((8 + length) % 8, 0);
        let header = serde_json::from_slice(&body[8..8 + length]).unwrap();
        Frame { header, bytes: body[8 + length..].to_vec() }
    }

    pub fn raw(&self, name: &str, kind: &str, width: usize) -> &[u8] {
        let array = &self.header["arrays"][name];
        assert_eq!(array["type"], kind, "{name}");
        let at = array["at"].as_u64().unwrap() as usize;
        assert_eq!(at % 8, 0);
        &self.bytes[at..at + array["length"].as_u64().unwrap() as usize * width]
    }

    pub fn f64(&self, name: &str) -> Vec<f64> {
        self.raw(name, "f64", 8).chunks(8).map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap())).collect()
    }

    pub fn u32(&self, name: &str) -> Vec<u32> {
        self.raw(name, "u32", 4).chunks(4).map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap())).collect()
    }
}
