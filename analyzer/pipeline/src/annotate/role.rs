//! Role of a packet in what the analysis says of it: one word each, for programs.

/// One role. A packet can have several.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PacketRole {
    /// It carries data.
    Data,
    /// It acknowledges data.
    Ack,
    /// A NAK of its receiver.
    Nak,
    /// An RNR NAK: no receive buffer was posted.
    RnrNak,
    /// A congestion notification.
    Cnp,
    /// It was marked Congestion Experienced.
    Mark,
    /// PSNs before it are missing.
    Missing,
    /// It was sent before.
    Retransmission,
    /// Packets behind it overtook it.
    Late,
    /// Its flow stood still before it.
    Stall,
    /// It begins a connection with new PSNs.
    Epoch,
    /// A credit of a collective: its sender asks for a message.
    Credit,
    /// It begins, ends or acknowledges the message of a credit.
    Message,
    /// A pause frame of PFC or 802.3x.
    Pause,
    /// A message of the connection manager.
    Management,
    /// The capture lost records before it.
    RecordsLost,
    /// A loss, trim or NACK of MRC is known by it.
    Mrc,
}

impl PacketRole {
    /// All roles.
    pub const ALL: [Self; 17] = [
        Self::Data,
        Self::Ack,
        Self::Nak,
        Self::RnrNak,
        Self::Cnp,
        Self::Mark,
        Self::Missing,
        Self::Retransmission,
        Self::Late,
        Self::Stall,
        Self::Epoch,
        Self::Credit,
        Self::Message,
        Self::Pause,
        Self::Management,
        Self::RecordsLost,
        Self::Mrc,
    ];

    /// Its word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Ack => "ack",
            Self::Nak => "nak",
            Self::RnrNak => "rnr_nak",
            Self::Cnp => "cnp",
            Self::Mark => "mark",
            Self::Missing => "missing",
            Self::Retransmission => "retransmission",
            Self::Late => "late",
            Self::Stall => "stall",
            Self::Epoch => "epoch",
            Self::Credit => "credit",
            Self::Message => "message",
            Self::Pause => "pause",
            Self::Management => "management",
            Self::RecordsLost => "records_lost",
            Self::Mrc => "mrc",
        }
    }
}
