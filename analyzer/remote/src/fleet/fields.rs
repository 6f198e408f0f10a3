//! Lines `key=value`, in which scripts answer.

/// Bytes of a value; what follows is cut off.
const MAX_VALUE_BYTES: usize = 1_024;
/// Bytes of a key; a longer one is none.
const MAX_KEY_BYTES: usize = 16;

/// A line's key and value; `None`: it is no such line.
pub fn field(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once('=')?;
    let is_key = (1..=MAX_KEY_BYTES).contains(&key.len())
        && key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    is_key.then(|| (key, cut(value.trim(), MAX_VALUE_BYTES)))
}

/// A text without what is behind this many bytes.
fn cut(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// A text that is none is absent.
pub(crate) fn text(value: &str) -> Option<String> {
    (!value.is_empty()).then(|| value.to_owned())
}

/// True for words that paths and names in scripts may have: letters, digits, and `/._+:@-`.
pub(crate) fn is_plain(word: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"/._+:@-".contains(&byte);
    !word.is_empty() && word.bytes().all(is_allowed)
}

/// True for an absolute path of plain words that leads nowhere upwards.
pub(crate) fn is_plain_path(path: &str) -> bool {
    path.starts_with('/') && is_plain(path) && !path.split('/').any(|part| part == "..")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fields_have_a_short_key_in_small_letters() {
        assert_eq!(field("release=6.1.0-18"), Some(("release", "6.1.0-18")));
        assert_eq!(field("rdma=mlx5_0 1 ens1 \r"), Some(("rdma", "mlx5_0 1 ens1")));
        assert_eq!(field("key=a=b"), Some(("key", "a=b")));
        for wrong in ["", "=", "=x", "Warning: x=y", "no field", "aaaaaaaaaaaaaaaaa=1"] {
            assert_eq!(field(wrong), None, "{wrong}");
        }
        assert!(is_plain_path("/var/tmp/roce-fleet-0"));
        for wrong in ["", "var", "/var/../etc", "/a b", "/a;b", "/a\nb"] {
            assert!(!is_plain_path(wrong), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_line_is_a_short_field_or_none(line in "(key=)?\\PC{0,2000}") {
            if let Some((key, value)) = field(&line) {
                prop_assert!(key.len() <= MAX_KEY_BYTES && value.len() <= MAX_VALUE_BYTES);
                prop_assert!(line.starts_with(key));
            }
        }
    }
}
