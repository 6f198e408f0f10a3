//! Connections of the endpoint: few, short, with small requests. A client that is slow or silent loses its connection, and at once where
//! another one wants its place.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::AUTHORIZATION;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use roce_metrics::{Exposition, Format, HTTP_CONNECTIONS, HTTP_REQUESTS, end};
use roce_model::value_of;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::answer::{Answer, AskedTexts, answer, unauthorized};
use super::grpc::{self, SentBody};
use super::receiver::{self, Receiver};
use super::source::EndpointSource;
use super::tls::Certificates;
use super::users::Users;

/// Bytes of a request's head; the answer to a longer one is 431. It is also the least that hyper takes.
const MAX_HEAD: usize = 8 << 10;
/// Header lines of a request.
const MAX_HEADERS: usize = 64;

/// Limits of connections.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// Connections at one time. A further one takes the place of the one that has waited longest for its client.
    pub(super) connections: usize,
    /// Time for a handshake of TLS, and for the head of a request, idle time before it included.
    pub(super) head: Duration,
    /// After this time a connection ends behind the current answer.
    pub(super) connection: Duration,
    /// Time for that last answer.
    pub(super) last: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 32,
            head: Duration::from_secs(10),
            connection: Duration::from_mins(1),
            last: Duration::from_secs(10),
        }
    }
}

/// Counts of an endpoint.
#[derive(Default)]
pub struct Counts {
    answers: Mutex<BTreeMap<u16, u64>>,
    connections: AtomicU64,
}

impl Counts {
    fn answered(&self, status: u16) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        *answers.entry(status).or_default() += 1;
    }

    fn add(&self, into: &mut Exposition) {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        for (status, count) in &*answers {
            into.own(
                HTTP_REQUESTS,
                &[("code", status.to_string().into())],
                value_of(*count),
            );
        }
        into.own(
            HTTP_CONNECTIONS,
            &[],
            value_of(self.connections.load(Ordering::Relaxed)),
        );
    }
}

/// Connections that wait for their clients: for a handshake, or the head of a request. By the order in which they began to.
#[derive(Default)]
struct WaitingConnections {
    all: Mutex<BTreeMap<u64, oneshot::Sender<()>>>,
    next: AtomicU64,
}

/// One connection, while it waits for its client or answers.
struct Wait<'a> {
    all: &'a WaitingConnections,
    number: AtomicU64,
}

impl WaitingConnections {
    fn all(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, oneshot::Sender<()>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection waits from now on, under the number that is returned. The receiver is done when it has to end.
    fn begin(&self) -> (u64, oneshot::Receiver<()>) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        self.all().insert(number, sender);
        (number, receiver)
    }

    /// The connection of a number, which is forgotten with what is returned.
    fn of(&self, number: u64) -> Wait<'_> {
        Wait {
            all: self,
            number: AtomicU64::new(number),
        }
    }

    /// Ends the connection that has waited longest. None: all answer.
    fn end_oldest(&self) {
        if let Some((_, oldest)) = self.all().pop_first() {
            // It may end by itself at this moment.
            let _ = oldest.send(());
        }
    }
}

impl Wait<'_> {
    /// Its request has come: it is not ended before it is answered.
    fn answers(&self) -> Option<oneshot::Sender<()>> {
        self.all.all().remove(&self.number.load(Ordering::Relaxed))
    }

    /// It waits again, as the last one.
    fn waits(&self, ends: Option<oneshot::Sender<()>>) {
        let Some(ends) = ends else { return };
        let number = self.all.next.fetch_add(1, Ordering::Relaxed);
        self.number.store(number, Ordering::Relaxed);
        self.all.all().insert(number, ends);
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.answers();
    }
}

/// A place where clients connect: a socket that listens, or that of a simulation.
pub(super) trait Clients: Send + Sync + 'static {
    /// A client's connection.
    type Stream: ClientStream;

    /// The next client.
    fn accept(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

/// A client's connection.
pub(super) trait ClientStream: AsyncRead + AsyncWrite + Unpin + Send + Sync + 'static {
    /// Copies the next bytes, and leaves them there. Returns their number.
    fn peeked(&self, bytes: &mut [u8]) -> impl Future<Output = io::Result<usize>> + Send;
}

