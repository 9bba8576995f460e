//! The server of `memviz view`: one port of 127.0.0.1, one page, one browser that knows the token.
//!
//! Connections, their number and the time that a request's head may take are bounded here; who may ask is decided in
//! `guard`, what is answered in `routes`. Not here: opening a browser (`memviz-cli`).

mod guard;
mod routes;

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, watch};

use crate::api::Api;
use guard::Guard;

/// Connections at a time. A browser opens six.
const MOST_CONNECTIONS: usize = 64;
/// How long a client may take for the head of a request, or be silent between two.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Most bytes of a request's head.
const MOST_HEAD_BYTES: usize = 64 * 1024;
/// Pause after the system refused a connection (no file descriptors left), so that the loop doesn't spin.
const PAUSE: Duration = Duration::from_millis(50);
/// Answers computed at a time.
const MOST_ANSWERS: usize = 4;

/// A port, a token and what is answered there; runs until it is told to stop.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    guard: Arc<Guard>,
    api: Arc<Api>,
    stop: Stop,
}

/// Ends a server from any thread.
#[derive(Clone, Debug)]
pub struct Stop(watch::Sender<bool>);

impl Stop {
    /// Ends the server. A second call does nothing.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

/// A server on a thread of its own. It runs until it is stopped or the process ends.
#[derive(Debug)]
pub struct Running {
    url: String,
    stop: Stop,
    thread: Option<std::thread::JoinHandle<io::Result<()>>>,
}

impl Running {
    /// The address to open, with its token.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Ends the server and waits for its end. A second call does nothing.
    ///
    /// # Errors
    /// What ended the server before.
    pub fn stop(&mut self) -> io::Result<()> {
        self.stop.stop();
        let ended = self.thread.take().map(std::thread::JoinHandle::join);
        ended.unwrap_or(Ok(Ok(()))).unwrap_or_else(|_| Err(io::Error::other("the server's thread panicked")))
    }

    /// Whether it still answers.
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }
}

impl Server {
    /// Takes a port of 127.0.0.1; without `port` any that is free.
    ///
    /// # Errors
    /// The port is taken, or the system gives no random bytes.
    pub fn bind(api: Arc<Api>, port: Option<u16>) -> io::Result<Server> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.unwrap_or(0)))?;
        listener.set_nonblocking(true)?;
        let guard = Arc::new(Guard::new(listener.local_addr()?.port())?);
        Ok(Server { listener, guard, api, stop: Stop(watch::channel(false).0) })
    }

    /// The address to open, with its token.
    pub fn url(&self) -> String {
        self.guard.url()
    }

    /// An address that works once, for the command line of a browser, which other users of the machine can read.
    pub fn url_once(&self) -> String {
        self.guard.url_once()
    }

    /// What ends it.
    pub fn stop_handle(&self) -> Stop {
        self.stop.clone()
    }

    /// Serves until Ctrl-C or [`Stop::stop`].
    ///
    /// # Errors
    /// The system gives no threads or no signals.
    pub fn run(self) -> io::Result<()> {
        self.run_until(tokio::signal::ctrl_c())
    }

    /// Serves until `end` is ready or [`Stop::stop`].
    ///
    /// # Errors
    /// The system gives no threads, or `end` fails.
    pub fn run_until(self, end: impl Future<Output = io::Result<()>>) -> io::Result<()> {
        let runtime = runtime()?;
        let Server { listener, guard, api, stop } = self;
        let result = runtime.block_on(async {
            let mut stopped = stop.0.subscribe();
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let router = routes::router(api, guard);
            tokio::select! {
                () = accept(&listener, &router) => Ok(()),
                _ = stopped.wait_for(|is_stopped| *is_stopped) => Ok(()),
                ended = end => ended,
            }
        });
        // Answers under way are for nobody any more.
        runtime.shutdown_background();
        result
    }

    /// Serves on a thread of its own.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn spawn(self) -> io::Result<Running> {
        let (url, stop) = (self.url(), self.stop_handle());
        let serve = move || self.run_until(std::future::pending());
        let thread = std::thread::Builder::new().name("memviz-view".to_owned()).spawn(serve)?;
        Ok(Running { url, stop, thread: Some(thread) })
    }
}

fn runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .max_blocking_threads(MOST_ANSWERS)
        .thread_name("memviz-view")
        .enable_all()
        .build()
}

async fn accept(listener: &tokio::net::TcpListener, router: &Router) {
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let router = router.clone();
                tokio::spawn(async move {
                    serve(stream, router).await;
                    drop(place);
                });
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

async fn serve(stream: TcpStream, router: Router) {
    // A page that is dragged asks for many small answers: none waits for the next.
    let _best_effort = stream.set_nodelay(true);
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MOST_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    // A client that breaks the protocol or goes away has only itself to tell.
    let _broken_by_client = served.await;
}
