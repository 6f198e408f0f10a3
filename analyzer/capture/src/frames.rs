//! The frames of a batch. Those of records that were only skimmed are made by the first thread that asks for them: it need not be the one
//! that reads.

use std::fmt::Debug;
use std::ops::{Deref, DerefMut, Range};
use std::sync::{Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use roce_model::Time;

use crate::frame::Frame;

/// Consecutive records whose frames are still to be made.
#[derive(Debug)]
pub(crate) struct Skim {
    /// Where they are in the data.
    pub(crate) range: Range<usize>,
    pub(crate) count: usize,
    /// The times of the first and the last one.
    pub(crate) first: Time,
    pub(crate) last: Time,
}

/// Makes the frames of records that were skimmed.
pub(crate) trait FrameMaker: Debug + Send + Sync {
    /// Makes those of the records of `data[from..]`.
    fn make(&self, data: &[u8], from: usize, frames: &mut Vec<Frame>);
}

/// The frames of a batch, as a slice.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    made: OnceLock<Vec<Frame>>,
    skimmed: Option<Box<SkimmedRecords>>,
}

/// Records of which the chain of lengths and the stamps are known.
#[derive(Debug)]
struct SkimmedRecords {
    maker: Box<dyn FrameMaker>,
    data: Bytes,
    skim: Skim,
    /// Where the frames will be.
    room: Mutex<Vec<Frame>>,
}

impl Frames {
    /// Frames to be made of the skimmed records in `data`, in the vector `room`.
    pub(crate) fn later(maker: Box<dyn FrameMaker>, data: Bytes, skim: Skim, room: Vec<Frame>) -> Self {
        Self {
            made: OnceLock::new(),
            skimmed: Some(Box::new(SkimmedRecords {
                maker,
                data,
                skim,
                room: Mutex::new(room),
            })),
        }
    }

    /// How many there are.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        match (self.made.get(), &self.skimmed) {
            (Some(frames), _) => frames.len(),
            (None, Some(skimmed)) => skimmed.skim.count,
            (None, None) => 0,
        }
    }

    /// True if there are none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True if they have not been made.
    #[cfg(test)]
    pub(crate) fn is_later(&self) -> bool {
        self.skimmed.is_some() && self.made.get().is_none()
    }

    /// The times of the first and the last one.
    pub(crate) fn ends(&self) -> Option<(Time, Time)> {
        match (self.made.get(), &self.skimmed) {
            (None, Some(skimmed)) => {
                (skimmed.skim.count > 0).then_some((skimmed.skim.first, skimmed.skim.last))
            }
            _ => self
                .first()
                .zip(self.last())
                .map(|(first, last)| (first.time, last.time)),
        }
    }

    /// The vector that they are in, or would have been.
    pub(crate) fn into_room(self) -> Vec<Frame> {
        let unused = self.skimmed.map(|skimmed| skimmed.room.into_inner());
        let made = self.made.into_inner();
        made.or_else(|| unused?.ok()).unwrap_or_default()
    }
}

impl SkimmedRecords {
    #[cold]
    fn make(&self) -> Vec<Frame> {
        let mut room = self.room.lock().unwrap_or_else(PoisonError::into_inner);
        let mut frames = std::mem::take(&mut *room);
        frames.clear();
        frames.reserve(self.skim.count);
        let data = self.data.get(..self.skim.range.end).unwrap_or_default();
        self.maker.make(data, self.skim.range.start, &mut frames);
        frames
    }
}

impl From<Vec<Frame>> for Frames {
    fn from(frames: Vec<Frame>) -> Self {
        Self {
            made: OnceLock::from(frames),
            skimmed: None,
        }
    }
}

impl FromIterator<Frame> for Frames {
    fn from_iter<T: IntoIterator<Item = Frame>>(frames: T) -> Self {
        frames.into_iter().collect::<Vec<_>>().into()
    }
}

impl Deref for Frames {
    type Target = [Frame];

    #[inline]
    fn deref(&self) -> &[Frame] {
        let make = || self.skimmed.as_deref().map(SkimmedRecords::make);
        self.made.get_or_init(|| make().unwrap_or_default())
    }
}

impl DerefMut for Frames {
    fn deref_mut(&mut self) -> &mut [Frame] {
        let _: &[Frame] = self;
        self.made.get_mut().map(Vec::as_mut_slice).unwrap_or_default()
    }
}
