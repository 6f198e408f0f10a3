//! Slices that may overlap, on as many tracks of one name as they need: on one track, slices have to nest.

use std::io::{self, Write};

use roce_model::Time;

use super::form::Form;
use super::track::{Slice, Track};

/// Tracks of one name. Viewers draw them as one.
const MAX_LANES: usize = 128;

/// Tracks of one name below another track.
#[derive(Debug)]
pub(super) struct Lanes<'a> {
    parent: &'a Track,
    name: &'a str,
    /// Each lane, and the time at which its last slice ends.
    tracks: Vec<(Time, Track)>,
    /// Slices for which all lanes were taken.
    pub(super) left_out: u64,
}

impl<'a> Lanes<'a> {
    pub(super) fn new(parent: &'a Track, name: &'a str) -> Self {
        Self {
            parent,
            name,
            tracks: Vec::new(),
            left_out: 0,
        }
    }

    /// Adds a slice. They come in the order of their starts. False: there was no lane for it.
    pub(super) fn add(&mut self, slice: &Slice<'_>, form: &mut Form<impl Write>) -> io::Result<bool> {
        let end = slice.end.map_or(slice.start, |end| end.max(slice.start));
        let slice = Slice {
            end: slice.end.map(|_| end),
            ..*slice
        };
        let free = self.tracks.iter_mut().find(|(last, _)| *last <= slice.start);
        if let Some((last, track)) = free {
            *last = end;
            form.slice(track, &slice)?;
            return Ok(true);
        }
        if self.tracks.len() >= MAX_LANES {
            self.left_out += 1;
            return Ok(false);
        }
        let track = form.track(self.parent, self.name)?;
        form.slice(&track, &slice)?;
        self.tracks.push((end, track));
        Ok(true)
    }
}
