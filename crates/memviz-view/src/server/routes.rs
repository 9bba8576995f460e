//! Requests to answers over HTTP: the guard, three files, and the API. Every response carries the same strict headers.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::task::JoinHandle;

use crate::answer::Answer;
use crate::api::Api;
use crate::assets;
use crate::server::guard::{Guard, Verdict};

/// Headers of every response. The page runs its own script only, talks to this server only, and is framed by nobody.
const HEADERS: [(&str, &str); 5] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
];

/// What serves requests.
pub(crate) fn router(api: Arc<Api>, guard: Arc<Guard>) -> Router {
    Router::new()
        .route("/", get(|| async { file("text/html; charset=utf-8", assets::INDEX) }))
        .route("/app.js", get(|| async { file("text/javascript; charset=utf-8", assets::SCRIPT) }))
        .route("/app.css", get(|| async { file("text/css; charset=utf-8", assets::STYLE) }))
        .route("/api/{*request}", get(answer))
        .fallback(nothing)
        .with_state(api)
        .layer(from_fn_with_state(guard, guarded))
}

async fn guarded(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let verdict = guard.judge(request.method(), request.uri(), request.headers());
    let mut response = match verdict {
        Verdict::Pass => next.run(request).await,
        Verdict::Welcome { cookie, to } => welcome(&cookie, &to),
        Verdict::Refuse(status, text) => refusal(request.uri(), status, text),
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}

fn welcome(cookie: &str, to: &str) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    // Both are made of what was an address and of hexadecimal digits, which headers can hold.
    for (name, value) in [(header::SET_COOKIE, cookie), (header::LOCATION, to)] {
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// JSON for the page's code, plain text for people.
fn refusal(uri: &Uri, status: u16, text: String) -> Response {
    if uri.path().starts_with("/api/") {
        return http(crate::answer::Refusal::new(status, text).into());
    }
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::FORBIDDEN);
    (status, [(header::CONTENT_TYPE, "text/plain; charset=utf-8")], format!("memviz: {text}\n")).into_response()
}

fn file(mime: &'static str, text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, mime)], text).into_response()
}

async fn nothing(uri: Uri) -> Response {
    refusal(
        &uri,
        404,
        "there is nothing at this address, expected /: open the address that `memviz view` printed".into(),
    )
}

/// Answers on a thread that may compute. A request that its client drops before its turn is not computed.
async fn answer(State(api): State<Arc<Api>>, uri: Uri) -> Response {
    let work = move || {
        let request = uri.path().strip_prefix("/api/").unwrap_or_default();
        api.answer(request, uri.query().unwrap_or_default())
    };
    let mut turn = Turn(tokio::task::spawn_blocking(work));
    match (&mut turn.0).await {
        Ok(answer) => http(answer),
        Err(error) => {
            let text = format!("the answer could not be computed: {error}; report this with the recording");
            http(crate::answer::Refusal::new(500, text).into())
        }
    }
}

/// Work that is called off when nobody waits for it any more.
struct Turn(JoinHandle<Answer>);

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn http(answer: Answer) -> Response {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, [(header::CONTENT_TYPE, answer.content_type.mime())], Body::from(answer.body)).into_response()
}
