//! Cutting fixed-size arrays out of bytes: the one place where a length is checked.

/// The `N` bytes at `at`, if they are all there.
#[inline]
pub(crate) fn chunk<const N: usize>(bytes: &[u8], at: usize) -> Option<&[u8; N]> {
    bytes.get(at..)?.first_chunk()
}

/// The `N` bytes at `AT` of an array that is known to be long enough.
#[inline]
pub(crate) const fn part<const AT: usize, const N: usize, const M: usize>(bytes: &[u8; M]) -> [u8; N] {
    const { assert!(AT + N <= M, "the part lies within the array") };
    let mut out = [0; N];
    let mut i = 0;
    while i < N {
        out[i] = bytes[AT + i];
        i += 1;
    }
    out
}
