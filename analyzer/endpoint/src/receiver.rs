//! Requests of OTLP: `POST /v1/metrics`, and the unary call of gRPC (`grpc.rs`), whose points become samples (OTLP specification).
//!
//! A request takes 4 MiB at most, packed and unpacked. Few are read at once and one is understood at a time: who sends more is told to
//! come back.

use std::collections::HashSet;
use std::io::Read as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::bail;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::header::{
    ALLOW, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER,
    WWW_AUTHENTICATE,
};
use hyper::{Method, Request, Response, StatusCode};
use roce_metrics::{Exposition, OTLP_POINTS, OTLP_UNKNOWN_NAMES};
use roce_model::{Sample, value_of};
use roce_otlp::{
    MAX_REQUEST, PointTally, RequestForm, Translator, failure, read_json, read_protobuf, success,
};
use sha2::{Digest, Sha256};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::answer::Answer;
use super::users::Users;

/// The path of requests.
pub(super) const PATH: &str = "/v1/metrics";

/// Bytes before a message of gRPC.
const GRPC_PREFIX: usize = 5;
/// Requests whose bodies are in memory at one time; others are answered 503.
const MAX_BODIES: usize = 8;
/// Bytes of a file of tokens.
const MAX_TOKENS_FILE: u64 = 64 << 10;
/// Shortest token: 16 characters of base64 have 96 bits.
const MIN_TOKEN: usize = 16;

/// Takes the samples of requests.
pub trait SampleReceiver: Send + Sync {
    /// Takes the samples of one request, in its order. It waits for nothing, and returns how many found no room.
    fn take(&self, samples: Vec<Sample>) -> u64;
}

/// Tokens that may send (RFC 6750): a file with one in each line. Lines that begin with `#` are comments.
#[derive(Clone, Default)]
pub struct Tokens {
    digests: HashSet<[u8; 32]>,
}

impl Tokens {
    /// Reads a file of tokens.
    ///
    /// # Errors
    /// The file cannot be read, has no token, or one that is too short or has other characters than tokens.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = roce_files::read_text(path, MAX_TOKENS_FILE)?;
        let mut digests = HashSet::new();
        for (number, line) in (1..).zip(text.lines()) {
            let token = line.trim();
            if token.is_empty() || token.starts_with('#') {
                continue;
            }
            let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
            if token.len() < MIN_TOKEN || !token.bytes().all(is_token) {
                bail!(
                    "{}: line {number} is no token: at least {MIN_TOKEN} letters, digits and -._~+/= (RFC 6750)",
                    path.display()
                );
            }
            digests.insert(Sha256::digest(token).into());
        }
        if digests.is_empty() {
            bail!("{}: has no token", path.display());
        }
        Ok(Self { digests })
    }

    /// True if this value of `Authorization` has a token. The digests are compared, so the time says nothing about a token.
    fn admit(&self, authorization: Option<&HeaderValue>) -> bool {
        let text = authorization.and_then(|value| value.to_str().ok());
        let Some((scheme, token)) = text.and_then(|text| text.split_once(' ')) else {
            return false;
        };
        let digest: [u8; 32] = Sha256::digest(token.trim()).into();
        scheme.eq_ignore_ascii_case("bearer") && self.digests.contains(&digest)
    }
}

/// Receives requests, and counts their points.
pub(super) struct Receiver {
    tokens: Tokens,
    samples: Arc<dyn SampleReceiver>,
    bodies: Semaphore,
    turn: Arc<Semaphore>,
    state: Arc<Mutex<ReceiverState>>,
}

/// State that requests share.
#[derive(Default)]
struct ReceiverState {
    translator: Translator,
    total: PointTally,
}

impl Receiver {
    pub(super) fn new(tokens: Tokens, samples: Arc<dyn SampleReceiver>) -> Self {
        Self {
            tokens,
            samples,
            bodies: Semaphore::new(MAX_BODIES),
            turn: Arc::new(Semaphore::new(1)),
            state: Arc::default(),
        }
    }

