//! Reads a log line by line: which facts of which rank belong together.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{BufRead, Read};

use super::connections::{self, Batch, QueuePair, queue_pair, send};
use super::fields::{MAX_DEVICES, MAX_KEPT, devices_of, edge, keep, setting, short, version};
use super::line::{self, Level, MAX_LINE_BYTES, field, number};
use super::log::{Communicator, Edge, Log};
use super::shapes::{self, Fact, Shapes};
use crate::errors::{ErrorReader, ErrorReport, report};

/// Hosts whose devices are kept.
const MAX_HOSTS: usize = 4_096;
/// Queue pairs that are kept: some 200 MB.
const MAX_QUEUE_PAIRS: usize = 1 << 20;
/// Completions with an error, and warnings, that are kept of each.
pub(super) const MAX_ERRORS: usize = 10_000;
/// Facts about shapes of a rank that wait for the name of their communicator.
const MAX_WAITING: usize = 4_096;

/// A rank of a communicator, as a process prints it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Member {
    /// The address of the communicator's structure in that process.
    pointer: String,
    rank: Option<u32>,
    communicator: usize,
    is_complete: bool,
}

/// A thread's device in a process: one rank of each of its communicators.
#[derive(Debug, Default)]
struct Writer {
    members: Vec<Member>,
    batch: Batch,
    /// Queue pairs and shapes before the communicator had a name.
    unnamed: Vec<usize>,
    waiting: Vec<Fact>,
}

/// Communicators of a writer that are kept: jobs make a few for each kind of parallelism.
const MAX_MEMBERS: usize = 256;

type Key = (String, u32, u32);

/// Reads a log, line by line, in memory that does not grow with it.
#[derive(Debug, Default)]
pub struct Reader {
    log: Log,
    writers: HashMap<Key, Writer>,
    by_name: HashMap<String, usize>,
    shapes: Vec<Shapes>,
    steps: usize,
    /// Devices of hosts, in NCCL's order.
    host_devices: HashMap<String, Vec<String>>,
    /// Host and rank whose process sends for other ranks.
    senders_for_others: BTreeSet<(String, u32)>,
    /// The queue pair of a completion whose other line comes next, by process.
    announced: HashMap<(String, u32), ErrorReport>,
    /// Errors of other programs.
    others: ErrorReader,
    /// Communicators without an id of which a process has several: their size does not tell them apart.
    ambiguous: BTreeSet<usize>,
    /// Files before the current one, and the lines in them.
    files: usize,
    lines_before: u64,
}

impl Reader {
    /// Reads the next line.
    pub fn line(&mut self, line: &str) {
        self.log.lines += 1;
        if line.len() > MAX_LINE_BYTES {
            self.log.long_lines += 1;
            return;
        }
        if let Some(version) = version(line) {
            keep(&mut self.log.versions, version);
            return;
        }
        let at = usize::try_from(self.log.lines - self.lines_before).unwrap_or(usize::MAX);
        let Some(line) = line::parse(line) else {
            self.others.line(line, self.files, at);
            return;
        };
        self.log.own_lines += 1;
        if line.text.contains("via NET/Socket") || line.text.contains("Using network Socket") {
            self.log.sockets.get_or_insert(at);
        }
        let is_known = self.error(&line, at) || self.is_about_run(&line) || self.is_about_rank(&line, at);
        if !is_known && line.level == Level::Warn {
            if self.log.warnings.len() < MAX_ERRORS {
                self.log.warnings.push((at, short(line.text)));
            } else {
                self.log.left_out += 1;
            }
        } else if !is_known {
            self.log.unknown_lines += 1;
        }
    }

    /// Reads a file to its end. Lines that are too long are passed over in pieces.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(&mut self, mut input: impl BufRead) -> std::io::Result<()> {
        let mut line = Vec::new();
        loop {
            line.clear();
            let limit = MAX_LINE_BYTES as u64 + 1;
            if Read::take(&mut input, limit).read_until(b'\n', &mut line)? == 0 {
                break;
            }
            let is_whole = line.len() <= MAX_LINE_BYTES || line.last() == Some(&b'\n');
            self.line(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']));
            if !is_whole {
                skip_line(&mut input)?;
            }
        }
        self.files += 1;
        self.lines_before = self.log.lines;
        Ok(())
    }

