//! The frames of annotated captures as a list, each with its number in its own capture.

use std::io;

use roce_model::Time;
use roce_wire::Roce;

use super::passed::{FrameOutput, PassedFrame};
use super::role::PacketRole;

/// A frame with what the analysis knows of it.
#[derive(Clone, Copy, Debug)]
pub struct ListedFrame<'a> {
    /// Name of its capture, as it was given.
    pub capture: &'a str,
    /// Its number in this capture, from 1: Wireshark's `frame.number`.
    pub number: u64,
    /// Time of capture, on the run's clock.
    pub time: Time,
    /// The RoCE packet in it.
    pub roce: Option<&'a Roce>,
    /// Its roles, in no order.
    pub roles: &'a [PacketRole],
    /// Its comment.
    pub comment: &'a str,
}

/// Frames that go to a function.
pub(super) struct FrameList<'a> {
    pub take: &'a mut dyn FnMut(&ListedFrame<'_>) -> io::Result<()>,
}

impl FrameOutput for FrameList<'_> {
    fn frame(&mut self, passed: &PassedFrame<'_>) -> io::Result<Option<u64>> {
        if let (true, Some(remark)) = (passed.is_selected, passed.remark) {
            (self.take)(&ListedFrame {
                capture: &passed.work.capture,
                number: passed.number,
                time: passed.frame.time,
                roce: passed.roce,
                roles: &remark.roles,
                comment: &remark.text,
            })?;
        }
        // Comments name frames that are not listed, too: the capture has them.
        Ok(Some(passed.number))
    }
}