    /// Adds numbers of points.
    pub(super) fn add(&self, into: &mut Exposition) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        for (outcome, count) in state.total.outcomes() {
            into.own(OTLP_POINTS, &[("outcome", outcome.into())], value_of(count));
        }
        into.own(
            OTLP_UNKNOWN_NAMES,
            &[],
            value_of(state.total.unknown.len() as u64),
        );
    }

    /// Answers a request of OTLP/HTTP. A body has to come within `patience`.
    pub(super) async fn answer(
        &self,
        request: Request<Incoming>,
        users: &Users,
        patience: Duration,
    ) -> Answer {
        let encoding = media_type(request.headers()).and_then(RequestForm::from_media_type);
        let taken = self.http(request, encoding, users, patience).await;
        match (taken, encoding) {
            (Ok(tally), Some(encoding)) => with(encoding, StatusCode::OK, success(encoding, &tally)),
            (Ok(_), None) => refused(encoding, &Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "")),
            (Err(refusal), encoding) => refused(encoding, &refusal),
        }
    }

    async fn http(
        &self,
        request: Request<Incoming>,
        encoding: Option<RequestForm>,
        users: &Users,
        patience: Duration,
    ) -> Result<PointTally, Refusal> {
        let headers = request.headers();
        self.admit(headers, users).await?;
        if request.method() != Method::POST {
            return Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "only POST"));
        }
        let Some(encoding) = encoding else {
            let kinds = "Content-Type: application/x-protobuf or application/json";
            return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, kinds));
        };
        let is_packed = is_packed(headers.get(CONTENT_ENCODING))?;
        let (bytes, place) = self.body(request.into_body(), MAX_REQUEST, patience).await?;
        let tally = self.take(bytes, 0, encoding, is_packed).await;
        drop(place);
        tally
    }

    /// Takes the unary call `MetricsService/Export` (gRPC over HTTP/2, PROTOCOL-HTTP2): a byte that says whether the message is
    /// compressed, four of its length, and the message.
    pub(super) async fn call(
        &self,
        request: Request<Incoming>,
        users: &Users,
        patience: Duration,
    ) -> Result<PointTally, Refusal> {
        let headers = request.headers();
        self.admit(headers, users).await?;
        let has_packing = is_packed(headers.get("grpc-encoding"))?;
        let limit = MAX_REQUEST + GRPC_PREFIX;
        let (bytes, place) = self.body(request.into_body(), limit, patience).await?;
        let prefix = bytes.first_chunk::<GRPC_PREFIX>();
        let Some([flag @ (0 | 1), length @ ..]) = prefix else {
            return Err(Refusal::new(StatusCode::BAD_REQUEST, "no message of gRPC"));
        };
        if u32::from_be_bytes(*length) as usize != bytes.len() - GRPC_PREFIX {
            return Err(Refusal::new(
                StatusCode::BAD_REQUEST,
                "not one whole message of gRPC",
            ));
        }
        let is_packed = *flag == 1;
        if is_packed && !has_packing {
            let text = "a compressed message without grpc-encoding";
            return Err(Refusal::new(StatusCode::BAD_REQUEST, text));
        }
        let tally = self
            .take(bytes, GRPC_PREFIX, RequestForm::Protobuf, is_packed)
            .await;
        drop(place);
        tally
    }

    /// Admits who has a token, or a user's password; where neither is asked for, everybody.
    async fn admit(&self, headers: &HeaderMap, users: &Users) -> Result<(), Refusal> {
        let authorization = headers.get(AUTHORIZATION);
        let is_open = self.tokens.digests.is_empty() || !users.is_empty();
        if self.tokens.admit(authorization) || (is_open && users.admits(authorization).await) {
            Ok(())
        } else {
            Err(Refusal::new(
                StatusCode::UNAUTHORIZED,
                "a token or a password is needed",
            ))
        }
    }

    /// The whole body, and its place among those that are in memory.
    async fn body(
        &self,
        body: Incoming,
        limit: usize,
        patience: Duration,
    ) -> Result<(Bytes, SemaphorePermit<'_>), Refusal> {
        if body.size_hint().lower() > limit as u64 {
            return Err(Refusal::too_large());
        }
        let Ok(place) = self.bodies.try_acquire() else {
            return Err(Refusal::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "too many requests at once",
            ));
        };
        match timeout(patience, Limited::new(body, limit).collect()).await {
            Ok(Ok(body)) => Ok((body.to_bytes(), place)),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Refusal::too_large()),
            Ok(Err(_)) => Err(Refusal::new(StatusCode::BAD_REQUEST, "the body is broken")),
            Err(_) => Err(Refusal::new(
                StatusCode::REQUEST_TIMEOUT,
                "the body did not come in time",
            )),
        }
    }

    /// Takes the samples of a message, which begins at a byte of the body.
    async fn take(
        &self,
        bytes: Bytes,
        begin: usize,
        encoding: RequestForm,
        is_packed: bool,
    ) -> Result<PointTally, Refusal> {
        let failed = || Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "it could not be understood");
        let turn = Arc::clone(&self.turn)
            .acquire_owned()
            .await
            .map_err(|_| failed())?;
        let state = Arc::clone(&self.state);
        let understood = tokio::task::spawn_blocking(move || {
            let message = bytes.get(begin..).unwrap_or_default();
            let result = understand(message, encoding, is_packed, &state);
            drop(turn);
            result
        });
        let (samples, mut tally) = understood.await.map_err(|_| failed())??;
        tally.no_room = self.samples.take(samples);
        tally.taken -= tally.no_room.min(tally.taken);
        Ok(tally)
    }
}