impl Clients for tokio::net::TcpListener {
    type Stream = tokio::net::TcpStream;

    async fn accept(&self) -> io::Result<Self::Stream> {
        Self::accept(self).await.map(|(stream, _)| stream)
    }
}

impl ClientStream for tokio::net::TcpStream {
    async fn peeked(&self, bytes: &mut [u8]) -> io::Result<usize> {
        self.peek(bytes).await
    }
}

/// State that all connections share.
pub(super) struct SharedState {
    source: Arc<dyn EndpointSource>,
    counts: Arc<Counts>,
    users: Users,
    limits: Limits,
    tls: Option<Arc<Certificates>>,
    waiting: WaitingConnections,
    /// Takes requests of OTLP, where they are wanted.
    pub(super) receiver: Option<Receiver>,
}

impl SharedState {
    /// Without `tls` connections are plain.
    pub(super) fn new(
        source: Arc<dyn EndpointSource>,
        counts: Arc<Counts>,
        users: Users,
        tls: Option<Arc<Certificates>>,
        limits: Limits,
    ) -> Self {
        Self {
            source,
            counts,
            users,
            limits,
            tls,
            waiting: WaitingConnections::default(),
            receiver: None,
        }
    }
}

/// Listeners of the system, waited for by the runtime.
///
/// # Errors
/// The system does not let them be waited for.
pub(super) fn listening(listeners: Vec<TcpListener>) -> io::Result<Vec<tokio::net::TcpListener>> {
    listeners
        .into_iter()
        .map(tokio::net::TcpListener::from_std)
        .collect()
}

/// Answers on all listeners until `stop` is done.
pub(super) async fn serve<C: Clients>(
    listeners: Vec<C>,
    shared: Arc<SharedState>,
    stop: impl Future<Output = ()>,
) {
    let places = Arc::new(Semaphore::new(shared.limits.connections));
    let mut listening = JoinSet::new();
    for listener in listeners {
        listening.spawn(accept(listener, Arc::clone(&places), Arc::clone(&shared)));
    }
    stop.await;
}

/// Takes connections. Where there is no place, the one that has waited longest for its client ends: clients that are silent keep out none
/// that asks. Those that wait for a place are in the kernel's queue and cost this process nothing.
async fn accept<C: Clients>(listener: C, places: Arc<Semaphore>, shared: Arc<SharedState>) {
    loop {
        let Ok(stream) = listener.accept().await else {
            // Out of file descriptors, or the client has gone.
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        let place = if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
            place
        } else {
            shared.waiting.end_oldest();
            let Ok(place) = Arc::clone(&places).acquire_owned().await else {
                return;
            };
            place
        };
        let shared = Arc::clone(&shared);
        // Here, not in the task: the next connection may need this one's place before the task begins.
        let (number, has_to_end) = shared.waiting.begin();
        tokio::spawn(async move {
            shared.counts.connections.fetch_add(1, Ordering::Relaxed);
            let wait = shared.waiting.of(number);
            tokio::select! {
                () = encrypted(stream, &shared, &wait) => {}
                Ok(()) = has_to_end => {}
            }
            drop(wait);
            shared.counts.connections.fetch_sub(1, Ordering::Relaxed);
            drop(place);
        });
    }
}

/// Serves one connection to its end, behind a handshake where there is TLS.
async fn encrypted<S: ClientStream>(stream: S, shared: &Arc<SharedState>, wait: &Wait<'_>) {
    let takes_calls = shared.receiver.is_some();
    let Some(tls) = &shared.tls else {
        if !takes_calls {
            return connection(stream, shared, wait).await;
        }
        return match timeout(shared.limits.head, begins_with_preface(&stream)).await {
            Ok(true) => calls(stream, shared).await,
            Ok(false) => connection(stream, shared, wait).await,
            Err(_) => {}
        };
    };
    let handshake = async {
        let mut config = tls.current().await;
        if takes_calls {
            let mut with_names = (*config).clone();
            with_names.alpn_protocols = vec![grpc::ALPN.to_vec(), b"http/1.1".to_vec()];
            config = Arc::new(with_names);
        }
        TlsAcceptor::from(config).accept(stream).await
    };
    if let Ok(Ok(stream)) = timeout(shared.limits.head, handshake).await {
        if stream.get_ref().1.alpn_protocol() == Some(grpc::ALPN) {
            return calls(stream, shared).await;
        }
        connection(stream, shared, wait).await;
    }
}

