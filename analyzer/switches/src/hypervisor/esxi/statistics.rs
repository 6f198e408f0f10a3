//! Counters of an adapter: `esxcli network nic stats get`, and the driver's own of `vsish`.

use std::borrow::Cow;

use roce_model::{Counter, value_of};

use super::nic::Nic;
use super::text::{count, key, refusal};
use crate::device::Reason;
use roce_hosts::mapped_loosely;
use roce_hosts::without_terminal;

/// Statistics of one adapter's driver that are kept; more are left out.
const MAX_STATISTICS: usize = 2_048;
/// Characters of a statistic's name; longer ones are left out.
const MAX_STATISTIC_NAME: usize = 80;
/// The last line of `esxcli network nic stats get`.
const LAST_OF_ESXCLI: &str = "transmitwindowerrors";

/// The counter that a name of ESXi's own statistics stands for, with its details. `None`: it has no common name.
///
/// The first names are those of `esxcli network nic stats get`, the second those of `vsish`. `all` errors are the adapter's own sum.
fn general(name: &str) -> Option<(Counter, &'static [&'static str])> {
    use Counter::{
        HypervisorDroppedPackets as Dropped, HypervisorErrors as Errors, HypervisorReceivedBytes,
        HypervisorReceivedPackets, HypervisorTransmittedBytes, HypervisorTransmittedPackets,
    };
    Some(match name {
        "packetsreceived" | "rxpackets" => (HypervisorReceivedPackets, &[]),
        "packetssent" | "txpackets" => (HypervisorTransmittedPackets, &[]),
        "bytesreceived" | "rxbytes" => (HypervisorReceivedBytes, &[]),
        "bytessent" | "txbytes" => (HypervisorTransmittedBytes, &[]),
        "receivepacketsdropped" | "rxdropped" => (Dropped, &["received"]),
        "transmitpacketsdropped" | "txdropped" => (Dropped, &["transmitted"]),
        "totalreceiveerrors" | "rxerrors" => (Errors, &["received", "all"]),
        "receivelengtherrors" | "rxlengtherrors" => (Errors, &["received", "length"]),
        "receiveovererrors" | "rxovererrors" => (Errors, &["received", "over"]),
        "receivecrcerrors" | "rxcrcerrors" => (Errors, &["received", "crc"]),
        "receiveframeerrors" | "rxframeerrors" => (Errors, &["received", "frame"]),
        "receivefifoerrors" | "rxfifoerrors" => (Errors, &["received", "fifo"]),
        "receivemissederrors" | "rxmissederrors" => (Errors, &["received", "missed"]),
        "totaltransmiterrors" | "txerrors" => (Errors, &["transmitted", "all"]),
        "transmitabortederrors" | "txabortederrors" => (Errors, &["transmitted", "aborted"]),
        "transmitcarriererrors" | "txcarriererrors" => (Errors, &["transmitted", "carrier"]),
        "transmitfifoerrors" | "txfifoerrors" => (Errors, &["transmitted", "fifo"]),
        "transmitheartbeaterrors" | "txheartbeaterrors" => (Errors, &["transmitted", "heartbeat"]),
        "transmitwindowerrors" | "txwindowerrors" => (Errors, &["transmitted", "window"]),
        // Names of Intel's drivers.
        "rxxoff" => (Counter::HypervisorPauseReceivedFrames, &[]),
        "txxoff" => (Counter::HypervisorPauseTransmittedFrames, &[]),
        _ => return None,
    })
}