/// Why a request is not taken.
pub(super) struct Refusal {
    /// The status of HTTP.
    pub(super) status: StatusCode,
    pub(super) text: String,
}

impl Refusal {
    fn new(status: StatusCode, text: &str) -> Self {
        let text = text.to_owned();
        Self { status, text }
    }

    fn too_large() -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "more than 4 MiB")
    }
}

/// True of a body that is packed with gzip.
fn is_packed(packing: Option<&HeaderValue>) -> Result<bool, Refusal> {
    match packing.map(HeaderValue::as_bytes) {
        None | Some(b"" | b"identity") => Ok(false),
        Some(b"gzip") => Ok(true),
        Some(_) => Err(Refusal::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "compression: gzip or none",
        )),
    }
}

/// The samples of a request and what became of its points.
fn understand(
    bytes: &[u8],
    encoding: RequestForm,
    is_packed: bool,
    state: &Mutex<ReceiverState>,
) -> Result<(Vec<Sample>, PointTally), Refusal> {
    let mut unpacked = Vec::new();
    let bytes = if is_packed {
        let limit = MAX_REQUEST as u64 + 1;
        let count = flate2::read::MultiGzDecoder::new(bytes)
            .take(limit)
            .read_to_end(&mut unpacked)
            .map_err(|error| Refusal::new(StatusCode::BAD_REQUEST, &format!("gzip: {error}")))?;
        if count > MAX_REQUEST {
            return Err(Refusal::too_large());
        }
        &unpacked
    } else {
        bytes
    };
    let mut samples = Vec::new();
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    let translator = &mut state.translator;
    let read = match encoding {
        RequestForm::Protobuf => read_protobuf(bytes, translator, &mut samples),
        RequestForm::Json => read_json(bytes, translator, &mut samples),
    };
    let tally = translator.take_tally();
    read.map_err(|error| Refusal::new(StatusCode::BAD_REQUEST, &error.to_string()))?;
    state.total.add(&tally);
    Ok((samples, tally))
}

fn media_type(headers: &HeaderMap) -> Option<&str> {
    headers.get(CONTENT_TYPE)?.to_str().ok()
}

/// A failure, in the encoding of the request; of one without a known encoding in JSON.
fn refused(encoding: Option<RequestForm>, refusal: &Refusal) -> Answer {
    let encoding = encoding.unwrap_or(RequestForm::Json);
    let mut answer = with(encoding, refusal.status, failure(encoding, &refusal.text));
    let added = match refusal.status {
        StatusCode::UNAUTHORIZED => Some((WWW_AUTHENTICATE, "Bearer realm=\"otlp\"")),
        StatusCode::METHOD_NOT_ALLOWED => Some((ALLOW, "POST")),
        // The specification's throttling: come back after a second.
        StatusCode::SERVICE_UNAVAILABLE => Some((RETRY_AFTER, "1")),
        _ => None,
    };
    if let Some((name, value)) = added {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}

fn with(encoding: RequestForm, status: StatusCode, body: Vec<u8>) -> Answer {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    answer
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(encoding.media_type()));
    answer
}
