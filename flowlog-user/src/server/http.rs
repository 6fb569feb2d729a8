//! Metrics and health over TCP; the same and the status over a unix socket.
//!
//! A slow or hostile client costs one of few places for a few seconds and nothing else: connections, header size and
//! time are bounded, bodies are not read, and answers are made from what the data plane has already told.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Semaphore;

use super::board::Board;
use super::exposition::Exposition;
use super::status;

/// Connections at once, of each listener; more are closed at once.
const CONNECTIONS_MAX: usize = 32;
/// How long a request's header may take.
const HEADER: Duration = Duration::from_secs(5);
/// How long a connection may last in all.
const CONNECTION: Duration = Duration::from_secs(60);
/// Bytes of a request's header.
const HEADER_BYTES_MAX: usize = 16 << 10;

/// What a listener answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routes {
    /// Metrics and health: whoever reaches the port may know these.
    Public,
    /// The status with names, paths and filters too: for whoever may open the socket.
    All,
}

/// What answers are made of.
#[derive(Debug)]
pub struct Site {
    /// What is known.
    pub board: Arc<Board>,
    /// Hubble's names too.
    pub hubble_metrics: bool,
}

/// Serves TCP until the daemon ends.
pub async fn serve_tcp(listener: TcpListener, site: Arc<Site>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        match listener.accept().await {
            Ok((stream, _)) => connection(stream, Routes::Public, &site, &places),
            Err(error) => wait_after(&error).await,
        }
    }
}

/// Serves a unix socket until the daemon ends.
pub async fn serve_unix(listener: UnixListener, site: Arc<Site>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        match listener.accept().await {
            Ok((stream, _)) => connection(stream, Routes::All, &site, &places),
            Err(error) => wait_after(&error).await,
        }
    }
}

/// Descriptors may be exhausted: trying again at once would spin.
async fn wait_after(error: &std::io::Error) {
    tracing::debug!(%error, "a connection was not accepted");
    tokio::time::sleep(Duration::from_millis(100)).await;
}

fn connection<S>(stream: S, routes: Routes, site: &Arc<Site>, places: &Arc<Semaphore>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Ok(place) = Arc::clone(places).try_acquire_owned() else { return };
    let site = Arc::clone(site);
    tokio::spawn(async move {
        let answer = service_fn(move |request: Request<Incoming>| {
            let answer = respond(&request, routes, &site);
            async move { Ok::<_, Infallible>(answer) }
        });
        let serving = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER)
            .max_buf_size(HEADER_BYTES_MAX)
            .serve_connection(TokioIo::new(stream), answer);
        // What a client does wrong is the client's business.
        drop(tokio::time::timeout(CONNECTION, serving).await);
        drop(place);
    });
}

fn respond(request: &Request<Incoming>, routes: Routes, site: &Site) -> Response<Full<Bytes>> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut refused = text(StatusCode::METHOD_NOT_ALLOWED, "only GET is answered\n");
        refused.headers_mut().insert(ALLOW, hyper::header::HeaderValue::from_static("GET, HEAD"));
        return refused;
    }
    match (request.uri().path(), routes) {
        ("/metrics", _) => {
            let accept = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok());
            let exposition = Exposition::asked(accept);
            match exposition.write(&site.board, site.hubble_metrics) {
                Ok(page) => answer(StatusCode::OK, exposition.content_type(), page),
                Err(_) => text(StatusCode::INTERNAL_SERVER_ERROR, "the metrics could not be written\n"),
            }
        }
        ("/healthz", _) => health(&status::unhealthy(&site.board)),
        ("/readyz", _) => health(&status::unready(&site.board)),
        ("/status", Routes::All) => {
            answer(StatusCode::OK, "application/json", status::json(&site.board).to_string())
        }
        ("/talkers", Routes::All) => {
            answer(StatusCode::OK, "application/json", site.board.busiest.ask().to_string())
        }
        ("/", _) => {
            let more = if routes == Routes::All { ", /status, /talkers" } else { "" };
            text(StatusCode::OK, &format!("flowlog: /metrics, /healthz, /readyz{more}\n"))
        }
        _ => text(StatusCode::NOT_FOUND, "there is /metrics, /healthz and /readyz\n"),
    }
}

fn health(wrong: &[String]) -> Response<Full<Bytes>> {
    if wrong.is_empty() {
        return text(StatusCode::OK, "ok\n");
    }
    text(StatusCode::SERVICE_UNAVAILABLE, &format!("{}\n", wrong.join("\n")))
}

fn text(code: StatusCode, body: &str) -> Response<Full<Bytes>> {
    answer(code, "text/plain; charset=utf-8", body.to_owned())
}

fn answer(code: StatusCode, content_type: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, hyper::header::HeaderValue::from_static("no-store"));
    response
}
