//! Who may ask: the browser that was given the token, asking this very server.
//!
//! A page on the web can make a browser send requests to 127.0.0.1, and can give its own host name our address (DNS
//! rebinding). So a request must name us as its host, come from no other origin, and carry a cookie that only the token
//! gives. Comparisons take the same time whatever is wrong.

use std::sync::{Mutex, PoisonError};

use axum::http::{HeaderMap, Method, Uri, header};
use subtle::ConstantTimeEq;

/// Bytes of a token: 256 bits.
const TOKEN_BYTES: usize = 32;
/// Most bytes of an address.
const MOST_URI_BYTES: usize = 8 * 1024;

/// What a browser must know, and how it is told.
#[derive(Debug)]
pub(crate) struct Guard {
    port: u16,
    token: String,
    /// A second token that works once: it goes through the command line of a browser's launcher, which others can read.
    once: Mutex<Option<String>>,
}

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is answered.
    Pass,
    /// It brought a token: it gets the cookie and goes to that address.
    Welcome { cookie: String, to: String },
    /// It is refused: status and text.
    Refuse(u16, String),
}

impl Guard {
    pub(crate) fn new(port: u16) -> std::io::Result<Guard> {
        Ok(Guard { port, token: random()?, once: Mutex::new(Some(random()?)) })
    }

    /// The address to open, again and again.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/?token={}", self.port, self.token)
    }

    /// An address that works once; the lasting one when that was used.
    pub(crate) fn url_once(&self) -> String {
        match &*self.once.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(once) => format!("http://127.0.0.1:{}/?token={once}", self.port),
            None => self.url(),
        }
    }

    /// Judges a request by its head.
    pub(crate) fn judge(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Verdict {
        let length = uri.path_and_query().map_or(0, |text| text.as_str().len());
        if length > MOST_URI_BYTES {
            return refuse(414, format!("an address of {length} bytes, expected at most {MOST_URI_BYTES}"));
        }
        if let Err(error) = self.comes_from_here(uri, headers) {
            return refuse(403, error);
        }
        if !matches!(*method, Method::GET | Method::HEAD) {
            return refuse(405, format!("method {method}, expected GET or HEAD: nothing here can be changed"));
        }
        if has_body(headers) {
            return refuse(413, "a request with a body, expected none: send GET without one".to_owned());
        }
        match token_of(uri) {
            Some(token) if uri.path() == "/" => self.welcome(token, uri),
            _ if self.has_cookie(headers) => Verdict::Pass,
            _ => refuse(403, self.how_to_enter()),
        }
    }

    fn how_to_enter(&self) -> String {
        "this browser has no key to this server. Copy the whole address that `memviz view` printed, with its token, \
         into the address bar"
            .to_owned()
    }

    /// The host must be ours, and so must the page that asks.
    fn comes_from_here(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), String> {
        let port = self.port;
        let hosts = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
        let mut named = headers.get_all(header::HOST).iter().map(|value| value.to_str().unwrap_or(""));
        let host = named.next().unwrap_or("");
        let authority = uri.authority().map_or(host, |authority| authority.as_str());
        if named.next().is_some() || authority != host || !hosts.iter().any(|ours| ours.eq_ignore_ascii_case(host)) {
            return Err(format!("wrong host, expected {}: open http://{}/", hosts.join(" or "), hosts[0]));
        }
        let mut origins = headers.get_all(header::ORIGIN).iter().map(|value| value.to_str().unwrap_or(""));
        let is_ours = |origin: &str| hosts.iter().any(|host| origin.eq_ignore_ascii_case(&format!("http://{host}")));
        match origins.all(is_ours) {
            true => Ok(()),
            false => Err(format!("wrong origin, expected http://{}: other pages may not ask here", hosts[0])),
        }
    }

    fn welcome(&self, token: &str, uri: &Uri) -> Verdict {
        if !self.takes(token) {
            return refuse(403, format!("wrong token: it is of another run. {}", self.how_to_enter()));
        }
        let name = self.cookie_name();
        let cookie = format!("{name}={}; HttpOnly; SameSite=Strict; Path=/", self.token);
        let rest: Vec<&str> = words(uri).filter(|word| !word.starts_with("token=")).collect();
        let to = if rest.is_empty() { "/".to_owned() } else { format!("/?{}", rest.join("&")) };
        Verdict::Welcome { cookie, to }
    }

    fn takes(&self, token: &str) -> bool {
        if same(token, &self.token) {
            return true;
        }
        let mut once = self.once.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = once.as_ref().is_some_and(|once| same(token, once));
        if is_it {
            *once = None;
        }
        is_it
    }

    /// Cookies of all ports of a host are one jar, so the port is in the name.
    fn cookie_name(&self) -> String {
        format!("memviz-{}", self.port)
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let name = self.cookie_name();
        let lines = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.any(|(key, value)| key == name && same(value, &self.token))
    }
}