    /// Reads a completion with an error, or that there is no device.
    fn error(&mut self, line: &line::NcclLine<'_>, at: usize) -> bool {
        if line.text.contains("No device found") && line.text.contains("NET/IB") {
            self.log.no_device.get_or_insert(at);
            return true;
        }
        let Some(found) = report(line.text) else {
            return false;
        };
        let process = line.process.map(|(host, number)| (host.to_owned(), number));
        if line.text.contains("Got CQE with error") {
            if let Some(process) = process.filter(|_| self.announced.len() < MAX_KEPT) {
                self.announced.insert(process, found);
            }
            return true;
        }
        let announced = process
            .as_ref()
            .and_then(|process| self.announced.remove(process));
        if self.log.errors.len() >= MAX_ERRORS {
            self.log.left_out += 1;
            return true;
        }
        self.log.errors.push(ErrorReport {
            file: self.files,
            line: at,
            device: line.device,
            queue_pair: found
                .queue_pair
                .or(announced.as_ref().and_then(|other| other.queue_pair)),
            request: found.request.or(announced.and_then(|other| other.request)),
            process,
            ..found
        });
        true
    }

    /// Reads a line about the host or the library.
    fn is_about_run(&mut self, line: &line::NcclLine<'_>) -> bool {
        let text = line.text;
        let log = &mut self.log;
        if let Some((name, value)) = setting(text) {
            if log.settings.len() < MAX_KEPT || log.settings.contains_key(name) {
                log.settings.insert(short(name), short(value));
            }
        } else if let Some((_, devices)) = text.split_once("NET/IB : Using ") {
            let (devices, out_of_band) = devices.split_once("; OOB ").unwrap_or((devices, ""));
            let names = devices_of(devices);
            log.is_relaxed |= devices.split_whitespace().any(|field| field == "[RO]");
            for device in &names {
                if log.devices.len() < MAX_DEVICES && !log.devices.contains(device) {
                    log.devices.push(device.clone());
                }
            }
            if let Some((host, _)) = line.process
                && self.host_devices.len() < MAX_HOSTS
            {
                self.host_devices.insert(host.to_owned(), names);
            }
            if let Some((interface, _)) = out_of_band.split_once(':') {
                keep(&mut log.out_of_band, interface.trim());
            }
        } else if let Some((_, network)) = text.split_once("Using network ") {
            keep(&mut log.networks, network.trim());
        } else {
            return false;
        }
        true
    }

    /// Reads a line about a rank: its communicator, connections, queue pairs or shapes.
    fn is_about_rank(&mut self, line: &line::NcclLine<'_>, at: usize) -> bool {
        let text = line.text;
        let writer = line
            .process
            .zip(line.device)
            .map(|((host, process), device)| (host.to_owned(), process, device));
        if let Some(edge) = edge(text) {
            self.edge(edge);
            if let (Some((send, by)), Some(key)) = (send(text), writer) {
                self.send(&key, send, by);
            }
            return true;
        }
        if let Some(pair) = queue_pair(text) {
            self.pair(&pair, line, writer.as_ref(), at);
            return true;
        }
        if let Some(facts) = shapes::facts(text) {
            if let Some(writer) = writer.and_then(|key| self.writer(&key)) {
                let room = MAX_WAITING.saturating_sub(writer.waiting.len());
                writer.waiting.extend(facts.into_iter().take(room));
            }
            return true;
        }
        if let Some(pointer) = field(text, "comm ").filter(|word| word.starts_with("0x")) {
            let rank = number(text, " rank ");
            let size: Option<u32> = number(text, " nranks ").or_else(|| number(text, " nRanks "));
            if rank.is_some() && size.is_some() {
                self.member(text, pointer, rank, size, writer.as_ref());
                return true;
            }
        }
        // The extensions of a queue pair that another line has named.
        if text.contains("query_ece=") || text.contains("set_ece=") {
            return true;
        }
        let is_end = text.starts_with("Connected all") || text.contains("Connected NVLS");
        if is_end && let Some(key) = &writer {
            self.flush(key);
        }
        is_end
    }

    fn edge(&mut self, edge: Edge) {
        let edges = &mut self.log.edges;
        if edges.len() >= MAX_KEPT && !edges.contains_key(&edge) {
            self.log.left_out += 1;
        } else {
            *edges.entry(edge).or_default() += 1;
        }
    }

    fn writer(&mut self, key: &Key) -> Option<&mut Writer> {
        if self.writers.len() >= MAX_KEPT && !self.writers.contains_key(key) {
            self.log.left_out += 1;
            return None;
        }
        Some(self.writers.entry(key.clone()).or_default())
    }

    fn send(&mut self, key: &Key, send: connections::Send, by: Option<u32>) {
        if let Some(by) = by {
            if self.senders_for_others.len() < MAX_KEPT {
                self.senders_for_others.insert((key.0.clone(), by));
            }
            return;
        }
        // Queue pairs have come: these connections are of another batch.
        if self
            .writers
            .get(key)
            .is_some_and(|writer| !writer.batch.pairs.is_empty())
        {
            self.flush(key);
        }
        if let Some(writer) = self.writer(key) {
            writer.batch.send(send);
        }
    }

