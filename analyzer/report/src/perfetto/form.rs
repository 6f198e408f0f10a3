//! The two forms of a trace, behind the four things that it consists of: processes, tracks, slices, values of counters.
//!
//! Numbers of tracks and processes are handed out here. Times are nanoseconds since the epoch.

use std::io::{self, Write};

use roce_model::Time;

use super::chrome::Chrome;
use super::protobuf::Protobuf;
use super::track::{Slice, Track, bounded};

/// The form of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceForm {
    /// Perfetto's protobuf trace.
    Perfetto,
    /// The JSON array of Chrome's Trace Event Format.
    Chrome,
}

/// Writes a trace.
#[derive(Debug)]
pub(super) struct Form<W> {
    writer: Writer<W>,
    is_begun: bool,
    numbers: u64,
    pids: u32,
    arrows: u64,
}

#[derive(Debug)]
enum Writer<W> {
    Protobuf(Protobuf<W>),
    Chrome(Chrome<W>),
}

impl<W: Write> Form<W> {
    pub(super) fn new(out: W, form: TraceForm) -> Self {
        Self {
            writer: match form {
                TraceForm::Perfetto => Writer::Protobuf(Protobuf::new(out)),
                TraceForm::Chrome => Writer::Chrome(Chrome::new(out)),
            },
            is_begun: false,
            numbers: 0,
            pids: 0,
            arrows: 0,
        }
    }

    pub(super) fn into_inner(self) -> W {
        match self.writer {
            Writer::Protobuf(writer) => writer.into_inner(),
            Writer::Chrome(writer) => writer.into_inner(),
        }
    }

    /// Writes the head once; `time` is one in the trace.
    pub(super) fn begin(&mut self, time: Time) -> io::Result<()> {
        if std::mem::replace(&mut self.is_begun, true) {
            return Ok(());
        }
        match &mut self.writer {
            Writer::Protobuf(writer) => writer.begin(time),
            Writer::Chrome(writer) => writer.begin(),
        }
    }

    /// A new process: a group of tracks.
    pub(super) fn process(&mut self, name: &str) -> io::Result<Track> {
        self.numbers += 1;
        self.pids += 1;
        let process = Track {
            number: self.numbers,
            pid: self.pids,
            name: String::new(),
        };
        let name = bounded(name);
        match &mut self.writer {
            Writer::Protobuf(writer) => writer.process(&process, &name)?,
            Writer::Chrome(writer) => writer.process(&process, &name)?,
        }
        Ok(process)
    }

    /// A new track for slices and instants, below a process or another track.
    pub(super) fn track(&mut self, parent: &Track, name: &str) -> io::Result<Track> {
        self.below(parent, name, None)
    }

    /// A new counter below a process or another track.
    pub(super) fn counter(&mut self, parent: &Track, name: &str, unit: &str) -> io::Result<Track> {
        self.below(parent, name, Some(unit))
    }

    fn below(&mut self, parent: &Track, name: &str, unit: Option<&str>) -> io::Result<Track> {
        self.numbers += 1;
        let name = bounded(name);
        let mut whole = if parent.name.is_empty() {
            name.clone()
        } else {
            format!("{}: {name}", parent.name)
        };
        if let (Writer::Chrome(_), Some(unit)) = (&self.writer, unit) {
            // Counters have no unit there.
            whole = format!("{whole} ({unit})");
        }
        let track = Track {
            number: self.numbers,
            pid: parent.pid,
            name: whole,
        };
        match (&mut self.writer, unit) {
            (Writer::Protobuf(writer), unit) => writer.track(&track, parent.number, &name, unit)?,
            (Writer::Chrome(writer), None) => writer.track(&track)?,
            // Their values name them there.
            (Writer::Chrome(_), Some(_)) => {}
        }
        Ok(track)
    }

    /// The number of a new arrow.
    pub(super) fn arrow(&mut self) -> u64 {
        self.arrows += 1;
        self.arrows
    }

    pub(super) fn slice(&mut self, track: &Track, slice: &Slice<'_>) -> io::Result<()> {
        let name = bounded(slice.name);
        let slice = Slice {
            name: &name,
            ..*slice
        };
        match &mut self.writer {
            Writer::Protobuf(writer) => writer.slice(track, &slice),
            Writer::Chrome(writer) => writer.slice(track, &slice),
        }
    }

    /// The value that a counter has from `time` on. One that is not finite is left out.
    pub(super) fn value(&mut self, counter: &Track, time: Time, value: f64) -> io::Result<()> {
        if !value.is_finite() {
            return Ok(());
        }
        match &mut self.writer {
            Writer::Protobuf(writer) => writer.value(counter, time, value),
            Writer::Chrome(writer) => writer.value(counter, time, value),
        }
    }

    pub(super) fn finish(&mut self) -> io::Result<()> {
        match &mut self.writer {
            Writer::Protobuf(writer) => writer.finish(),
            Writer::Chrome(writer) => writer.finish(),
        }
    }
}
