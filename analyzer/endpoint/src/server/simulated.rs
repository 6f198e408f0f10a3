//! The endpoint in simulated time, from seeds: readers that hang, fail or die, and clients that scrape, wait, send half of a request, read
//! nothing or vanish.
//!
//! The runtime's clock stands still while something can be done, and then goes on to what is due next. Readers act at even milliseconds,
//! clients at odd ones, so an answer has one right content.

use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll};

use roce_metrics::{Label, PORT_UP};
use roce_model::random::{Random, stream};
use roce_model::seeds::{below, each, once_in};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, ReadBuf, duplex};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::Instant;

use super::*;
use crate::{Latest, Texts};

/// Length of a world, in milliseconds. Clients come in this time.
const LENGTH: u64 = 600_000;
/// Bytes of a connection that are under way.
const WAY: usize = 4 << 10;
/// Longest time from a client's connection to its end where places are free, in milliseconds: the limit of a connection, of its last answer,
/// and of what it does itself.
const LONGEST: u64 = 75_000;
/// A request that is whole.
const REQUEST: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

/// A connection without a socket.
struct SimulatedStream(DuplexStream);

impl AsyncRead for SimulatedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for SimulatedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

impl ClientStream for SimulatedStream {
    async fn peeked(&self, _: &mut [u8]) -> io::Result<usize> {
        // No world takes OTLP.
        Ok(0)
    }
}

/// Where clients of a world connect.
struct Door(tokio::sync::Mutex<UnboundedReceiver<DuplexStream>>);

impl Clients for Door {
    type Stream = SimulatedStream;

    async fn accept(&self) -> io::Result<SimulatedStream> {
        match self.0.lock().await.recv().await {
            Some(stream) => Ok(SimulatedStream(stream)),
            // No client is left.
            None => std::future::pending().await,
        }
    }
}

/// The last reading of a reader.
#[derive(Clone, Copy)]
struct LastReading {
    at: Instant,
    /// Its number; `None`: it has failed.
    number: Option<u64>,
}

/// A reader, its readings, and what is true of it.
struct Reader {
    latest: Latest,
    interval: Duration,
    last: Mutex<Option<LastReading>>,
}

/// All readers of a world.
struct Readers(Vec<Reader>);

const NAMES: [&str; 3] = ["host", "doctor", "gpu"];

impl EndpointSource for Readers {
    fn part(&self, format: Format) -> String {
        let parts: Vec<String> = self.0.iter().map(|reader| reader.latest.part(format)).collect();
        parts.concat()
    }

    fn add(&self, into: &mut Exposition) {
        self.0.iter().for_each(|reader| reader.latest.add_collector(into));
    }
}

impl Readers {
    /// An answer states readings that there are, and no others.
    fn holds(&self, body: &str) {
        for (reader, name) in self.0.iter().zip(NAMES) {
            let last = *reader.last.lock().unwrap();
            let fresh = last.filter(|last| last.at.elapsed() <= reader.interval * 3);
            let number = fresh.and_then(|last| last.number);
            let success = format!(
                "roce_collector_success{{collector=\"{name}\"}} {}\n",
                u8::from(number.is_some())
            );
            assert!(body.contains(&success), "{success}: {body}");
            let value = format!("roce_port_up{{device=\"{name}\"}} ");
            let stated = body.lines().find_map(|line| line.strip_prefix(&*value));
            let stated = stated.map(|number| number.parse::<u64>().unwrap());
            assert_eq!(stated, number, "{name}: {body}");
        }
    }
}

/// Waits until a millisecond of the world.
async fn until(begun: Instant, millisecond: u64) {
    tokio::time::sleep_until(begun + Duration::from_millis(millisecond)).await;
}

/// Reads until the world ends.
async fn read_on(readers: Arc<Readers>, at: usize, mut random: Random, begun: Instant) {
    let (reader, random) = (&readers.0[at], &mut random);
    let interval = u64::try_from(reader.interval.as_millis()).unwrap();
    let mut now = 0;
    for number in 1.. {
        // Now and then it hangs, up to six intervals.
        let pause = if once_in(random, 8) {
            below(random, 6 * interval)
        } else {
            interval
        };
        now += 2 + pause / 2 * 2;
        if now >= LENGTH {
            return;
        }
        until(begun, now).await;
        let is_whole = !once_in(random, 6);
        if is_whole {
            let mut exposition = Exposition::default();
            exposition.own(PORT_UP, &[("device", NAMES[at].into())], value_of(number));
            reader.latest.take(Texts::from(&exposition), None);
        } else {
            reader.latest.fail();
        }
        *reader.last.lock().unwrap() = Some(LastReading {
            at: Instant::now(),
            number: is_whole.then_some(number),
        });
    }
}

/// The way in which a client behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Manner {
    Scrape,
    /// Sends its request in pieces, each so many milliseconds behind the other.
    Slow(u64),
    /// Connects, and waits.
    Silent,
    /// Sends the beginning of a request, and vanishes.
    Vanish,
    /// Sends bytes that are no request.
    Noise,
    /// Sends a head without an end.
    Endless,
    /// Asks again and again, and reads nothing.
    ReadsNothing,
}

impl Manner {
    fn drawn(random: &mut Random) -> Self {
        match below(random, 12) {
            0 => Self::Slow(1 + below(random, 2_000)),
            1 => Self::Silent,
            2 => Self::Vanish,
            3 => Self::Noise,
            4 => Self::Endless,
            5 => Self::ReadsNothing,
            _ => Self::Scrape,
        }
    }
}

