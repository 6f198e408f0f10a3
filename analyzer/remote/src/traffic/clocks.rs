//! The clock of a host before traffic starts, by the round trips of [`clock`](crate::clock), and the interfaces by which it reaches others.

use super::facts::HostFacts;
use super::script;
use crate::clock::{self, Offset};
use crate::machine::{Machine, RemoteError};

/// Steps of a clock from which on its answers are coarse: a second.
const COARSE_STEP_NS: i64 = 1_000_000_000;

/// Asks a host for the routes to these addresses, and measures its clock, which becomes part of its facts.
///
/// # Errors
/// If it cannot be reached, or does not answer in time.
pub(super) fn ask(machine: &Machine, peers: &[&str], facts: &mut HostFacts) -> Result<(), RemoteError> {
    let patience = machine.patience();
    let mut session = machine.session(&script::clock(peers)?)?;
    let mut is_complete = false;
    // Lines about routes, one for each address that a host connects to, and what a login shell says.
    session.lines(patience, |line| {
        is_complete = line == "end=1";
        if !is_complete {
            facts.note_route(line);
        }
        is_complete
    })?;
    // This machine's own clock needs no measurement.
    if is_complete && !machine.is_local() {
        facts.offset_ns = clock::measure(&mut session, patience).map_or(0, offset_ns);
    }
    session.finish(patience)
}

/// The offset that times are corrected by. A clock that answers with whole seconds, and may be right, is taken to be right: hosts are
/// mostly synchronized better than that.
fn offset_ns(offset: Offset) -> i64 {
    let is_coarse = offset.bound_ns >= COARSE_STEP_NS / 2;
    let may_be_right = offset.ahead_ns.unsigned_abs() <= offset.bound_ns.unsigned_abs();
    if is_coarse && may_be_right {
        0
    } else {
        offset.ahead_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coarse_clock_that_may_be_right_is_taken_to_be() {
        let of = |ahead_ns, bound_ns| offset_ns(Offset { ahead_ns, bound_ns });
        // Half a step of a second, and half of a round trip of 2 ms.
        assert_eq!(of(400_000_000, 501_000_000), 0);
        assert_eq!(of(-501_000_000, 501_000_000), 0);
        assert_eq!(of(7_200_400_000_000, 501_000_000), 7_200_400_000_000);
        // Nanoseconds are answered: the middle of the round trip is the best guess.
        assert_eq!(of(-300_000, 1_000_000), -300_000);
    }
}
