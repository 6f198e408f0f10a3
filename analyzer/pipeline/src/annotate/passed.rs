//! Frames of the second pass, between the pass itself and what is made of them.

use std::io;

use roce_capture::Frame;
use roce_wire::Roce;

use super::comments::Remark;
use crate::feed::Work;

/// A frame of the second pass.
pub(super) struct PassedFrame<'a> {
    pub work: &'a Work,
    pub frame: &'a Frame,
    /// Its number in its own capture, from 1.
    pub number: u64,
    pub roce: Option<&'a Roce>,
    pub remark: Option<&'a Remark>,
    pub is_selected: bool,
}

/// Where the frames of the second pass go.
pub(super) trait FrameOutput {
    /// Takes a frame. Returns the number by which comments of later frames may name it.
    fn frame(&mut self, passed: &PassedFrame<'_>) -> io::Result<Option<u64>>;
}