/// A client, from its connection to its end. Returns its manner, its answer and how long it took, in milliseconds.
async fn client(
    door: UnboundedSender<DuplexStream>,
    readers: Arc<Readers>,
    mut random: Random,
    (begun, at): (Instant, u64),
) -> (Manner, String, u64) {
    let random = &mut random;
    until(begun, at).await;
    let (mut own, other) = duplex(WAY);
    let manner = Manner::drawn(random);
    door.send(other).unwrap();
    let mut answer = Vec::new();
    match manner {
        Manner::Scrape => {
            let _ = own.write_all(REQUEST).await;
        }
        Manner::Slow(pause) => {
            for piece in REQUEST.chunks(7) {
                if own.write_all(piece).await.is_err() {
                    break;
                }
                sleep(Duration::from_millis(pause * 2)).await;
            }
        }
        Manner::Silent => {}
        Manner::Vanish => {
            let _ = own
                .write_all(&REQUEST[..usize::try_from(below(random, 50)).unwrap()])
                .await;
            return (manner, String::new(), 0);
        }
        Manner::Noise => {
            let noise: Vec<u8> = (0..200)
                .map(|_| u8::try_from(below(random, 256)).unwrap())
                .collect();
            let _ = own.write_all(&noise).await;
        }
        Manner::Endless => {
            let _ = own.write_all(b"GET / HTTP/1.1\r\n").await;
            while own
                .write_all(b"X-A: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n")
                .await
                .is_ok()
            {
                sleep(Duration::from_millis(20)).await;
            }
        }
        Manner::ReadsNothing => {
            // The connection ends under it.
            while own
                .write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
                .await
                .is_ok()
            {}
        }
    }
    let _ = own.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer).unwrap();
    if manner == Manner::Scrape && !answer.is_empty() {
        let (head, body) = answer.split_once("\r\n\r\n").expect("a whole head");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        let length = format!("content-length: {}", body.len());
        assert!(head.contains(&length), "{length}: {head}");
        readers.holds(body);
    }
    let took = (Instant::now() - begun).as_millis();
    (manner, answer, u64::try_from(took).unwrap() - at)
}

/// Runs a world to its end.
async fn served(seed: u64) {
    let mut random = stream(seed, "world");
    let random = &mut random;
    let begun = Instant::now();
    let reader = |name: &&'static str| {
        let interval = Duration::from_millis(500 + below(random, 20_000));
        let label: Label<'static> = ("collector", (*name).into());
        Reader {
            latest: Latest::new(label, interval),
            interval,
            last: Mutex::default(),
        }
    };
    let readers = Arc::new(Readers(NAMES.iter().map(reader).collect()));
    // Some worlds have fewer clients than places, others come all at once.
    let count = [20, 80, 200][usize::try_from(below(random, 3)).unwrap()];
    let within = if once_in(random, 2) { LENGTH } else { 1_000 };
    let (door, clients) = unbounded_channel();
    let counts = Arc::new(Counts::default());
    let shared = Arc::new(SharedState::new(
        Arc::clone(&readers) as Arc<dyn EndpointSource>,
        Arc::clone(&counts),
        Users::new(Vec::new()),
        None,
        Limits::default(),
    ));
    let (stop, stopped) = oneshot::channel::<()>();
    let server = tokio::spawn({
        let shared = Arc::clone(&shared);
        async move {
            let door = Door(tokio::sync::Mutex::new(clients));
            serve(vec![door], shared, async {
                let _ = stopped.await;
            })
            .await;
        }
    });
    let reading: Vec<_> = (0..NAMES.len())
        .map(|at| tokio::spawn(read_on(Arc::clone(&readers), at, stream(seed, NAMES[at]), begun)))
        .collect();
    let coming: Vec<_> = (0..count)
        .map(|number| {
            let at = 1 + below(random, within) / 2 * 2;
            let random = stream(seed, &format!("client {number}"));
            tokio::spawn(client(door.clone(), Arc::clone(&readers), random, (begun, at)))
        })
        .collect();
    let (mut answered, mut scrapes) = (0, 0);
    let places = u64::try_from(shared.limits.connections).unwrap();
    for client in coming {
        let (manner, answer, took) = client.await.unwrap();
        // Those that answer may hold all places; whoever waits behind them waits for their limits.
        let longest = LONGEST * (1 + count / places);
        assert!(took <= longest, "{manner:?}: {took} ms");
        if manner == Manner::Scrape {
            scrapes += 1;
            answered += u64::from(!answer.is_empty());
            assert!(!answer.is_empty() || count > places, "a scrape without an answer");
        }
        let open = counts.connections.load(Ordering::Relaxed);
        assert!(open <= places, "{open} connections");
    }
    for reader in reading {
        reader.await.unwrap();
    }
    // Behind all limits nothing is left of any client.
    sleep(Duration::from_millis(LONGEST)).await;
    assert_eq!(counts.connections.load(Ordering::Relaxed), 0, "connections");
    assert!(shared.waiting.all().is_empty(), "connections that wait");
    let good = counts.answers.lock().unwrap().get(&200).copied().unwrap_or(0);
    assert!(
        good >= answered,
        "{good} answers, {answered} came, of {scrapes} scrapes"
    );
    stop.send(()).unwrap();
    server.await.unwrap();
}

fn world(seed: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(served(seed));
}

#[test]
fn whatever_clients_and_readers_do_scrapes_are_answered_with_the_truth() {
    each(world);
}
