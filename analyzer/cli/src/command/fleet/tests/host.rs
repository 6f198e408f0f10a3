//! A simulated host: what it answers, and when, follows from a seed. Its clock goes on by what others wait for it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use roce_model::random::{Random, stream};
use roce_model::seeds::{below, once_in};
use roce_remote::fleet::transfer::hex;
use roce_remote::link::{Link, Script, ScriptBlock};
use roce_remote::{CommandOutput, RemoteError, SessionLine};
use sha2::{Digest as _, Sha256};

use super::super::interrupt::Interrupts;

/// The way in which a host answers one script.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Manner {
    /// Whole, and soon.
    Good,
    /// There is no connection.
    Refused,
    /// The connection is there, and nothing comes.
    Silent,
    /// A part of the answer comes, and the connection is lost.
    Cut,
    /// A part of the answer comes, and it ends well.
    Short,
    /// Each piece comes as late as this number of milliseconds.
    Late(u64),
    /// Another run holds the host, or it has a problem of its own.
    Busy,
    /// Lines of noise before the answer, and bytes behind it.
    Flood,
}

impl Manner {
    /// A good one in five of six cases.
    fn drawn(random: &mut Random) -> Self {
        if !once_in(random, 6) {
            return Self::Good;
        }
        match below(random, 7) {
            0 => Self::Refused,
            1 => Self::Silent,
            2 => Self::Cut,
            3 => Self::Short,
            4 => Self::Late(below(random, 15_000)),
            5 => Self::Busy,
            _ => Self::Flood,
        }
    }
}

/// A file of a host.
#[derive(Clone, Debug)]
pub(super) struct SimulatedFile {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
    pub(super) frames: u64,
    /// The size that the host says.
    said_bytes: u64,
    /// The hash that the host says.
    said_hash: String,
}

impl SimulatedFile {
    /// A classic pcap of 24 bytes, and of each frame 16 and 60; the Internet draft draft-ietf-opsawg-pcap has the form.
    ///
    /// A host that is honest has the same files as one that lies about them.
    fn drawn(random: &mut Random, lies: &mut Random, number: u64, is_honest: bool) -> Self {
        let frames = below(random, 300);
        let mut bytes = Vec::new();
        for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 262_144, 1] {
            bytes.extend(word.to_le_bytes());
        }
        for at in 0..frames {
            let second = u32::try_from(1_600_000_000 + at).unwrap();
            for word in [second, 0, 60, 60] {
                bytes.extend(word.to_le_bytes());
            }
            bytes.extend([u8::try_from(below(random, 256)).unwrap(); 60]);
        }
        let whole = bytes.len() as u64;
        let is_lie = !is_honest && once_in(lies, 8);
        let said_bytes = match below(lies, 3) {
            0 if is_lie => whole + 1 + below(lies, 1_000),
            1 if is_lie => below(lies, whole),
            // More than any disk has.
            2 if is_lie => u64::MAX / 4,
            _ => whole,
        };
        let hash = |bytes: &[u8]| hex(&Sha256::digest(bytes));
        let said_hash = match below(lies, 12) {
            0 if !is_honest => "-".to_owned(),
            1 if !is_honest => hash(b"another file"),
            _ => hash(&bytes),
        };
        Self {
            name: format!("tcpdump.{number}.pcap"),
            bytes,
            frames,
            said_bytes,
            said_hash,
        }
    }

    /// The host says the truth about it.
    pub(super) fn is_true(&self) -> bool {
        self.said_bytes == self.bytes.len() as u64 && self.said_hash == hex(&Sha256::digest(&self.bytes))
    }
}

/// Times at which signals come, by the clock of whichever host is the first to reach them.
#[derive(Debug, Default)]
pub(super) struct Signals {
    pub(super) at: Vec<Duration>,
    pub(super) came: AtomicUsize,
    pub(super) to: Arc<Interrupts>,
}

impl Signals {
    fn pass(&self, elapsed: Duration) {
        let came = self.came.load(Ordering::SeqCst);
        if self.at.get(came).is_some_and(|at| *at <= elapsed)
            && self
                .came
                .compare_exchange(came, came + 1, Ordering::SeqCst, Ordering::SeqCst)
                .is_ok()
        {
            self.to.take();
        }
    }
}

