//! The self-contained page: its answers are the server's, and it needs nothing else.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod support;

use std::io::Read as _;

use base64::Engine as _;
use memviz_view::{Input, PageError, PageOptions, write_page};
use support::{Frame, api_of, stored};

/// The frame inside a page.
fn unpack(page: &str) -> Frame {
    let from = page.find("id=\"memviz-pack\">").unwrap() + "id=\"memviz-pack\">".len();
    let text = &page[from..from + page[from..].find('<').unwrap()];
    let bytes = base64::engine::general_purpose::STANDARD.decode(text).unwrap();
    let mut frame = Vec::new();
    flate2::read::GzDecoder::new(bytes.as_slice()).read_to_end(&mut frame).unwrap();
    Frame::of(frame)
}

#[test]
fn its_answers_are_the_servers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("page.html");
    let api = api_of(vec![Input::File(stored("cuda_train.memviz"))]);
    let mut stages = Vec::new();
    let written = write_page(&api, &path, PageOptions::default(), &mut |what, _| stages.push(what.to_owned())).unwrap();
    let page = std::fs::read_to_string(&path).unwrap();
    assert_eq!(written.size_bytes, page.len() as u64);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    assert!(stages.contains(&"pictures".to_owned()));

    let pack = unpack(&page);
    let bytes = pack.raw("bytes", "u8", 1);
    let answers = pack.header["answers"].as_array().unwrap();
    assert_eq!(answers.len(), written.answers);
    let mut kinds = std::collections::BTreeSet::new();
    for answer in answers {
        let request = answer["request"].as_str().unwrap();
        let (path, query) = request.split_once('?').unwrap_or((request, ""));
        let [at, length] = ["at", "length"].map(|field| answer[field].as_u64().unwrap() as usize);
        if path != "recordings" {
            assert!(bytes[at..at + length] == api.answer(path, query).body, "{request}");
        }
        kinds.insert(path);
    }
    let expected =
        ["bands", "block", "flame", "moment", "place", "recordings", "report", "timeline", "whatif", "whatif/choices"];
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), expected);
    let list = answers.iter().find(|answer| answer["request"] == "recordings").unwrap();
    let [at, length] = ["at", "length"].map(|field| list[field].as_u64().unwrap() as usize);
    let list: serde_json::Value = serde_json::from_slice(&bytes[at..at + length]).unwrap();
    assert_eq!((&list["form"], &list["left_out"]), (&"page".into(), &pack.header["left_out"]));
    assert!(!written.left_out.is_empty());
}

#[test]
fn it_keeps_to_its_size() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("page.html");
    let api = api_of(vec![Input::File(stored("cuda_train.memviz")), Input::File(stored("v1.memviz"))]);
    let budget_bytes = 200_000;
    let written = write_page(&api, &path, PageOptions { budget_bytes }, &mut |_, _| ()).unwrap();
    let page = std::fs::read_to_string(&path).unwrap();
    let from = page.find("id=\"memviz-pack\">").unwrap();
    let length = page[from..].find("</script>").unwrap();
    assert!(length < budget_bytes * 4 / 3 * 5 / 4, "{length} for {budget_bytes}");
    assert!(written.left_out.iter().any(|sentence| sentence.contains("for size")));
}

#[test]
fn a_recording_that_fails_leaves_no_page() {
    let folder = tempfile::tempdir().unwrap();
    let [input, path] = ["notes.memviz", "page.html"].map(|name| folder.path().join(name));
    std::fs::write(&input, "no recording").unwrap();
    let error = write_page(&api_of(vec![Input::File(input)]), &path, PageOptions::default(), &mut |_, _| ());
    assert!(matches!(error, Err(PageError::Recording { .. })));
    assert!(!path.exists());
}