    fn pair(&mut self, pair: &QueuePair, line: &line::NcclLine<'_>, key: Option<&Key>, at: usize) {
        let place = self.log.queue_pairs.len();
        if place >= MAX_QUEUE_PAIRS {
            self.log.left_out += 1;
            return;
        }
        let devices = line.process.and_then(|(host, _)| self.host_devices.get(host));
        let adapter = usize::try_from(pair.adapter).unwrap_or(usize::MAX);
        let name = devices.and_then(|devices| devices.get(adapter));
        self.log.queue_pairs.push(QueuePair {
            line: at,
            process: line.process.map(|(host, number)| (host.to_owned(), number)),
            device: line.device,
            adapter_name: name.and_then(|name| name.split(':').next()).map(str::to_owned),
            ..pair.clone()
        });
        if let Some(writer) = key.and_then(|key| self.writer(key)) {
            writer.batch.pair(place);
        }
    }

    /// Gives the queue pairs of a batch their rank and, where it is known by now, their communicator.
    fn flush(&mut self, key: &Key) {
        let Some(writer) = self.writers.get_mut(key) else {
            return;
        };
        let batch = std::mem::take(&mut writer.batch);
        if batch.pairs.is_empty() {
            // Connections without queue pairs are of an earlier kind of connection, and explain nothing later.
            return;
        }
        let per_connection = self.log.settings.get("NCCL_IB_QPS_PER_CONNECTION");
        let per_connection = per_connection.and_then(|text| text.parse().ok()).unwrap_or(1);
        batch.join(&mut self.log.queue_pairs, per_connection);
        let of_sends = batch.rank();
        let open: Vec<&Member> = writer
            .members
            .iter()
            .filter(|member| !member.is_complete)
            .collect();
        let fits = |member: &&&Member| of_sends.is_none() || member.rank == of_sends;
        let of_open: Vec<&Member> = open.iter().filter(fits).copied().collect();
        let of_all: Vec<&Member> = writer.members.iter().filter(|member| fits(&member)).collect();
        let member = match (of_open.as_slice(), of_all.as_slice()) {
            ([only], _) => Some((*only).clone()),
            ([], [only]) if open.is_empty() => Some((*only).clone()),
            _ => None,
        };
        let has_members = !writer.members.is_empty();
        for place in &batch.pairs {
            if let Some(pair) = self.log.queue_pairs.get_mut(*place) {
                pair.rank = of_sends;
                if let Some(member) = &member {
                    pair.rank = pair.rank.or(member.rank);
                    pair.communicator = Some(member.communicator);
                }
            }
        }
        // Before 2.17 a communicator is named when all is connected.
        if !has_members {
            writer.unnamed.extend(batch.pairs);
        }
    }

    /// A line that names a communicator: `comm 0x55 rank 3 nranks 8 ... commId 0x1f - Init COMPLETE`.
    fn member(&mut self, text: &str, pointer: &str, rank: Option<u32>, size: Option<u32>, key: Option<&Key>) {
        let is_complete = text.contains("Init COMPLETE");
        self.log.world = self.log.world.max(size);
        if let (true, Some(rank), Some(bus)) = (is_complete, rank, field(text, " busId "))
            && (self.log.ranks.len() < MAX_KEPT || self.log.ranks.contains_key(&rank))
        {
            self.log.ranks.insert(rank, short(bus));
        }
        let Some(key) = key else { return };
        let id = field(text, "commId ").map(short);
        let known = self
            .writers
            .get(key)
            .and_then(|writer| {
                writer
                    .members
                    .iter()
                    .rfind(|member| member.pointer == pointer && !member.is_complete)
            })
            .cloned();
        let member = if let Some(known) = known {
            known
        } else {
            // Without an id it has to wait for its last line: until then it may be any.
            if id.is_none() && !is_complete {
                return;
            }
            let has_id = id.is_some();
            let name = id.unwrap_or_else(|| format!("{} ranks", size.unwrap_or_default()));
            let Some(communicator) = self.communicator(&name, size) else {
                return;
            };
            let members = self.writers.get(key).map(|writer| writer.members.as_slice());
            let mut members = members.unwrap_or_default().iter();
            if !has_id && members.any(|member| member.communicator == communicator) {
                self.ambiguous.insert(communicator);
            }
            Member {
                pointer: short(pointer),
                rank,
                communicator,
                is_complete: false,
            }
        };
        let Some(writer) = self.writer(key) else { return };
        if !writer.members.contains(&member) && writer.members.len() < MAX_MEMBERS {
            writer.members.push(member.clone());
        }
        if !is_complete {
            return;
        }
        self.flush(key);
        let Some(writer) = self.writers.get_mut(key) else {
            return;
        };
        for known in &mut writer.members {
            known.is_complete |= known.pointer == member.pointer;
        }
        for place in std::mem::take(&mut writer.unnamed) {
            if let Some(pair) = self.log.queue_pairs.get_mut(place) {
                let agrees = pair.rank.is_none_or(|rank| Some(rank) == member.rank);
                if agrees {
                    pair.rank = member.rank;
                    pair.communicator = Some(member.communicator);
                }
            }
        }
        let facts = std::mem::take(&mut writer.waiting);
        self.note_shapes(&facts, member.communicator);
    }