/// The hypervisor's counter for one of an interface.
fn of_hypervisor(counter: Counter) -> Option<Counter> {
    Some(match counter {
        Counter::PauseReceivedFrames => Counter::HypervisorPauseReceivedFrames,
        Counter::PauseTransmittedFrames => Counter::HypervisorPauseTransmittedFrames,
        Counter::PauseReceivePausedSeconds => Counter::HypervisorPauseReceivePausedSeconds,
        Counter::PauseTransmitPausedSeconds => Counter::HypervisorPauseTransmitPausedSeconds,
        Counter::PauseTransitions => Counter::HypervisorPauseTransitions,
        Counter::PauseControlReceivedFrames => Counter::HypervisorPauseControlReceivedFrames,
        Counter::PauseControlTransmittedFrames => Counter::HypervisorPauseControlTransmittedFrames,
        Counter::PfcReceivedFrames => Counter::HypervisorPfcReceivedFrames,
        Counter::PfcTransmittedFrames => Counter::HypervisorPfcTransmittedFrames,
        Counter::PfcReceivePausedSeconds => Counter::HypervisorPfcReceivePausedSeconds,
        Counter::PauseStormEvents => Counter::HypervisorPauseStormEvents,
        _ => return None,
    })
}

/// Lines `Name: number`. What is between them says nothing.
fn numbers(text: &str) -> Vec<(&str, u64)> {
    let split = text.lines().filter_map(|line| line.rsplit_once(':'));
    split
        .filter_map(|(name, value)| Some((name.trim(), count(value)?)))
        .filter(|(name, _)| !name.is_empty() && name.len() <= MAX_STATISTIC_NAME)
        .take(MAX_STATISTICS)
        .collect()
}

/// Adds the answer to `esxcli network nic stats get -n NIC`.
pub(super) fn esxcli(command: &str, text: &str, nic: &mut Nic<'_>) {
    let text = without_terminal(text);
    let mut all = numbers(&text);
    if all.is_empty() {
        let (reason, message) = refusal(&text);
        nic.problem(reason, command, &message);
        return;
    }
    if !all.iter().any(|(name, _)| key(name) == LAST_OF_ESXCLI) {
        // The last number may lack digits.
        all.pop();
        nic.problem(
            Reason::Parse,
            command,
            "the statistics end early: the last number is left out",
        );
    }
    add(&all, nic);
}

/// Adds the answer to `vsish -e get /net/pNics/NIC/stats`: every `name: number`, whatever is around it.
pub(super) fn vsish(command: &str, text: &str, nic: &mut Nic<'_>) {
    let text = without_terminal(text);
    let mut all = numbers(&text);
    if all.is_empty() {
        let (reason, message) = refusal(&text);
        nic.problem(reason, command, &message);
        return;
    }
    let has_end = text.trim_end().ends_with('}') || !text.contains('{') && text.ends_with('\n');
    if !has_end {
        all.pop();
        nic.problem(
            Reason::Parse,
            command,
            "the statistics end early: the last number is left out",
        );
    }
    add(&all, nic);
}

fn add(all: &[(&str, u64)], nic: &mut Nic<'_>) {
    let mut known: std::collections::HashSet<_> = nic.samples().iter().map(identity).collect();
    for &(name, number) in all {
        let (counter, priority, details, factor) = meaning(name);
        if known.insert((counter, priority, details.clone())) {
            let sample = nic.push(counter, value_of(number) * factor);
            sample.priority = priority;
            sample.details = details;
        }
    }
}

type Identity = (Counter, Option<u8>, Vec<Cow<'static, str>>);

fn identity(sample: &roce_model::Sample) -> Identity {
    (sample.counter, sample.priority, sample.details.clone())
}

/// Counter, priority, details and factor of a statistic; [`Counter::HypervisorNicStatistic`] where it has no common name.
fn meaning(name: &str) -> (Counter, Option<u8>, Vec<Cow<'static, str>>, f64) {
    if let Some((counter, details)) = general(&key(name)) {
        let details = details.iter().map(|detail| Cow::Borrowed(*detail));
        return (counter, None, details.collect(), 1.0);
    }
    if let Some(driver) = mapped_loosely(name)
        && let Some(counter) = of_hypervisor(driver.counter)
    {
        return (counter, driver.priority, driver.details, driver.factor);
    }
    let details = vec![Cow::Owned(name.to_owned())];
    (Counter::HypervisorNicStatistic, None, details, 1.0)
}
