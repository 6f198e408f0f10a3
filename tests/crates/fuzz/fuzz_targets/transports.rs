//! Any bytes as headers of MRC and UET, as telemetry of switches in a frame, and as a frame that a switch trims: nothing may panic, and what is
//! read lies in the bytes.
//!
//! The first byte chooses the reader. For telemetry the rest is a frame behind a CSIG tag, an IFA header or an IPv6 option. Of a trimmed frame
//! the next three bytes say how it is trimmed; it goes through the whole analysis, among whole ones.

#![no_main]

use libfuzzer_sys::fuzz_target;
use roce_fuzz::TrimForm;
use roce_wire::network::ioam;
use roce_wire::transport::{mrc, uet};
use roce_wire::{AssignedNumbers, LinkType, MAX_HOPS, decode_with};

/// An Ethernet header, up to its EtherType.
const HOSTS: [u8; 12] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];

fuzz_target!(|data: &[u8]| {
    let Some((kind, bytes)) = roce_fuzz::kind(data, 5) else {
        return;
    };
    match kind {
        0 => {
            if let Some(found) = mrc::parse(bytes) {
                let _ = found.is_proof(bytes.len());
            }
        }
        1 => {
            if let Some(found) = uet::parse(bytes) {
                let own = uet::Prologue([bytes[0], bytes[1]]).header_bytes();
                assert!(own.is_some_and(|own| found.header_bytes >= own && own <= bytes.len()));
            }
        }
        2 => {
            if let Some((at, length)) = ioam::find(bytes)
                && let Some(trace) = ioam::Trace::parse(&bytes[at..at + length])
            {
                assert!(trace.nodes().count() <= length / 4);
                for node in trace.nodes() {
                    let _ = (
                        node.device(),
                        node.ports(),
                        node.delay_ns(),
                        node.queued_buffers(),
                    );
                }
            }
        }
        3 => {
            let assigned = AssignedNumbers {
                wide_csig: Some(0x9901),
                ..AssignedNumbers::default()
            };
            let frame = [&HOSTS[..], bytes].concat();
            let original = u32::try_from(frame.len()).unwrap_or(u32::MAX);
            let found = decode_with(LinkType::ETHERNET, &frame, original, &assigned);
            assert!(found.telemetry.hops(&frame).all().len() <= MAX_HOPS);
        }
        _ => {
            let Some(([length, traffic_class, how], frame)) = bytes.split_first_chunk() else {
                return;
            };
            let trimming = TrimForm {
                bytes: usize::from(*length) * 4,
                traffic_class: *traffic_class,
                rewrites_length: how & 1 != 0,
            };
            roce_fuzz::check_analysis(&roce_fuzz::trimmed_capture(frame, trimming));
        }
    }
});
