//! Fields of a protobuf message, as they lie in memory: no allocation, one pass.
//!
//! Source: protobuf's encoding (protobuf.dev/programming-guides/encoding). Groups are refused: OTLP has none.

use crate::error::OtlpError;

/// Longest varint, in bytes.
const MAX_VARINT: usize = 10;

/// A message, or the rest of one.
#[derive(Clone, Copy)]
pub(crate) struct Message<'a> {
    rest: &'a [u8],
    /// Place of the rest in the request.
    offset: usize,
}

/// A field of a message.
#[derive(Clone, Copy)]
pub(crate) struct Field<'a> {
    pub(crate) number: u64,
    pub(crate) value: FieldValue<'a>,
}

/// The value of a field, by its wire type.
#[derive(Clone, Copy)]
pub(crate) enum FieldValue<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(Message<'a>),
    Fixed32,
}

impl<'a> Message<'a> {
    /// The message that these bytes are.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            offset: 0,
        }
    }

    /// The bytes as text.
    pub(crate) fn text(self) -> Result<&'a str, OtlpError> {
        std::str::from_utf8(self.rest).map_err(|error| OtlpError::Protobuf {
            offset: self.offset + error.valid_up_to(),
            expected: "UTF-8",
        })
    }

    fn error(&self, expected: &'static str) -> OtlpError {
        OtlpError::Protobuf {
            offset: self.offset,
            expected,
        }
    }

    fn take(&mut self, count: usize, expected: &'static str) -> Result<&'a [u8], OtlpError> {
        let (taken, rest) = self
            .rest
            .split_at_checked(count)
            .ok_or_else(|| self.error(expected))?;
        self.rest = rest;
        self.offset += count;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, OtlpError> {
        let mut value = 0_u64;
        for (place, byte) in self.rest.iter().take(MAX_VARINT).enumerate() {
            // Bits beyond the 64th are lost, as in other decoders.
            value |= u64::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                self.rest = &self.rest[place + 1..];
                self.offset += place + 1;
                return Ok(value);
            }
        }
        Err(self.error("a varint of at most 10 bytes"))
    }

    fn fixed64(&mut self) -> Result<u64, OtlpError> {
        let bytes = self.take(8, "8 bytes of a number")?;
        Ok(bytes.try_into().map_or(0, u64::from_le_bytes))
    }

    fn field(&mut self) -> Result<Field<'a>, OtlpError> {
        let start = *self;
        let tag = self.varint()?;
        let number = tag >> 3;
        if number == 0 {
            return Err(start.error("a field number above 0"));
        }
        let value = match tag & 7 {
            0 => FieldValue::Varint(self.varint()?),
            1 => FieldValue::Fixed64(self.fixed64()?),
            2 => {
                let length = usize::try_from(self.varint()?).unwrap_or(usize::MAX);
                let offset = self.offset;
                let rest = self.take(length, "as many bytes as the field's length says")?;
                FieldValue::Bytes(Message { rest, offset })
            }
            5 => {
                self.take(4, "4 bytes of a number")?;
                FieldValue::Fixed32
            }
            _ => return Err(start.error("a wire type of 0, 1, 2 or 5")),
        };
        Ok(Field { number, value })
    }
}

#[expect(
    clippy::copy_iterator,
    reason = "a message is walked twice: each walk is a copy of it"
)]
impl<'a> Iterator for Message<'a> {
    type Item = Result<Field<'a>, OtlpError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(bytes: &[u8]) -> Result<Vec<(u64, u64)>, OtlpError> {
        let number = |field: Field<'_>| match field.value {
            FieldValue::Varint(value) | FieldValue::Fixed64(value) => (field.number, value),
            FieldValue::Bytes(message) => (field.number, message.rest.len() as u64),
            FieldValue::Fixed32 => (field.number, 0),
        };
        Message::new(bytes).map(|field| field.map(number)).collect()
    }

    #[test]
    fn fields_of_each_wire_type_are_read() {
        // The examples of the encoding guide: field 1 = 150; field 2 = "testing".
        assert_eq!(fields(&[0x08, 0x96, 0x01]), Ok(vec![(1, 150)]));
        assert_eq!(fields(b"\x12\x07testing"), Ok(vec![(2, 7)]));
        // Field 1 as fixed64 and field 3 as fixed32: tags 1 << 3 | 1 and 3 << 3 | 5.
        let both = [0x09, 2, 0, 0, 0, 0, 0, 0, 0, 0x1d, 1, 0, 0, 0];
        assert_eq!(fields(&both), Ok(vec![(1, 2), (3, 0)]));
    }

    #[test]
    fn broken_fields_are_named_with_their_place() {
        let at = |offset, expected| Err(OtlpError::Protobuf { offset, expected });
        assert_eq!(fields(&[0x08]), at(1, "a varint of at most 10 bytes"));
        assert_eq!(fields(&[0xff; 11]), at(0, "a varint of at most 10 bytes"));
        assert_eq!(fields(&[0x00, 0x00]), at(0, "a field number above 0"));
        assert_eq!(fields(&[0x0b]), at(0, "a wire type of 0, 1, 2 or 5"));
        assert_eq!(
            fields(&[0x08, 0x01, 0x12, 0x05, 0x61]),
            at(4, "as many bytes as the field's length says")
        );
        assert_eq!(fields(&[0x09, 0x01]), at(1, "8 bytes of a number"));
    }
}