/// True if a client begins with the preface of HTTP/2. Nothing is taken from the stream. No request of HTTP/1 begins with its first byte
/// but `POST`, `PUT` and `PATCH`, whose second byte differs.
async fn begins_with_preface(stream: &impl ClientStream) -> bool {
    let mut bytes = [0; grpc::PREFACE.len()];
    loop {
        let count = stream.peeked(&mut bytes).await.unwrap_or(0);
        if count == 0 || !grpc::PREFACE.starts_with(&bytes[..count]) {
            return false;
        }
        if count == bytes.len() {
            return true;
        }
        sleep(Duration::from_millis(1)).await;
    }
}

/// Serves a connection of HTTP/2 to its end. It waits for its client all the time: another one may take its place.
async fn calls<S>(stream: S, shared: &Arc<SharedState>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let inside = Arc::clone(shared);
    let service = service_fn(move |request| {
        let shared = Arc::clone(&inside);
        async move { respond(request, &shared).await }
    });
    let mut connection = std::pin::pin!(grpc::builder().serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        _ = connection.as_mut() => return,
        () = sleep(shared.limits.connection) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = timeout(shared.limits.last, connection).await;
}

/// Serves one connection to its end. Its errors are the client's: there is nobody to say them to.
async fn connection<S: AsyncRead + AsyncWrite + Unpin>(stream: S, shared: &SharedState, wait: &Wait<'_>) {
    let service = service_fn(|request| async move {
        let ends = wait.answers();
        let answer = respond(request, shared).await;
        wait.waits(ends);
        answer
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(shared.limits.head)
        .max_buf_size(MAX_HEAD)
        .max_headers(MAX_HEADERS);
    let mut connection = std::pin::pin!(http.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        _ = connection.as_mut() => return,
        () = sleep(shared.limits.connection) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = timeout(shared.limits.last, connection).await;
}

async fn respond(request: Request<Incoming>, shared: &SharedState) -> Result<Response<SentBody>, Infallible> {
    let answer = match &shared.receiver {
        Some(receiver) if request.uri().path() == receiver::PATH => {
            receiver.answer(request, &shared.users, shared.limits.head).await
        }
        Some(receiver) if grpc::is_call(&request) => {
            if request.uri().path() == grpc::PATH {
                grpc::answer(receiver.call(request, &shared.users, shared.limits.head).await)
            } else {
                grpc::unknown()
            }
        }
        _ => read(&request, shared).await,
    };
    shared.counts.answered(answer.status().as_u16());
    Ok(grpc::sent(answer))
}

/// The answer to who reads.
async fn read(request: &Request<Incoming>, shared: &SharedState) -> Answer {
    let headers = request.headers();
    if shared.users.admits(headers.get(AUTHORIZATION)).await {
        let asked = AskedTexts {
            metrics: |format| text(shared, format),
            target: |name: &str, module: Option<&str>, format| {
                let mut text = shared.source.target(name, module, format)?;
                end(&mut text, format);
                Some(text)
            },
        };
        answer(request.method(), request.uri(), headers, asked)
    } else {
        unauthorized()
    }
}

/// The text of a scrape: the source's part, then what is of this moment.
fn text(shared: &SharedState, format: Format) -> String {
    let mut text = shared.source.part(format);
    let mut now = Exposition::default();
    shared.source.add(&mut now);
    shared.counts.add(&mut now);
    if let Some(tls) = &shared.tls {
        tls.add(&mut now);
    }
    if let Some(receiver) = &shared.receiver {
        receiver.add(&mut now);
    }
    text.push_str(&now.part(format));
    end(&mut text, format);
    text
}

#[cfg(test)]
mod simulated;
#[cfg(test)]
mod tests;