/// A host.
#[derive(Debug)]
pub(super) struct SimulatedHost {
    number: u64,
    pub(super) files: Vec<SimulatedFile>,
    asked: Manner,
    captured: Manner,
    /// Manners of looks, of transfers and of removals, one after the other; later ones are good.
    looked: Mutex<VecDeque<Manner>>,
    fetched: Mutex<VecDeque<Manner>>,
    removed: Mutex<VecDeque<Manner>>,
    random: Mutex<Random>,
    begun: Instant,
    begun_ns: i64,
    elapsed: Mutex<Duration>,
    /// This machine's clock is set by nanoseconds at a time.
    step: (Duration, i64),
    signals: Arc<Signals>,
    /// Scripts that run.
    pub(super) running: Arc<AtomicI64>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no world panics with it")
}

impl SimulatedHost {
    pub(super) fn new(seed: u64, number: u64, signals: &Arc<Signals>, is_honest: bool) -> Self {
        let mut random = stream(seed, &format!("host {number}"));
        let random = &mut random;
        let mut of_files = stream(seed, &format!("files {number}"));
        let count = 1 + below(&mut of_files, 2);
        let files = (0..count).map(|file| SimulatedFile::drawn(&mut of_files, random, file, is_honest));
        let files = files.collect();
        let mut manners = |most: u64| -> Mutex<VecDeque<Manner>> {
            let count = if is_honest { 0 } else { below(random, most) };
            Mutex::new((0..count).map(|_| Manner::drawn(random)).collect())
        };
        let (looked, fetched, removed) = (manners(4), manners(5), manners(2));
        let mut manner = || {
            if is_honest {
                Manner::Good
            } else {
                Manner::drawn(random)
            }
        };
        let (asked, captured) = (manner(), manner());
        let step = if once_in(random, 4) {
            let by = below(random, 7_200_000_000_000).cast_signed() - 3_600_000_000_000;
            (Duration::from_millis(below(random, 60_000)), by)
        } else {
            (Duration::ZERO, 0)
        };
        Self {
            number,
            files,
            asked,
            captured,
            looked,
            fetched,
            removed,
            random: Mutex::new(stream(seed, &format!("answers {number}"))),
            begun: Instant::now(),
            begun_ns: roce_remote::clock::now_ns(),
            elapsed: Mutex::default(),
            step,
            signals: Arc::clone(signals),
            running: Arc::default(),
        }
    }

    /// The time that has passed.
    pub(super) fn elapsed(&self) -> Duration {
        *locked(&self.elapsed)
    }

    /// True if each of its answers is whole, and what it says is true.
    pub(super) fn is_good(&self) -> bool {
        let are_good = |manners: &Mutex<VecDeque<Manner>>| locked(manners).is_empty();
        [self.asked, self.captured] == [Manner::Good; 2]
            && [&self.looked, &self.fetched, &self.removed]
                .into_iter()
                .all(are_good)
            && self.files.iter().all(SimulatedFile::is_true)
    }

    fn pass(&self, time: Duration) {
        let elapsed = {
            let mut elapsed = locked(&self.elapsed);
            *elapsed += time;
            *elapsed
        };
        self.signals.pass(elapsed);
    }

    fn draw(&self, limit: u64) -> u64 {
        below(&mut locked(&self.random), limit)
    }

    /// Lines of a report; a host that was cut off has no exit code.
    fn report(&self) -> Vec<String> {
        let mut lines: Vec<String> = self
            .files
            .iter()
            .map(|file| format!("file={} {} {}", file.said_bytes, file.said_hash, file.name))
            .collect();
        lines.extend(
            [
                "message=tcpdump: listening on eth0",
                "cpu=0m1.0s 0m0.1s",
                "exit=0",
            ]
            .map(str::to_owned),
        );
        lines
    }

