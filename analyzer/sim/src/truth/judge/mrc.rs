//! The truth of a run of MRC, from its log.

mod findings;
mod tap_names;

use std::collections::BTreeMap;

use crate::mrc::log::{Fate, HeardSack, Place, Transmission};
use crate::mrc::run::{MrcRun, Pair};
use crate::record::observer;
use crate::scenario::EvOrder;
use crate::truth::judge::{clock_steps, tells_losses};
use crate::truth::{
    MrcConnection, MrcEnd, MrcLeftPath, MrcLoss, MrcPathName, MrcRetransmission, MrcTrim, Tap, Truth,
};
use crate::units::Picos;
use tap_names::tap_names;

/// The truth of a run that has come to its end; `files` are the names of its captures.
pub(crate) fn truth(run: &MrcRun<'_>, files: &[String]) -> Truth {
    let scenario = run.scenario;
    let mut truth = Truth {
        schema_version: Truth::SCHEMA_VERSION,
        title: scenario.title.clone(),
        seed: scenario.seed,
        start_ns: scenario.start * 1_000_000_000,
        duration_ns: scenario.duration.nanos(),
        taps: taps(run, files),
        mrc: connections(run),
        ..Truth::default()
    };
    truth.findings = findings::findings(run, &truth);
    truth
}

fn taps(run: &MrcRun<'_>, files: &[String]) -> Vec<Tap> {
    let groups = observer::files(run.scenario);
    let tables = run.scenario.tap.iter().zip(&run.observer.taps).enumerate();
    tables
        .map(|(place, (table, state))| {
            let file = groups.iter().position(|(_, members)| members.contains(&place));
            let interface = file.and_then(|file| groups[file].1.iter().position(|member| *member == place));
            Tap {
                name: observer::tap_name(table).to_owned(),
                node: table.at.split(':').next().unwrap_or_default().to_owned(),
                neighbour: "fabric".to_owned(),
                at_host: true,
                file: file.and_then(|file| files.get(file)).cloned().unwrap_or_default(),
                interface: interface.and_then(|at| u32::try_from(at).ok()).unwrap_or(0),
                clock_offset_ns: table.clock_offset_ns,
                clock_drift_ppb: table.clock_drift_ppb,
                clock_steps: clock_steps(table),
                snaplen: table.snaplen,
                records: state.records,
                records_lost: state.lost,
                copies: state.copies,
                told_by_record: tells_losses(table),
                ..Tap::default()
            }
        })
        .collect()
}

fn connections(run: &MrcRun<'_>) -> Vec<MrcConnection> {
    let mut by_pair: Vec<Vec<&Transmission>> = vec![Vec::new(); run.pairs.len()];
    for sent in &run.sent {
        by_pair[sent.pair as usize].push(sent);
    }
    let pairs = (0..).zip(&run.pairs).zip(by_pair);
    pairs
        .map(|((number, pair), sent)| connection(run, number, pair, &sent))
        .collect()
}

fn connection(run: &MrcRun<'_>, number: u32, pair: &Pair, sent: &[&Transmission]) -> MrcConnection {
    let end = |side: usize| {
        let host = &run.topology.hosts[pair.hosts[side] as usize];
        MrcEnd {
            host: host.name.clone(),
            address: host.address.to_string(),
            qpn: pair.qpns[side].value(),
        }
    };
    let mut connection = MrcConnection {
        name: pair.name.clone(),
        requestor: end(0),
        responder: end(1),
        udp_port: run.scenario.mrc.udp_port,
        first_psn: pair.first_psn,
        packets: pair.sender.next,
        messages: pair.log.messages,
        sacks: pair.log.sacks,
        losses: Vec::new(),
        trims: Vec::new(),
        retransmissions: Vec::new(),
        left: run
            .left
            .iter()
            .filter(|left| left.pair == number)
            .map(|left| MrcLeftPath {
                time: left.time.nanos(),
                path: path_name(run, left.ev, left.plane, left.path),
            })
            .collect(),
        failed: pair.log.failed.map(Picos::nanos),
    };
    // The number of transmissions of each packet, and the first of them that arrived whole.
    let mut fates: BTreeMap<u64, PacketFate> = BTreeMap::new();
    let heard: Vec<&HeardSack> = run.heard.iter().filter(|heard| heard.pair == number).collect();
    for sent in sent {
        let entry = fates.entry(sent.index).or_default();
        entry.last = sent.attempt;
        if let Fate::Arrived(time) = sent.fate {
            entry.arrived = entry.arrived.or(Some((sent.attempt, time)));
        }
    }
    let ways = ways(sent);
    for sent in sent {
        let fate = fates[&sent.index];
        let known = !pair.sender.outstanding.contains_key(&sent.index);
        let judged = JudgedSending {
            repaired: fate.last > sent.attempt && known,
            shown: ways.get(&sent.ev).is_some_and(|[shortest, longest]| {
                // Who sees the sender's port alone knows when an answer was made only as well as ways of one path are equal: by jitter, and by
                // the queues before them.
                let unsure = longest.since(*shortest).max(run.scenario.mrc.jitter);
                let due = sent.time.plus(*longest).plus(unsure);
                heard
                    .iter()
                    .any(|heard| heard.made > due && heard.sack.misses(sent.index))
            }),
            needed: fate.arrived.is_none_or(|(arrived, _)| arrived >= sent.attempt),
        };
        note(run, &mut connection, sent, judged);
    }
    connection
}

