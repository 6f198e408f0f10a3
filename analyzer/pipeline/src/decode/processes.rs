//! Processes that a capture names as those of its frames.

use roce_capture::Frame;
use roce_model::{Between, FlowKey, PacketProcess, Process};
use roce_wire::Content;

use super::{Decoder, on_the_wire};
use crate::feed::Work;

impl Decoder {
    /// The process of a frame's flow, when it is said for the first time. `at` is the place of the frame's packet.
    #[cold]
    pub(super) fn named_process(&mut self, work: &Work, frame: &Frame, at: usize) -> Option<Between> {
        let interface = work.interfaces.get(frame.interface as usize)?;
        let process = work.processes.get(usize::from(frame.process).checked_sub(1)?)?;
        let (bytes, original) = on_the_wire(frame, work.run.batch.bytes(frame));
        let decoded = roce_wire::decode_with(interface.link, bytes, original, &self.assigned);
        let Content::Roce(roce) = decoded.content else {
            return None;
        };
        let flow = FlowKey::from_packet(&roce);
        if !self.named.is_new(flow) {
            return None;
        }
        let process = Process {
            pid: process.pid,
            comm: process.name.as_deref().unwrap_or_default().into(),
            cgroup: 0,
            claims: false,
        };
        if let Some(chosen) = &mut self.chosen {
            chosen.named(&flow, &process);
        }
        self.shard.takes(&roce).then(|| {
            Between::Process(Box::new(PacketProcess {
                before: at,
                flow,
                process,
            }))
        })
    }
}
