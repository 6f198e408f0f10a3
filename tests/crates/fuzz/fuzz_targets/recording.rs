//! Recordings of live runs: the head, reports of the host and moments between any frames, through the whole way of the data.

#![no_main]

use libfuzzer_sys::fuzz_target;
use roce_fuzz::{Block, Parts};
use roce_model::{HostEvent, RecordingStart};

fuzz_target!(|data: &[u8]| {
    let mut blocks = Vec::new();
    let mut now = 1_700_000_000_000_000;
    for (kind, part) in Parts(data) {
        now += u64::from(kind >> 2) * 50;
        blocks.push(match kind % 4 {
            0 => Block::Frame(now, part.to_vec()),
            1 => {
                if let Some(event) = HostEvent::decode(part) {
                    assert_eq!(HostEvent::decode(&event.encode()).as_ref(), Some(&event));
                }
                Block::Other(HostEvent::BLOCK, part.to_vec())
            }
            2 => {
                if let Some(head) = RecordingStart::decode(part) {
                    let again = RecordingStart::decode(&head.encode());
                    assert_eq!(again.as_ref(), Some(&head));
                }
                Block::Other(RecordingStart::BLOCK, part.to_vec())
            }
            _ => Block::Other(RecordingStart::TIME, part.to_vec()),
        });
    }
    roce_fuzz::check_analysis(&roce_fuzz::section(&blocks));
});