/// The shortest and the longest time that a packet of each EV took from its port to the receiver, of those that arrived whole.
fn ways(sent: &[&Transmission]) -> BTreeMap<u32, [Picos; 2]> {
    let mut ways = BTreeMap::new();
    for sent in sent {
        if let Fate::Arrived(time) = sent.fate {
            let way = time.since(sent.time);
            let [shortest, longest] = ways.entry(sent.ev).or_insert([way, way]);
            (*shortest, *longest) = (way.min(*shortest), way.max(*longest));
        }
    }
    ways
}

/// All transmissions of one packet: the number of the last one, and the first one that arrived whole.
#[derive(Clone, Copy, Default)]
struct PacketFate {
    last: u16,
    arrived: Option<(u16, Picos)>,
}

/// Properties of a transmission beside others of its packet.
#[derive(Clone, Copy)]
struct JudgedSending {
    repaired: bool,
    shown: bool,
    needed: bool,
}

/// Adds a transmission to the truth of its connection.
fn note(run: &MrcRun<'_>, connection: &mut MrcConnection, sent: &Transmission, judged: JudgedSending) {
    let path = path_name(run, sent.ev, sent.plane, sent.path);
    let psn = ((u64::from(connection.first_psn) + sent.index) & 0xff_ffff) as u32;
    let (time, attempt) = (sent.time.nanos(), sent.attempt);
    let sent_seen = tap_names(run, sent.sent_seen);
    match sent.fate {
        Fate::Lost(_, place) => connection.losses.push(MrcLoss {
            time,
            psn,
            attempt,
            path,
            place: match place {
                Place::Path => "path",
                Place::Fabric => "fabric",
                Place::LastHop => "last-hop",
                Place::Port => "port",
            }
            .to_owned(),
            sent_seen: sent_seen.clone(),
            repaired: judged.repaired,
            shown: judged.shown,
        }),
        Fate::Trimmed(_) => connection.trims.push(MrcTrim {
            time,
            psn,
            attempt,
            path,
            reason: sent.trim.unwrap_or(0),
            sent_seen: sent_seen.clone(),
            came_seen: tap_names(run, sent.came_seen),
            nacked: sent.nacked,
        }),
        Fate::Arrived(_) | Fate::InFlight => {}
    }
    if let Some(cause) = sent.cause {
        connection.retransmissions.push(MrcRetransmission {
            time,
            psn,
            attempt,
            path,
            cause,
            needed: judged.needed,
            sent_seen,
        });
    }
}

/// A path as packets name it.
fn path_name(run: &MrcRun<'_>, ev: u32, plane: u32, path: u32) -> MrcPathName {
    let (low, high) = (ev & 0xffff, ev >> 16);
    let ipv6 = run.scenario.network.ipv6;
    let (port, label) = if !ipv6 || run.scenario.mrc.ev_order == EvOrder::LabelHigh {
        (low, high)
    } else {
        (high, low)
    };
    MrcPathName {
        ev,
        udp_source_port: u16::try_from(port).unwrap_or(0),
        flow_label: if ipv6 { label } else { 0 },
        plane,
        path,
    }
}
