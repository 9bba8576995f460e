//! The server over real sockets: who is let in, and what is served.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use memviz_view::{Api, Input, Running, Server, Store};

struct Client {
    running: Running,
    port: u16,
    token: String,
}

struct Response {
    status: u16,
    head: String,
    body: String,
}

impl Client {
    fn new() -> Client {
        let store = Store::open(vec![Input::File(support::stored("v1.memviz"))]);
        store.wait(|_| ());
        let server = Server::bind(Arc::new(Api::new(store, support::no_reports)), None).unwrap();
        let running = server.spawn().unwrap();
        let rest = running.url().strip_prefix("http://127.0.0.1:").unwrap();
        let (port, token) = rest.split_once("/?token=").unwrap();
        let (port, token) = (port.parse().unwrap(), token.to_owned());
        Client { running, port, token }
    }

    /// Sends these bytes on a connection of their own and reads to its end.
    fn send(&self, request: &[u8]) -> Response {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        // The server may refuse before it has read all.
        let _refused_early = stream.write_all(request);
        let mut bytes = Vec::new();
        let _reset_after_refusal = stream.read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        Response { status, head: head.to_lowercase(), body: body.to_owned() }
    }

    fn request(&self, line: &str, headers: &[(&str, &str)]) -> Response {
        let mut text = format!("{line} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "Host") {
            text.push_str(&format!("Host: 127.0.0.1:{}\r\n", self.port));
        }
        headers.iter().for_each(|(name, value)| text.push_str(&format!("{name}: {value}\r\n")));
        self.send(format!("{text}\r\n").as_bytes())
    }

    fn cookie(&self) -> String {
        format!("memviz-{}={}", self.port, self.token)
    }

    fn get(&self, path: &str) -> Response {
        self.request(&format!("GET {path}"), &[("Cookie", &self.cookie())])
    }
}

#[test]
fn a_browser_with_the_token_is_let_in() {
    let client = Client::new();
    let entered = client.request(&format!("GET /?token={}&page=leaks", client.token), &[]);
    assert_eq!(entered.status, 303);
    assert!(entered.head.contains("location: /?page=leaks\r\n"));
    assert!(entered.head.contains(&format!("set-cookie: {}; httponly; samesite=strict; path=/", client.cookie())));
    for (path, mime) in [
        ("/", "text/html"),
        ("/app.js", "text/javascript"),
        ("/app.css", "text/css"),
        ("/api/recordings", "application/json"),
    ] {
        let response = client.get(path);
        assert!(response.status == 200 && response.head.contains(&format!("content-type: {mime}")), "{path}");
    }
    assert!(client.get("/api/recordings").body.contains("v1.memviz"));
    let head = client.request("HEAD /api/recordings", &[("Cookie", &client.cookie())]);
    assert_eq!((head.status, head.body.as_str()), (200, ""));
}

#[test]
fn every_response_forbids_what_the_page_does_not_need() {
    let client = Client::new();
    for response in
        [client.get("/"), client.get("/api/recordings"), client.request("GET /", &[]), client.get("/nothing")]
    {
        for line in [
            "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
            "cross-origin-resource-policy: same-origin",
            "cache-control: no-store",
        ] {
            assert!(response.head.contains(line), "{} lacks {line}", response.head);
        }
        assert!(!response.head.contains("unsafe-inline") && !response.head.contains("access-control-allow"));
    }
}

#[test]
fn strangers_are_refused() {
    let client = Client::new();
    let (cookie, evil) = (client.cookie(), format!("evil.example:{}", client.port));
    let no_cookie = client.request("GET /api/recordings", &[]);
    assert!(no_cookie.status == 403 && no_cookie.body.contains("error") && !no_cookie.body.contains(&client.token));
    let page = client.request("GET /", &[]);
    assert!(page.status == 403 && page.body.contains("memviz view"));
    assert_eq!(client.request(&format!("GET /?token={}", "0".repeat(64)), &[]).status, 403);
    assert_eq!(client.request("GET /?token=", &[]).status, 403);
    assert_eq!(client.request("GET /api/recordings", &[("Cookie", "memviz-1=x; a=b")]).status, 403);
    assert_eq!(client.request("GET /api/recordings", &[("Host", &evil), ("Cookie", &cookie)]).status, 403);
    assert_eq!(client.request(&format!("GET /?token={}", client.token), &[("Host", &evil)]).status, 403);
    let from_elsewhere = [("Origin", "http://evil.example"), ("Cookie", cookie.as_str())];
    assert_eq!(client.request("GET /api/recordings", &from_elsewhere).status, 403);
    let absolute = format!("GET http://{evil}/api/recordings");
    assert_eq!(client.request(&absolute, &[("Cookie", &cookie)]).status, 403);
    let local = format!("localhost:{}", client.port);
    assert_eq!(client.request("GET /api/recordings", &[("Host", &local), ("Cookie", &cookie)]).status, 200);
}

#[test]
fn no_file_but_three_is_served() {
    let client = Client::new();
    for path in [
        "/../Cargo.toml",
        "/%2e%2e/Cargo.toml",
        "/..%2fCargo.toml",
        "/app.js/../../Cargo.toml",
        "//etc/passwd",
        "/etc/passwd",
        "/api/../Cargo.toml",
        "/api/%2e%2e/Cargo.toml",
        "/app.js.map",
        "/index.html",
        "/api/",
        "/api/file?path=/etc/passwd",
    ] {
        let response = client.get(path);
        assert!(matches!(response.status, 400 | 404), "{path}: {}", response.status);
        assert!(!response.body.contains("[package]") && !response.body.contains("root:"), "{path}");
    }
}

#[test]
fn what_is_too_much_is_refused() {
    let client = Client::new();
    let cookie = client.cookie();
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"] {
        assert_eq!(
            client.request(&format!("{method} /api/recordings"), &[("Cookie", &cookie)]).status,
            405,
            "{method}"
        );
    }
    let long = client.get(&format!("/api/find?r=0&by=line&text={}", "a".repeat(9000)));
    assert_eq!(long.status, 414);
    let longer = client.get(&format!("/api/find?text={}", "a".repeat(200_000)));
    assert!(matches!(longer.status, 414 | 431), "{}", longer.status);
    let body = client.request("GET /api/recordings", &[("Cookie", &cookie), ("Content-Length", "1000000000")]);
    assert_eq!(body.status, 413);
    let chunked = client.request("GET /api/recordings", &[("Cookie", &cookie), ("Transfer-Encoding", "chunked")]);
    assert_eq!(chunked.status, 413);
    let header = client.request("GET /api/recordings", &[("Cookie", &cookie), ("X-Long", &"a".repeat(200_000))]);
    assert_eq!(header.status, 431);
    assert_eq!(client.get("/api/recordings").status, 200);
}

#[test]
fn it_ends_when_told_and_a_port_has_one_server() {
    let mut client = Client::new();
    let api = Arc::new(Api::new(Store::open(Vec::new()), support::no_reports));
    let error = Server::bind(api, Some(client.port)).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    assert!(client.running.is_running());
    client.running.stop().unwrap();
    assert!(!client.running.is_running() && client.running.stop().is_ok());
    assert!(TcpStream::connect(("127.0.0.1", client.port)).is_err());
}
