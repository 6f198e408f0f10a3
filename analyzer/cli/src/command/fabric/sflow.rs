//! `fabric sflow`: what switches' samples of packets say, from captures of a collector or as they arrive.

mod document;
mod listen;
mod reader;
mod text;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use roce_capture::{FrameRun, Merge, Options, Reader};
use roce_model::Span;
use roce_sflow::{PORT, Payload};

use super::print::print;
use crate::command::invocation::Rights;
use crate::options::duration::parse_duration;
use crate::options::format::{Format, formats};
use crate::output::messages;
use crate::output::style::style;
use reader::DatagramReader;

/// Where it listens if nothing else is said: this host alone reaches it.
const LISTEN: &str = "127.0.0.1:6343";

/// Show what switches sample by sFlow: shares of CE marks, CNPs, opcodes and talkers, with their bounds
///
/// Reads datagrams of sFlow version 5 from captures of a collector, or listens for them. A switch samples 1 of N packets, so each number is
/// an estimate, and is shown with the interval in which the truth lies 19 times of 20. Samples never show losses, retransmissions, the order
/// of packets or the time of one message (docs/sflow.md).
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tcpdump -i any -w sflow.pcap udp port 6343
      datagrams at the collector, as a capture
  roce-analyze fabric sflow sflow.pcap
      what they say, by switch and interface
  roce-analyze fabric sflow --listen 10.0.0.9:6343 --duration 1m
      the same, as they arrive
  roce-analyze fabric sflow sflow.pcap --format csv > sflow.csv
      an estimate on each line")]
pub(super) struct SflowArguments {
    /// Captures with sFlow's datagrams; '-' reads standard input
    #[arg(
        value_name = "CAPTURE",
        required_unless_present = "listen",
        conflicts_with = "listen"
    )]
    captures: Vec<PathBuf>,

    /// Listen for datagrams at this address [default: 127.0.0.1:6343]
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = LISTEN)]
    listen: Option<SocketAddr>,

    /// Time for which it listens
    #[arg(short, long, value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    duration: Span,

    /// UDP port of the datagrams in captures
    #[arg(long, value_name = "PORT", default_value_t = PORT)]
    port: u16,

    /// Switches that are shown in detail, and interfaces, opcodes and pairs of hosts of each; JSON has all but of pairs
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,

    /// Format of standard output
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = formats(&[Format::Text, Format::Json, Format::Jsonl, Format::Csv]))]
    format: Format,
}

impl SflowArguments {
    /// Captures are files; a socket needs more.
    pub(super) fn rights(&self) -> Rights {
        match self.listen {
            Some(_) => Rights::User,
            None => Rights::Files,
        }
    }

    /// Captures, which may be in object stores.
    pub(super) fn captures(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        self.captures.iter_mut()
    }
}

/// Reads samples and shows what they say.
pub(super) fn sflow(arguments: &SflowArguments) -> anyhow::Result<ExitCode> {
    let mut reader = DatagramReader::default();
    let is_whole = match arguments.listen {
        Some(address) => {
            listen::listen(address, arguments.duration, &mut reader)?;
            true
        }
        None => read(arguments, &mut reader),
    };
    reader.say();
    let summary = reader.collector.summary(arguments.top);
    if summary.agents.is_empty() {
        match arguments.listen {
            Some(address) => bail!(
                "{address}: no datagram of sFlow version 5 arrived\nhint: --duration waits longer; the switches' collector has to be this address"
            ),
            None if !is_whole && reader.collector.datagrams() == 0 => return Ok(ExitCode::from(2)),
            None => bail!(
                "no datagram of sFlow version 5 to UDP port {}\nhint: --port names another one; NetFlow, IPFIX and sFlow 2 to 4 are not read",
                arguments.port
            ),
        }
    }
    match arguments.format {
        Format::Json => document::json(&summary, &mut std::io::stdout().lock())?,
        Format::Jsonl => document::lines(&summary, &mut std::io::stdout().lock())?,
        Format::Csv => document::csv(&summary, &mut std::io::stdout().lock())?,
        _ => print(&text::summary(
            &summary,
            arguments.top,
            style(arguments.top).width,
        ))?,
    }
    Ok(if is_whole {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(2)
    })
}

/// Reads captures in one order of time; false if one of them could not be read, or not to its end.
fn read(arguments: &SflowArguments, into: &mut DatagramReader) -> bool {
    let (mut readers, mut paths, mut is_whole) = (Vec::new(), Vec::new(), true);
    for path in &arguments.captures {
        match Reader::open(path, &Options::default()) {
            Ok(reader) => {
                readers.push(reader);
                paths.push(path.display().to_string());
            }
            Err(error) => {
                messages::report(&error.into());
                is_whole = false;
            }
        }
    }
    let mut merge = Merge::new(readers);
    let mut frames = vec![0_u64; paths.len()];
    while let Some(run) = merge.next_run() {
        let path = paths.get(run.input).map_or("", String::as_str);
        let mut unknown = 0;
        let number = frames.get_mut(run.input).unwrap_or(&mut unknown);
        take(&merge, &run, arguments.port, (path, number), into);
        merge.recycle(run);
    }
    for (_, error) in merge.take_errors() {
        messages::report(&error.into());
        is_whole = false;
    }
    for (path, reader) in paths.iter().zip(merge.readers()) {
        if reader.summary().truncation.is_some() {
            messages::warn(path, "ends inside a record");
        }
    }
    is_whole
}

/// Takes the datagrams of consecutive frames of a capture, of which `number` were before.
fn take(
    merge: &Merge,
    run: &FrameRun,
    port: u16,
    (path, number): (&str, &mut u64),
    into: &mut DatagramReader,
) {
    let Some(reader) = merge.readers().get(run.input) else {
        return;
    };
    for frame in run.frames() {
        *number += 1;
        let Some(interface) = reader.interfaces().get(frame.interface as usize) else {
            continue;
        };
        if let Some(payload) = Payload::find(interface.link, run.batch.bytes(frame), port) {
            into.cut += u64::from(payload.is_cut);
            let place = || format!("{path}, frame {number}");
            into.add(frame.time, payload.sender, payload.bytes, place);
        }
    }
}
