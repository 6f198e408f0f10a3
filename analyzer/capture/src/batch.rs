//! Consecutive frames over one buffer.

use bytes::Bytes;

use crate::frame::{Frame, LostFrames, Note};
use crate::frames::Frames;

/// Some consecutive records of one capture, in the order of the file, over one shared buffer.
#[derive(Debug, Default)]
pub struct Batch {
    pub(crate) data: Bytes,
    pub(crate) frames: Frames,
    pub(crate) lost: Vec<LostFrames>,
    pub(crate) notes: Vec<Note>,
}

impl Batch {
    /// A batch of `frames` whose offsets point into `data`, for sources other than [`Reader`](crate::Reader).
    pub fn new(data: Bytes, frames: Vec<Frame>, lost: Vec<LostFrames>) -> Self {
        Self {
            data,
            frames: frames.into(),
            lost,
            notes: Vec::new(),
        }
    }

    /// The frames, in the order of the file. Those of skimmed records are made by the first call.
    #[inline]
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// How many frames there are; makes none.
    #[inline]
    pub fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// The captured bytes of a frame of this batch (some other bytes, or none, for a frame of another one).
    #[inline]
    pub fn bytes(&self, frame: &Frame) -> &[u8] {
        let from = frame.offset as usize;
        self.data
            .get(from..from + frame.captured as usize)
            .unwrap_or_default()
    }

    /// The blocks of local use, ascending by `before`.
    #[inline]
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// The body of a note of this batch.
    pub fn note(&self, note: &Note) -> &[u8] {
        let from = note.offset as usize;
        self.data
            .get(from..from + note.length as usize)
            .unwrap_or_default()
    }

    /// The buffer that the frames' offsets point into. It also holds what lies between the frames; a clone of
    /// it keeps the buffer from being used again.
    #[inline]
    pub fn data(&self) -> &Bytes {
        &self.data
    }

    /// Losses of records, ascending by `before`.
    #[inline]
    pub fn lost(&self) -> &[LostFrames] {
        &self.lost
    }
}

#[cfg(test)]
mod tests {
    use roce_model::Time;

    use super::*;
    use crate::frame::Direction;

    #[test]
    fn a_foreign_frame_has_no_bytes() {
        let batch = Batch::new(Bytes::from_static(b"abcdef"), Vec::new(), Vec::new());
        let mut frame = Frame {
            time: Time(0),
            offset: 2,
            captured: 3,
            original: 3,
            interface: 0,
            fcs_bytes: 0,
            direction: Direction::Unknown,
            process: 0,
        };
        assert_eq!(batch.bytes(&frame), b"cde");
        frame.captured = 5;
        assert_eq!(batch.bytes(&frame), b"");
        (frame.offset, frame.captured) = (u32::MAX, u32::MAX);
        assert_eq!(batch.bytes(&frame), b"");
    }
}