    fn note_shapes(&mut self, facts: &[Fact], communicator: usize) {
        let Some(shapes) = self.shapes.get_mut(communicator) else {
            return;
        };
        for fact in facts {
            if !shapes.note(fact, &mut self.steps) {
                self.log.left_out += 1;
            }
        }
    }

    /// The place of the communicator of this name.
    fn communicator(&mut self, name: &str, size: Option<u32>) -> Option<usize> {
        if let Some(place) = self.by_name.get(name) {
            return Some(*place);
        }
        let place = self.log.communicators.len();
        if place >= MAX_KEPT {
            self.log.left_out += 1;
            return None;
        }
        self.log.communicators.push(Communicator {
            name: name.into(),
            size,
            rings: BTreeMap::new(),
            trees: BTreeMap::new(),
        });
        self.shapes.push(Shapes::default());
        self.by_name.insert(name.to_owned(), place);
        Some(place)
    }

    /// Gives the facts of the log, at its end.
    pub fn finish(mut self) -> Log {
        let mut keys: Vec<Key> = self.writers.keys().cloned().collect();
        keys.sort_unstable();
        for key in &keys {
            self.flush(key);
            let Some(writer) = self.writers.get_mut(key) else {
                continue;
            };
            // A log that ends before all is connected.
            let facts = std::mem::take(&mut writer.waiting);
            if let [only] = writer.members.as_slice() {
                let communicator = only.communicator;
                self.note_shapes(&facts, communicator);
            }
        }
        for pair in &mut self.log.queue_pairs {
            let sends_for_others = pair.process.as_ref().zip(pair.rank);
            let is_shared = sends_for_others
                .is_some_and(|((host, _), rank)| self.senders_for_others.contains(&(host.clone(), rank)));
            if is_shared {
                (pair.peer_rank, pair.channel) = (None, None);
            }
            pair.communicator = pair.communicator.filter(|place| !self.ambiguous.contains(place));
        }
        for (communicator, shapes) in self.log.communicators.iter_mut().zip(&self.shapes) {
            communicator.rings = shapes.rings();
            communicator
                .rings
                .retain(|_, order| communicator.size.is_none_or(|size| order.len() == size as usize));
            communicator.trees = shapes.trees(communicator.size);
        }
        for place in &self.ambiguous {
            if let Some(communicator) = self.log.communicators.get_mut(*place) {
                communicator.rings.clear();
                communicator.trees.clear();
            }
        }
        let (others, left_out) = self.others.finish();
        self.log.errors.extend(others);
        self.log.errors.sort_by_key(|found| (found.file, found.line));
        self.log.left_out += left_out;
        name_errors(&mut self.log, &self.writers);
        self.log
    }
}

/// A queue pair of a process.
type NumberedQueuePair<'a> = (u32, Option<&'a (String, u32)>);

/// Says which rank wrote each error: the one that owns the queue pair, else the only one of the process.
fn name_errors(log: &mut Log, writers: &HashMap<Key, Writer>) {
    let wanted: BTreeSet<u32> = log.errors.iter().filter_map(|found| found.queue_pair).collect();
    // The last owner of a number that was used twice counts: the error came later.
    let owned: HashMap<NumberedQueuePair<'_>, Option<u32>> = log
        .queue_pairs
        .iter()
        .filter(|pair| wanted.contains(&pair.number))
        .map(|pair| ((pair.number, pair.process.as_ref()), pair.rank))
        .collect();
    for error in &mut log.errors {
        let own = error
            .queue_pair
            .and_then(|number| owned.get(&(number, error.process.as_ref())));
        error.rank = error.rank.or(own.copied().flatten()).or_else(|| {
            let (host, process) = error.process.clone()?;
            let writer = writers.get(&(host, process, error.device?))?;
            let first = writer.members.first()?.rank?;
            let is_only = writer.members.iter().all(|member| member.rank == Some(first));
            is_only.then_some(first)
        });
    }
}

/// Passes over the rest of a line.
fn skip_line(input: &mut impl BufRead) -> std::io::Result<()> {
    loop {
        let buffer = input.fill_buf()?;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let length = end.map_or(buffer.len(), |end| end + 1);
        let is_end = end.is_some() || buffer.is_empty();
        input.consume(length);
        if is_end {
            return Ok(());
        }
    }
}
