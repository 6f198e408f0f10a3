//! The wire format of Protocol Buffers, as far as a trace needs it: varints, 64-bit numbers, and fields that begin with their length
//! (protobuf.dev, "Encoding"). The messages themselves are left to `protobuf`.
//!
//! Crates that were looked at: `prost` 0.14 (well kept; needs `protoc` or generated code, for a schema of which nine messages are used),
//! `micropb` 0.7 (for devices without a heap; needs the same), `quick-protobuf` 0.8 (its generator is a program of its own),
//! `perfetto-protos` 0.51 (the whole schema, generated), `tracing-perfetto` 0.1 (records spans of the program itself).
//! Writing takes fewer lines than their set-up; the tests read what is written with an independent decoder, and by Perfetto's schema.

/// Wire types.
const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const LENGTH: u32 = 2;

/// The fields of a message, encoded.
#[derive(Debug, Default)]
pub(super) struct Fields(Vec<u8>);

impl Fields {
    /// The bytes of the fields.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Removes all fields, keeping the room.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// A field of an unsigned or enumerated type, or a signed one whose value is not negative.
    pub(super) fn number(&mut self, field: u32, value: u64) {
        self.key(field, VARINT);
        self.varint(value);
    }

    /// A field of type `fixed64`.
    pub(super) fn fixed64(&mut self, field: u32, value: u64) {
        self.key(field, FIXED64);
        self.0.extend(value.to_le_bytes());
    }

    /// A field of type `double`.
    pub(super) fn double(&mut self, field: u32, value: f64) {
        self.fixed64(field, value.to_bits());
    }

    /// A field of type `string`.
    pub(super) fn text(&mut self, field: u32, text: &str) {
        self.key(field, LENGTH);
        self.varint(text.len() as u64);
        self.0.extend(text.as_bytes());
    }

    /// A field that is a message.
    pub(super) fn message(&mut self, field: u32, fill: impl FnOnce(&mut Self)) {
        self.key(field, LENGTH);
        let start = self.0.len();
        fill(self);
        // The length comes first. Most messages are short, so that few bytes move.
        let (length, end) = (self.0.len() - start, self.0.len());
        self.varint(length as u64);
        let prefix = self.0.len() - end;
        self.0[start..].rotate_right(prefix);
    }

    fn key(&mut self, field: u32, kind: u32) {
        self.varint(u64::from(field << 3 | kind));
    }

    /// Seven bits in each byte, the lowest first; the highest bit says that more follow.
    #[expect(clippy::cast_possible_truncation, reason = "the lowest seven bits are taken")]
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_specification_are_encoded_as_there() {
        // protobuf.dev, "Encoding": `Test1 { a: 150 }` is 08 96 01; `Test2 { b: "testing" }` is 12 07 and the letters;
        // `Test3 { c { a: 150 } }` is 1a 03 08 96 01.
        let encoded = |fill: &dyn Fn(&mut Fields)| {
            let mut fields = Fields::default();
            fill(&mut fields);
            fields.bytes().to_vec()
        };
        assert_eq!(encoded(&|fields| fields.number(1, 150)), [0x08, 0x96, 0x01]);
        assert_eq!(
            encoded(&|fields| fields.text(2, "testing")),
            [0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67]
        );
        assert_eq!(
            encoded(&|fields| fields.message(3, |inner| inner.number(1, 150))),
            [0x1a, 0x03, 0x08, 0x96, 0x01]
        );
    }

    #[test]
    fn long_messages_and_large_numbers_have_long_prefixes() {
        let mut fields = Fields::default();
        fields.message(1, |inner| inner.text(2, &"x".repeat(200)));
        // 200 is c8 01; the text with its key and length takes 203 bytes: cb 01.
        assert_eq!(&fields.bytes()[..7], [0x0a, 0xcb, 0x01, 0x12, 0xc8, 0x01, b'x']);
        assert_eq!(fields.bytes().len(), 206);
        fields.clear();
        fields.number(1, u64::MAX);
        assert_eq!(
            fields.bytes(),
            [8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]
        );
        fields.clear();
        // Field 44 with wire type 1: 353, which is e1 02. 1.0 is 3ff0 0000 0000 0000.
        fields.double(44, 1.0);
        assert_eq!(fields.bytes(), [0xe1, 0x02, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
    }
}
