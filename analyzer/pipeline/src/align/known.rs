//! Facts about captures before they are read: the machine of each, and how far its clock is ahead, as whoever captured measured it.
//!
//! Packets that two captures share are more exact by far: a known clock counts where there are none.

use std::path::PathBuf;

use roce_capture::Correction;
use roce_model::Time;

use super::alignment::{Alignment, Clock};
use super::look;

/// The clock of a capture, against one that is common to all known clocks.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct KnownClock {
    /// Number of the machine: captures of two machines do not continue each other.
    pub machine: u32,
    /// Time by which it is ahead, in nanoseconds.
    pub ahead_ns: f64,
    /// By how much that can be wrong.
    pub uncertainty_ns: f64,
}

/// A time of a capture by the common clock.
pub(super) fn common(time: Time, known: Option<&KnownClock>) -> Time {
    known.map_or(time, |known| correction(time, known.ahead_ns).correct(time))
}

fn correction(at: Time, ahead_ns: f64) -> Correction {
    Correction {
        at,
        ahead_ns,
        faster_ppb: 0.0,
    }
}

/// Corrects the clocks that no packet connects with that of the first known capture, where they differ by more than the measurements can
/// be wrong. Captures that packets connect are moved together.
pub(super) fn connect(alignment: &mut Alignment, paths: &[&PathBuf], known: &[Option<KnownClock>]) {
    let clock_of = |input: usize| known.get(input).copied().flatten();
    let Some((base, first)) = (0..paths.len()).find_map(|input| Some((input, clock_of(input)?))) else {
        return;
    };
    let root_of = |alignment: &Alignment, input: usize| {
        let clock = alignment.clocks.get(input).copied().flatten();
        clock.map_or(input, |clock| clock.reference)
    };
    let base = root_of(alignment, base);
    // The correction of what all captures are moved to: that of the base's own group.
    let origin = clock_of(base).unwrap_or(first);
    let moved: Vec<Option<Clock>> = (0..paths.len())
        .map(|input| {
            let root = root_of(alignment, input);
            let own = alignment.clocks.get(input).copied().flatten();
            let (true, Some(clock)) = (root != base, clock_of(root)) else {
                return own;
            };
            let ahead_ns = clock.ahead_ns - origin.ahead_ns;
            let uncertainty_ns = clock.uncertainty_ns + origin.uncertainty_ns;
            if ahead_ns.abs() <= uncertainty_ns {
                return own;
            }
            // Without drift the correction is the same at each time.
            let at = paths
                .get(input)
                .and_then(|path| look::first_time(path).ok().flatten());
            let step = correction(at.unwrap_or_default(), ahead_ns);
            Some(Clock {
                reference: base,
                correction: own.map_or(step, |own| own.correction.then(&step)),
                uncertainty_ns: match own {
                    Some(own) => own.uncertainty_ns.map(|own| own + uncertainty_ns),
                    None => Some(uncertainty_ns),
                },
            })
        })
        .collect();
    alignment.clocks = moved;
}
