//! Limits of a flow's rate, moment by moment: its application, its window, DCQCN, a configured limit, or
//! its port.

mod steps;

use crate::units::Picos;

/// Limit that an end waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Waits {
    /// It has nothing to send.
    #[default]
    Demand,
    /// It must not send what it has: its window is full, too many READs are outstanding, or an RNR NAK forbids it.
    Blocked,
    /// DCQCN's rate does not allow the next packet yet.
    Dcqcn,
    /// The configured limit does not allow it yet.
    RateLimit,
    /// The port sends another packet, or its own packet before.
    Port,
    /// A pause frame has stopped its priority.
    Paused,
}

impl Waits {
    /// Number of limits.
    pub(crate) const COUNT: usize = 6;
}

/// Limit that an end waits for, and the time since when.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Account {
    waits: Waits,
    since: Picos,
}

/// Total wait for each limit.
#[derive(Clone, Debug, Default)]
pub(crate) struct WaitTotals {
    /// In all, by the place of [`Waits`].
    pub total: [Picos; Waits::COUNT],
    /// For DCQCN and for the port, in each millisecond.
    pub dcqcn_by_ms: Vec<Picos>,
    pub port_by_ms: Vec<Picos>,
}

const MILLISECOND: Picos = Picos::from_nanos(1_000_000);

impl WaitTotals {
    pub(crate) fn add(&mut self, waits: Waits, begin: Picos, end: Picos) {
        let total = &mut self.total[waits as usize];
        *total = total.plus(end.since(begin));
        match waits {
            Waits::Dcqcn => spread(&mut self.dcqcn_by_ms, begin, end),
            Waits::Port => spread(&mut self.port_by_ms, begin, end),
            _ => {}
        }
    }
}

/// Adds a time to the milliseconds that it lies in.
fn spread(bins: &mut Vec<Picos>, begin: Picos, end: Picos) {
    let mut from = begin;
    while from < end {
        let bin = from.0 / MILLISECOND.0;
        let until = end.min(Picos((bin + 1) * MILLISECOND.0));
        let place = usize::try_from(bin).unwrap_or(usize::MAX);
        if place >= bins.len() {
            bins.resize(place + 1, Picos::ZERO);
        }
        bins[place] = bins[place].plus(until.since(from));
        from = until;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_spread_over_its_milliseconds() {
        let us = |us: u64| Picos::from_nanos(us * 1_000);
        let mut waited = WaitTotals::default();
        waited.add(Waits::Dcqcn, us(800), us(2_300));
        assert_eq!(waited.dcqcn_by_ms, [us(200), us(1_000), us(300)]);
        assert_eq!(waited.total[Waits::Dcqcn as usize], us(1_500));
    }
}