fn refuse(status: u16, text: String) -> Verdict {
    Verdict::Refuse(status, text)
}

fn same(given: &str, expected: &str) -> bool {
    given.as_bytes().ct_eq(expected.as_bytes()).into()
}

fn words(uri: &Uri) -> impl Iterator<Item = &str> {
    uri.query().unwrap_or("").split('&').filter(|word| !word.is_empty())
}

fn token_of(uri: &Uri) -> Option<&str> {
    words(uri).find_map(|word| word.strip_prefix("token="))
}

fn has_body(headers: &HeaderMap) -> bool {
    let length = headers.get(header::CONTENT_LENGTH).is_some_and(|value| value != "0");
    length || headers.contains_key(header::TRANSFER_ENCODING)
}

/// Random bits as hexadecimal digits.
fn random() -> std::io::Result<String> {
    let mut bytes = [0_u8; TOKEN_BYTES];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn guard() -> Guard {
        Guard::new(4000).unwrap()
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_str(value).unwrap())).collect()
    }

    fn judge(guard: &Guard, uri: &str, pairs: &[(&'static str, &str)]) -> Verdict {
        guard.judge(&Method::GET, &uri.parse().unwrap(), &headers(pairs))
    }

    fn status(verdict: &Verdict) -> u16 {
        match verdict {
            Verdict::Pass => 200,
            Verdict::Welcome { .. } => 303,
            Verdict::Refuse(status, _) => *status,
        }
    }

    #[test]
    fn a_token_gives_a_cookie_and_keeps_other_words() {
        let guard = guard();
        let uri = format!("/?page=leaks&token={}&by=line", guard.token);
        let Verdict::Welcome { cookie, to } = judge(&guard, &uri, &[("host", "127.0.0.1:4000")]) else { panic!() };
        assert_eq!(to, "/?page=leaks&by=line");
        assert!(cookie.starts_with("memviz-4000=") && cookie.contains("HttpOnly; SameSite=Strict; Path=/"));
        let pair = cookie.split(';').next().unwrap();
        let with = [("host", "localhost:4000"), ("cookie", pair), ("origin", "http://127.0.0.1:4000")];
        assert_eq!(judge(&guard, "/api/recordings", &with), Verdict::Pass);
    }

    #[test]
    fn the_launchers_token_works_once() {
        let guard = guard();
        let url = guard.url_once();
        let uri = url.strip_prefix("http://127.0.0.1:4000").unwrap();
        assert_ne!(url, guard.url());
        let answers = [0; 2].map(|_| status(&judge(&guard, uri, &[("host", "127.0.0.1:4000")])));
        assert_eq!((answers, guard.url_once()), ([303, 403], guard.url()));
    }

    #[test]
    fn others_are_refused() {
        let guard = guard();
        let cookie = format!("memviz-4000={}", guard.token);
        let wrong = format!("memviz-4000={}", "0".repeat(64));
        let ours = ("host", "127.0.0.1:4000");
        let cases: &[&[(&'static str, &str)]] = &[
            &[ours],
            &[ours, ("cookie", &wrong)],
            &[ours, ("cookie", "memviz-4000=")],
            &[("cookie", &cookie)],
            &[("host", "evil.example:4000"), ("cookie", &cookie)],
            &[("host", "127.0.0.1"), ("cookie", &cookie)],
            &[("host", "127.0.0.1:4001"), ("cookie", &cookie)],
            &[ours, ("host", "evil.example"), ("cookie", &cookie)],
            &[ours, ("cookie", &cookie), ("origin", "http://evil.example")],
            &[ours, ("cookie", &cookie), ("origin", "https://127.0.0.1:4000")],
            &[ours, ("cookie", &cookie), ("origin", "null")],
        ];
        for pairs in cases {
            assert_eq!(status(&judge(&guard, "/api/recordings", pairs)), 403, "{pairs:?}");
        }
        assert_eq!(status(&judge(&guard, "/?token=", &[ours])), 403);
        // A token gives its cookie at the page only: an answer never comes with one.
        assert_eq!(status(&judge(&guard, &format!("/api/recordings?token={}", guard.token), &[ours])), 403);
    }
}
