//! Opcodes by the operation of a packet and its place in the message (IBTA 9.2.1).

use roce_wire::Opcode;

/// Place of a packet in its message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Position {
    /// The first of several.
    First,
    /// Neither the first nor the last.
    Middle,
    /// The last of several.
    Last,
    /// The only one.
    Only,
}

impl Position {
    /// The position of packet `index` (from 0) of a message of `packets` packets.
    pub const fn from_index(index: u32, packets: u32) -> Self {
        match (index, packets) {
            (_, 0 | 1) => Self::Only,
            (0, _) => Self::First,
            (index, packets) if index + 1 >= packets => Self::Last,
            _ => Self::Middle,
        }
    }

    /// RC SEND.
    pub const fn send(self) -> Opcode {
        Opcode(match self {
            Self::First => 0x00,
            Self::Middle => 0x01,
            Self::Last => 0x02,
            Self::Only => 0x04,
        })
    }

    /// RC RDMA WRITE.
    pub const fn write(self) -> Opcode {
        Opcode(match self {
            Self::First => 0x06,
            Self::Middle => 0x07,
            Self::Last => 0x08,
            Self::Only => 0x0a,
        })
    }

    /// RC RDMA WRITE that ends with immediate data.
    pub const fn write_with_immediate(self) -> Opcode {
        Opcode(match self {
            Self::First => 0x06,
            Self::Middle => 0x07,
            Self::Last => 0x09,
            Self::Only => 0x0b,
        })
    }

    /// RC RDMA READ Response.
    pub const fn read_response(self) -> Opcode {
        Opcode(match self {
            Self::First => 0x0d,
            Self::Middle => 0x0e,
            Self::Last => 0x0f,
            Self::Only => 0x10,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opcodes_are_those_that_their_names_say() {
        for (position, name) in [
            (Position::First, "First"),
            (Position::Middle, "Middle"),
            (Position::Last, "Last"),
            (Position::Only, "Only"),
        ] {
            assert_eq!(position.send().to_string(), format!("RC SEND {name}"));
            assert_eq!(position.write().to_string(), format!("RC RDMA WRITE {name}"));
            assert_eq!(
                position.read_response().to_string(),
                format!("RC RDMA READ Response {name}")
            );
        }
    }

    #[test]
    fn immediate_data_ends_a_message() {
        let last = Position::Last.write_with_immediate().to_string();
        assert_eq!(last, "RC RDMA WRITE Last with Immediate");
        let only = Position::Only.write_with_immediate().to_string();
        assert_eq!(only, "RC RDMA WRITE Only with Immediate");
        for position in [Position::First, Position::Middle] {
            assert_eq!(position.write_with_immediate(), position.write());
        }
    }

    #[test]
    fn positions_in_a_message() {
        let of = |packets| {
            (0..packets)
                .map(|index| Position::from_index(index, packets))
                .collect::<Vec<_>>()
        };
        assert_eq!(of(1), [Position::Only]);
        assert_eq!(of(2), [Position::First, Position::Last]);
        assert_eq!(of(3), [Position::First, Position::Middle, Position::Last]);
        assert_eq!(Position::from_index(0, 0), Position::Only);
    }
}
