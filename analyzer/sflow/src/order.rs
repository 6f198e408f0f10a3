//! Numbers of an agent's datagrams: which are missing, late, or here already, and when the agent started again.

/// Datagrams behind the latest one that are remembered: as many as a word has bits.
const WINDOW: usize = 64;
/// The farthest that numbers jump ahead by losses. Beyond it the agent began to count again.
const MAX_JUMP: u32 = 1 << 20;

/// Novelty of a datagram by its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrival {
    /// New.
    New,
    /// Its number was here already: a copy, as of two taps or to two collectors.
    Copy,
}

/// The numbers of one agent.
#[derive(Clone, Debug)]
pub(crate) struct DatagramOrder {
    first: u32,
    latest: Option<u32>,
    /// Bit n: the datagram n behind the latest one was here.
    seen: u64,
    /// Uptimes of those datagrams, by the number's remainder.
    uptimes: [u32; WINDOW],
    /// Datagrams that are missing.
    pub(crate) lost: u64,
    /// Datagrams that came behind later ones.
    pub(crate) late: u64,
    /// Copies.
    pub(crate) copies: u64,
    /// Times that the agent began to count again.
    pub(crate) restarts: u64,
}

impl Default for DatagramOrder {
    fn default() -> Self {
        Self {
            first: 0,
            latest: None,
            seen: 0,
            uptimes: [0; WINDOW],
            lost: 0,
            late: 0,
            copies: 0,
            restarts: 0,
        }
    }
}

impl DatagramOrder {
    /// Takes the number of a datagram, and the time in milliseconds since its agent started.
    pub(crate) fn take(&mut self, sequence: u32, uptime_ms: u32) -> Arrival {
        let Some(latest) = self.latest else {
            self.begin(sequence, uptime_ms);
            return Arrival::New;
        };
        let ahead = sequence.wrapping_sub(latest);
        let behind = latest.wrapping_sub(sequence) as usize;
        if behind < WINDOW {
            let bit = 1_u64 << behind;
            if self.seen & bit == 0 {
                self.seen |= bit;
                self.late += 1;
                // A datagram before the first one was never missing.
                let is_missing = sequence.wrapping_sub(self.first) <= latest.wrapping_sub(self.first);
                self.lost = self.lost.saturating_sub(u64::from(is_missing));
            } else if self.uptime(sequence) == uptime_ms {
                self.copies += 1;
                return Arrival::Copy;
            } else {
                self.restarts += 1;
                self.begin(sequence, uptime_ms);
            }
        } else if ahead <= MAX_JUMP {
            self.lost += u64::from(ahead - 1);
            self.seen = self.seen.checked_shl(ahead).unwrap_or(0) | 1;
            self.latest = Some(sequence);
        } else {
            self.restarts += 1;
            self.begin(sequence, uptime_ms);
        }
        if let Some(kept) = self.uptimes.get_mut(sequence as usize % WINDOW) {
            *kept = uptime_ms;
        }
        Arrival::New
    }

    fn uptime(&self, sequence: u32) -> u32 {
        self.uptimes.get(sequence as usize % WINDOW).copied().unwrap_or(0)
    }

    fn begin(&mut self, sequence: u32, uptime_ms: u32) {
        self.first = sequence;
        self.latest = Some(sequence);
        self.seen = 1;
        if let Some(kept) = self.uptimes.get_mut(sequence as usize % WINDOW) {
            *kept = uptime_ms;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(numbers: &[(u32, u32)]) -> (DatagramOrder, Vec<Arrival>) {
        let mut order = DatagramOrder::default();
        let arrivals = numbers
            .iter()
            .map(|(number, uptime)| order.take(*number, *uptime));
        let arrivals = arrivals.collect();
        (order, arrivals)
    }

    #[test]
    fn holes_are_counted_and_filled() {
        let (order, _) = taken(&[(1, 10), (2, 20), (5, 50), (4, 40), (6, 60)]);
        // 3 and 4 were missing; 4 came.
        assert_eq!(
            (order.lost, order.late, order.copies, order.restarts),
            (1, 1, 0, 0)
        );
        let (order, _) = taken(&[(u32::MAX, 10), (0, 20), (2, 30)]);
        assert_eq!((order.lost, order.restarts), (1, 0));
    }

    #[test]
    fn copies_do_not_count_again() {
        let (order, arrivals) = taken(&[(7, 10), (7, 10), (8, 20), (7, 10)]);
        assert_eq!(
            arrivals,
            [Arrival::New, Arrival::Copy, Arrival::New, Arrival::Copy]
        );
        assert_eq!((order.copies, order.lost), (2, 0));
    }

    #[test]
    fn an_agent_that_starts_again_loses_nothing() {
        let (order, arrivals) = taken(&[(900_000, 5_000_000), (1, 100), (2, 200)]);
        assert_eq!(arrivals, [Arrival::New; 3]);
        assert_eq!((order.lost, order.restarts, order.copies), (0, 1, 0));
        // Soon after its start, too.
        let (order, arrivals) = taken(&[(1, 100), (2, 200), (3, 300), (1, 90), (2, 190)]);
        assert_eq!(arrivals, [Arrival::New; 5]);
        assert_eq!((order.lost, order.restarts, order.copies), (0, 1, 0));
    }
}
