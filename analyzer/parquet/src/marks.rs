//! Marks of our own files: who wrote them, and where their checksum is.

/// Name of the program that wrote the file, before its version; in the form that parquet-mr reads.
pub(crate) const CREATED_BY: &str = "roce-analyze version ";
/// Key of the file's checksum.
pub(crate) const CHECKSUM_KEY: &str = "roce-analyze.crc32";
/// Digits of the checksum before it is known.
pub(crate) const NO_DIGITS: [u8; 8] = *b"00000000";

/// The key and the value's header of the pair with the checksum, as Thrift's compact protocol has them: field 2, a text of 8 bytes.
pub(crate) fn checksum_mark() -> Vec<u8> {
    [CHECKSUM_KEY.as_bytes(), &[0x18, 8]].concat()
}

/// The last place of `sought` in `bytes`.
pub(crate) fn last_place(bytes: &[u8], sought: &[u8]) -> Option<usize> {
    bytes.windows(sought.len()).rposition(|window| window == sought)
}
