//! States of a flow's sender: the time of a flow is divided among them without rest, as `tcp_info` of Linux divides that of a TCP connection.

use crate::FlowRow;

/// The state of a flow's sender: what it did or waited for. Where several hold at once, the one that stands first counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TimeState {
    /// It waited for its timer before it retransmitted.
    Timeout,
    /// It waited because the receiver had no buffer (RNR NAK).
    Rnr,
    /// A pause of its priority, or of the whole link, stopped it.
    Paused,
    /// It retransmitted.
    Recovering,
    /// It sent below its rate after congestion notifications.
    Slowed,
    /// As much was outstanding as ever before, and it waited for answers.
    Window,
    /// It sent nothing, and an answer that was late by more than the spread of the others came later than the flow's least round trip.
    Network,
    /// It sent, or packets that it had sent were on their way for no longer than usual.
    Sending,
    /// Nothing was outstanding: it waited for the receiver.
    Receiver,
    /// Nothing was outstanding: the sender's program was awaited.
    Sender,
    /// Nothing was outstanding, and nothing shows who was awaited.
    Idle,
    /// The capture does not show it.
    Unknown,
}

/// How long a flow, or several in sum, spent in each state, in ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TimeByState([u64; TimeState::ALL.len()]);

impl TimeState {
    /// All of them, in the order in which they win.
    pub const ALL: [Self; 12] = [
        Self::Timeout,
        Self::Rnr,
        Self::Paused,
        Self::Recovering,
        Self::Slowed,
        Self::Window,
        Self::Network,
        Self::Sending,
        Self::Receiver,
        Self::Sender,
        Self::Idle,
        Self::Unknown,
    ];

    /// The word in tables and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Rnr => "rnr",
            Self::Paused => "paused",
            Self::Recovering => "recovering",
            Self::Slowed => "slowed",
            Self::Window => "window",
            Self::Network => "network",
            Self::Sending => "sending",
            Self::Receiver => "receiver",
            Self::Sender => "sender",
            Self::Idle => "idle",
            Self::Unknown => "unknown",
        }
    }

    /// The words of a report for people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Timeout => "timeouts",
            Self::Rnr => "waiting for receive buffers",
            Self::Paused => "paused",
            Self::Recovering => "retransmitting",
            Self::Slowed => "slowed by congestion notifications",
            Self::Window => "waiting for ACKs",
            Self::Network => "late answers",
            Self::Sending => "sending",
            Self::Receiver => "waiting for the receiver",
            Self::Sender => "waiting for the sender's program",
            Self::Idle => "sender idle",
            Self::Unknown => "unknown",
        }
    }
}

impl TimeByState {
    /// Adds `time` in ns to a state.
    pub fn add(&mut self, state: TimeState, time: u64) {
        let sum = &mut self.0[state as usize];
        *sum = sum.saturating_add(time);
    }

    /// Moves `time` in ns from one state to another, as far as it is there.
    pub fn shift(&mut self, from: TimeState, to: TimeState, time: u64) {
        let time = time.min(self.of(from));
        self.0[from as usize] -= time;
        self.add(to, time);
    }

    /// Adds the times of another flow.
    pub fn add_all(&mut self, other: &Self) {
        for (state, time) in other.iter() {
            self.add(state, time);
        }
    }

    /// The time in a state, in ns.
    pub const fn of(&self, state: TimeState) -> u64 {
        self.0[state as usize]
    }

    /// The time in all of them, in ns.
    pub fn sum(&self) -> u64 {
        self.0.iter().fold(0, |sum, time| sum.saturating_add(*time))
    }

    /// Each state with its time in ns, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (TimeState, u64)> + '_ {
        TimeState::ALL.into_iter().zip(self.0)
    }
}

/// The columns of a row in the order of the states.
macro_rules! columns {
    ($($column:ident)*) => {
        impl FlowRow {
            /// How long the flow was in each state; `None` if it sent no requests.
            pub fn time_by_state(&self) -> Option<TimeByState> {
                Some(TimeByState([ $( self.$column?, )* ]))
            }

            /// Fills in how long the flow was in each state.
            pub fn set_time_by_state(&mut self, times: &TimeByState) {
                [ $( self.$column, )* ] = times.0.map(Some);
            }
        }
    };
}

columns!(
    time_timeout_ns time_rnr_ns time_paused_ns time_recovering_ns time_slowed_ns time_window_ns
    time_network_ns time_sending_ns time_receiver_ns time_sender_ns time_idle_ns time_unknown_ns
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Columns as _, FlowColumns};

    #[test]
    fn each_state_has_the_column_of_its_name() {
        let named = |state: TimeState| format!("time_{}_ns", state.name());
        let columns = FlowColumns::TABLE.columns.iter().map(|column| column.name);
        let columns: Vec<_> = columns.filter(|name| name.starts_with("time_")).collect();
        assert_eq!(columns, TimeState::ALL.map(named));
    }

    #[test]
    fn rows_keep_the_times_of_states() {
        let mut times = TimeByState::default();
        for (state, time) in TimeState::ALL.into_iter().zip(1..) {
            times.add(state, time);
        }
        let mut row = FlowRow::default();
        assert_eq!(row.time_by_state(), None);
        row.set_time_by_state(&times);
        assert_eq!(row.time_by_state(), Some(times));
        assert_eq!((row.time_timeout_ns, row.time_unknown_ns), (Some(1), Some(12)));
        assert_eq!(times.sum(), 78, "1 + 2 + ... + 12");
    }
}
