//! MAC control: pause (IEEE 802.3 annex 31B) and priority flow control (IEEE 802.1Q 36, annex 31D).
//!
//! ```text
//!  0..2     opcode: 0x0001 pause, 0x0101 PFC
//!  2..4     pause: quanta                   PFC: class-enable vector, low 8 bits
//!  4..20                                    PFC: eight times 16 bits of quanta
//! ```

use core::fmt;

/// A MAC address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MacAddress(pub [u8; 6]);

/// Kind of a pause frame.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PauseKind {
    /// 802.3x: the whole link is paused.
    Link,
    /// Priority flow control: each class by itself.
    Priority,
}

/// A pause frame: who tells its neighbour to stop sending, and for how long. A quantum is 512 bit times.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Pause {
    /// Source address.
    pub source: MacAddress,
    /// To whom: 01:80:c2:00:00:01 as a rule.
    pub destination: MacAddress,
    /// Kind of the frame.
    pub kind: PauseKind,
    /// PFC: the class-enable vector, bit n for class n; 0 for a link pause.
    pub enabled: u8,
    /// PFC: quanta by class, 0 where fewer were present; link pause: the first one.
    pub quanta: [u16; 8],
    /// Number of quanta in the frame: some generators send fewer than eight.
    pub present: u8,
}

impl MacAddress {
    /// Destination of pause frames (IEEE 802.3 annex 31B).
    pub const PAUSE: Self = Self([0x01, 0x80, 0xc2, 0, 0, 0x01]);
}

impl Pause {
    /// The quanta for a priority: `Some(0)` ends its pause, `None` leaves it as it is.
    ///
    /// A link pause applies to every priority, and a PFC frame to those in its class-enable vector.
    pub const fn quanta_of(&self, priority: u8) -> Option<u16> {
        match self.kind {
            PauseKind::Link if self.present > 0 => Some(self.quanta[0]),
            PauseKind::Priority
                if priority < 8 && self.enabled >> priority & 1 != 0 && priority < self.present =>
            {
                Some(self.quanta[priority as usize & 7])
            }
            _ => None,
        }
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for byte in self.0 {
            write!(f, "{separator}{byte:02x}")?;
            separator = ":";
        }
        Ok(())
    }
}

impl fmt::Debug for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.kind == PauseKind::Link {
            return write!(f, "pause {} quanta from {}", self.quanta[0], self.source);
        }
        f.write_str("PFC")?;
        for priority in 0..8 {
            if let Some(quanta) = self.quanta_of(priority) {
                write!(f, " {priority}:{quanta}")?;
            }
        }
        write!(f, " from {}", self.source)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn a_class_is_paused_only_when_enabled_and_present() {
        let mut pause = Pause {
            source: MacAddress([2, 0, 0, 0, 0, 0x0a]),
            destination: MacAddress::PAUSE,
            kind: PauseKind::Priority,
            enabled: 0b0000_1001,
            quanta: [0xffff, 1, 2, 0, 0, 0, 0, 0],
            present: 8,
        };
        assert_eq!(pause.quanta_of(0), Some(0xffff));
        assert_eq!(
            (pause.quanta_of(1), pause.quanta_of(3), pause.quanta_of(9)),
            (None, Some(0), None)
        );
        assert_eq!(pause.to_string(), "PFC 0:65535 3:0 from 02:00:00:00:00:0a");
        pause.present = 3;
        assert_eq!(pause.quanta_of(3), None);
        (pause.kind, pause.present) = (PauseKind::Link, 1);
        assert_eq!(
            (pause.quanta_of(0), pause.quanta_of(7)),
            (Some(0xffff), Some(0xffff))
        );
        assert_eq!(pause.to_string(), "pause 65535 quanta from 02:00:00:00:00:0a");
    }
}