    /// The manner and the lines of an answer, and the bytes of a file.
    fn answer(&self, script: &str) -> (Manner, Vec<String>, Vec<u8>) {
        let next = |manners: &Mutex<VecDeque<Manner>>| locked(manners).pop_front().unwrap_or(Manner::Good);
        let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        if let Some(rest) = script.strip_prefix("tail -c +") {
            let from: usize = rest.split(' ').next().unwrap().parse().unwrap();
            let file = self.files.iter().find(|file| rest.contains(&file.name));
            let file = file.expect("only files that were named are fetched");
            let bytes = file.bytes.get(from - 1..).unwrap_or_default().to_vec();
            let most = rest.rsplit(' ').next().unwrap().parse().unwrap_or(usize::MAX);
            return (
                next(&self.fetched),
                Vec::new(),
                bytes[..bytes.len().min(most)].to_vec(),
            );
        }
        if script.contains("say release") {
            let mut answer = lines(&[
                "machine=x86_64",
                "rights=2000",
                "tool=timeout",
                "tool=sha256sum",
                "tcpdump=1 /usr/bin/tcpdump",
                "base=/var/tmp/roce-fleet-0",
                "free=1000000000",
                "interface=eth0 up 100000",
                "interface=eth1 up 100000",
                "rdma=mlx5_0 1 eth0",
                "rdma=mlx5_1 1 eth1",
            ]);
            answer.push(format!("hostname=gpu{}", self.number));
            answer.push(format!("boot=boot-{}", self.number));
            answer.push("net=net:[4026531840]".to_owned());
            if self.asked == Manner::Busy {
                answer.push("busy=77 1600000000 another@host".to_owned());
            }
            answer.push("end=1".to_owned());
            return (self.asked, answer, Vec::new());
        }
        if script.contains("say removed 1") {
            return (next(&self.removed), lines(&["removed=1", "end=1"]), Vec::new());
        }
        if script.contains("grep -q '^exit='") {
            let manner = next(&self.looked);
            let answer = if manner == Manner::Busy {
                lines(&["busy=77 1600000000 another@host"])
            } else {
                let mut report = self.report();
                report.push("end=1".to_owned());
                report
            };
            return (manner, answer, Vec::new());
        }
        assert!(script.contains("tcpdump"), "an unknown script: {script}");
        let mut answer = lines(&["pid=77", "captures=1"]);
        if self.captured == Manner::Busy {
            answer = lines(&["problem=the disk is full"]);
        } else {
            answer.extend(self.report());
        }
        (self.captured, answer, Vec::new())
    }

    /// Pieces of an answer with the time of each, and how it ends; `None`: it does not end.
    fn pieces(
        &self,
        manner: Manner,
        lines: Vec<String>,
        bytes: &[u8],
        is_capture: bool,
    ) -> (VecDeque<(Duration, Piece)>, Option<bool>) {
        let mut at = self.elapsed();
        let mut step = |by: u64| {
            at += Duration::from_millis(1 + by);
            at
        };
        let delay = match manner {
            Manner::Late(milliseconds) => milliseconds,
            _ => self.draw(200),
        };
        let mut pieces = VecDeque::new();
        if manner == Manner::Silent {
            return (pieces, None);
        }
        if manner == Manner::Flood {
            for _ in 0..self.draw(400) {
                let noise = "x".repeat(usize::try_from(self.draw(2_000)).unwrap());
                pieces.push_back((step(1), Piece::Line(noise)));
            }
        }
        for (number, line) in lines.into_iter().enumerate() {
            // A capture reports behind its length.
            let length = if is_capture && number == 2 { 5_000 } else { 0 };
            pieces.push_back((step(delay + length), Piece::Line(line)));
        }
        for block in bytes.chunks(256 + usize::try_from(self.draw(9_000)).unwrap()) {
            pieces.push_back((step(delay), Piece::Bytes(block.to_vec())));
        }
        if manner == Manner::Flood && !bytes.is_empty() {
            pieces.push_back((step(1), Piece::Bytes(vec![0; 20_000])));
        }
        let is_well = match manner {
            Manner::Cut | Manner::Short => {
                let kept = self.draw(pieces.len() as u64);
                pieces.truncate(usize::try_from(kept).unwrap());
                manner == Manner::Short
            }
            _ => true,
        };
        pieces.push_back((step(1), Piece::Close));
        (pieces, Some(is_well))
    }
}

/// A piece of an answer.
#[derive(Debug)]
enum Piece {
    Line(String),
    Bytes(Vec<u8>),
    Close,
}

/// A script on a simulated host.
#[derive(Debug)]
struct SimulatedScript {
    host: Arc<SimulatedHost>,
    pieces: VecDeque<(Duration, Piece)>,
    /// It ends, and well.
    is_well: Option<bool>,
    answers_times: bool,
    is_closed: bool,
}

impl SimulatedScript {
    /// The next piece that comes in time.
    fn next(&mut self, patience: Duration) -> Option<Piece> {
        let now = self.host.elapsed();
        match self.pieces.front() {
            _ if self.is_closed => return Some(Piece::Close),
            Some((at, _)) if *at <= now + patience => self.host.pass(at.saturating_sub(now)),
            _ => {
                self.host.pass(patience);
                return None;
            }
        }
        let piece = self.pieces.pop_front().map(|(_, piece)| piece);
        // A script that answers with times is open until its input is closed.
        self.is_closed = matches!(piece, Some(Piece::Close));
        piece
    }
}

impl Script for SimulatedScript {
    fn block(&mut self, patience: Duration) -> ScriptBlock {
        match self.next(patience) {
            Some(Piece::Bytes(bytes)) => ScriptBlock::Bytes(bytes),
            Some(Piece::Line(line)) => ScriptBlock::Bytes(format!("{line}\n").into_bytes()),
            Some(Piece::Close) => ScriptBlock::Closed,
            None => ScriptBlock::Silence,
        }
    }

    fn line(&mut self, patience: Duration) -> SessionLine {
        match self.next(patience) {
            Some(Piece::Line(line)) => SessionLine::Text(line),
            Some(Piece::Bytes(_)) => unreachable!("files are read by blocks"),
            Some(Piece::Close) => SessionLine::Closed,
            None => SessionLine::Silence,
        }
    }

    fn say(&mut self, line: &str) -> bool {
        if self.answers_times && line == "time" {
            let now = self.host.elapsed();
            let at = now + Duration::from_millis(1 + self.host.draw(50));
            let ns = self.host.now_ns();
            let (second, fraction) = (ns / 1_000_000_000, ns % 1_000_000_000);
            let answer = Piece::Line(format!("time={second}.{fraction:09}"));
            self.pieces.retain(|(_, piece)| !matches!(piece, Piece::Close));
            self.pieces.push_back((at, answer));
        }
        !self.is_closed
    }

    fn close_input(&mut self) {
        // A capture ends now, and reports.
        let mut at = self.host.elapsed();
        if self.is_well.is_some() {
            for piece in &mut self.pieces {
                at += Duration::from_millis(1);
                piece.0 = piece.0.min(at);
            }
        }
    }

    fn finish(&mut self, patience: Duration) -> Result<(), RemoteError> {
        match self.is_well {
            Some(true) => Ok(()),
            Some(false) => Err(RemoteError::Unreachable("the connection was lost".to_owned())),
            None => {
                self.host.pass(patience);
                Err(RemoteError::NoAnswer(patience))
            }
        }
    }
}

impl Drop for SimulatedScript {
    fn drop(&mut self) {
        self.host.running.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The link of a host.
#[derive(Clone, Debug)]
pub(super) struct SimulatedLink(pub(super) Arc<SimulatedHost>);

impl SimulatedLink {
    fn script(&self, script: &str) -> Result<SimulatedScript, RemoteError> {
        let host = &self.0;
        let (manner, lines, bytes) = host.answer(script);
        host.pass(Duration::from_millis(1 + host.draw(50)));
        if manner == Manner::Refused {
            return Err(RemoteError::Unreachable("connection refused".to_owned()));
        }
        let is_capture = lines.first().is_some_and(|line| line == "pid=77");
        let (pieces, is_well) = host.pieces(manner, lines, &bytes, is_capture);
        host.running.fetch_add(1, Ordering::SeqCst);
        Ok(SimulatedScript {
            host: Arc::clone(host),
            pieces,
            is_well,
            answers_times: script.contains("say release"),
            is_closed: false,
        })
    }
}

impl SimulatedHost {
    fn now_ns(&self) -> i64 {
        let elapsed = self.elapsed();
        let (at, by) = self.step;
        let set = if elapsed >= at { by } else { 0 };
        self.begun_ns + i64::try_from(elapsed.as_nanos()).unwrap() + set
    }
}

impl Link for SimulatedLink {
    fn now(&self) -> Instant {
        self.0.begun + self.0.elapsed()
    }

    fn now_ns(&self) -> i64 {
        self.0.now_ns()
    }

    fn sleep(&self, time: Duration) {
        self.0.pass(time);
    }

    fn start(&self, script: &str) -> Result<Box<dyn Script>, RemoteError> {
        Ok(Box::new(self.script(script)?))
    }

    fn run(
        &self,
        script: &str,
        patience: Duration,
        max_bytes: u64,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<CommandOutput, RemoteError> {
        let mut script = self.script(script)?;
        let until = self.now() + patience;
        let mut output = Vec::new();
        loop {
            match script.block(Duration::from_millis(100)) {
                ScriptBlock::Bytes(bytes) => output.extend(bytes),
                ScriptBlock::Silence => {}
                ScriptBlock::Closed => break,
            }
            output.truncate(usize::try_from(max_bytes).unwrap());
            if !goes_on() {
                return Err(RemoteError::Interrupted);
            }
            if self.now() > until {
                return Err(RemoteError::NoAnswer(patience));
            }
        }
        let failure = script.finish(patience).err();
        match failure {
            Some(RemoteError::Unreachable(why)) => Err(RemoteError::Unreachable(why)),
            failure => Ok(CommandOutput { output, failure }),
        }
    }
}
