//! Cleaning of text from outside (names of files, interfaces and processes, arguments, configuration)
//! for people. It must not steer the terminal or page that shows it, and not look like other text than
//! it is.
//!
//! Every message and screen passes [`clean`], [`clean_lines`] or [`clean_message`] before it gets its own style; JSON passes
//! [`escape_json`].

use std::borrow::Cow;
use std::fmt::Write;

/// True of characters that steer a terminal, change the direction of text, or are invisible: controls (C0, DEL, C1), the line and
/// paragraph separators, and Unicode's format characters (bidirectional marks, embeddings, overrides and isolates; zero-width
/// characters; tags).
pub const fn steers(glyph: char) -> bool {
    matches!(
        glyph,
        '\0'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// `text` with `?` for each character that [`steers`]: safe inside a line.
pub fn clean(text: &str) -> Cow<'_, str> {
    replace(text, steers)
}

/// As [`clean`], but line feeds stay: for messages of several lines.
pub fn clean_lines(text: &str) -> Cow<'_, str> {
    replace(text, |glyph| steers(glyph) && glyph != '\n')
}

/// As [`clean_lines`], with `?` also for line feeds inside of `names`: texts from outside that `text` may quote. Otherwise the name of a
/// file could look like a line of the message, such as a hint.
pub fn clean_message(text: &str, names: &[String]) -> String {
    let mut message = text.to_owned();
    for name in names.iter().filter(|name| name.contains('\n')) {
        message = message.replace(name.as_str(), &clean(name));
    }
    clean_lines(&message).into_owned()
}

/// A port of a node in one text, not yet cleaned: `leaf1 Ethernet1/3`. A port whose own name begins with the node (`leaf1:h1`) is
/// called by it alone.
pub fn port_name(node: &str, port: &str) -> String {
    match port.strip_prefix(node) {
        Some(rest) if rest.is_empty() || rest.starts_with(':') => port.to_owned(),
        _ => format!("{node} {port}"),
    }
}

/// `word` as a POSIX shell reads it, for commands in hints: a name must not become a second command when the hint is copied.
pub fn shell_word(word: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+:,@%=".contains(&byte);
    // A word that begins with a hyphen would be read as an option.
    let option = word.starts_with('-');
    if !word.is_empty() && !option && word.bytes().all(is_plain) {
        return Cow::Borrowed(word);
    }
    let folder = if option { "./" } else { "" };
    Cow::Owned(format!("'{folder}{}'", word.replace('\'', "'\\''")))
}

fn replace(text: &str, bad: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&bad) {
        return Cow::Borrowed(text);
    }
    let shown = text.chars().map(|glyph| if bad(glyph) { '?' } else { glyph });
    Cow::Owned(shown.collect())
}

/// JSON text with each character that [`steers`] as `\uXXXX`. It may be a whole document: outside of strings JSON has none of them but
/// white space, which stays.
pub fn escape_json(json: &str) -> Cow<'_, str> {
    let bad = |glyph: char| steers(glyph) && !matches!(glyph, '\n' | '\r' | '\t');
    if !json.contains(bad) {
        return Cow::Borrowed(json);
    }
    let mut escaped = String::with_capacity(json.len() + 16);
    for glyph in json.chars() {
        if bad(glyph) {
            for unit in glyph.encode_utf16(&mut [0; 2]) {
                // Writing into a `String` does not fail.
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(glyph);
        }
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_replaced() {
        // A title (OSC 0), a link (OSC 8), the clipboard (OSC 52), C1's CSI and OSC, DEL, and a carriage return.
        for (text, shown) in [
            ("a\u{1b}]0;b\u{7}c", "a?]0;b?c"),
            ("\u{1b}]8;;http://x\u{1b}\\y", "?]8;;http://x?\\y"),
            ("\u{1b}]52;c;eA==\u{7}", "?]52;c;eA==?"),
            ("\u{9b}2J\u{9d}0;x\u{9c}", "?2J?0;x?"),
            ("a\u{7f}b\rc\td", "a?b?c?d"),
            // Overrides and isolates turn text around; zero-width characters hide differences.
            ("gpj.\u{202e}exe\u{2066}x\u{2069}\u{200f}", "gpj.?exe?x??"),
            ("a\u{200b}b\u{200d}c\u{feff}d\u{2028}e\u{e0041}", "a?b?c?d?e?"),
        ] {
            assert_eq!(clean(text), shown);
        }
    }

    #[test]
    fn a_port_is_named_once() {
        assert_eq!(port_name("leaf1", "Ethernet1/3"), "leaf1 Ethernet1/3");
        assert_eq!(port_name("leaf1", "leaf1:h1"), "leaf1:h1");
        assert_eq!(port_name("h1", "h1"), "h1");
        // Another node whose name begins the port's is not the port's.
        assert_eq!(port_name("leaf1", "leaf10:h1"), "leaf1 leaf10:h1");
        assert_eq!(port_name("", "eth0"), " eth0");
    }

    #[test]
    fn other_text_stays_as_it_is() {
        // Composed and decomposed accents, wide characters, emoji, right-to-left letters.
        for text in ["überholt.pcap", "u\u{308}ber", "漢字", "📦", "שלום", "a b"] {
            assert!(matches!(clean(text), Cow::Borrowed(same) if same == text));
            assert!(matches!(escape_json(text), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn messages_keep_their_lines() {
        assert_eq!(clean_lines("a\nhint: \u{1b}[1mb"), "a\nhint: ?[1mb");
        assert_eq!(clean("a\nb"), "a?b");
    }

    #[test]
    fn words_of_hints_are_one_word_to_a_shell() {
        assert_eq!(shell_word("dir/a-1.pcap"), "dir/a-1.pcap");
        // POSIX 2.2.2: all between single quotes is literal, and a quote ends them.
        assert_eq!(shell_word("a b; $(x)"), "'a b; $(x)'");
        assert_eq!(shell_word("it's"), "'it'\\''s'");
        assert_eq!(shell_word("-rf"), "'./-rf'");
        assert_eq!(shell_word(""), "''");
    }

    #[test]
    fn names_make_no_lines() {
        let name = "a\nhint: rm -r x\u{1b}.pcap";
        let text = format!("/b/{name}/run.json: no such file\nhint: give another");
        assert_eq!(
            clean_message(&text, &[name.to_owned()]),
            "/b/a?hint: rm -r x?.pcap/run.json: no such file\nhint: give another"
        );
        assert_eq!(clean_message("a\nhint: b", &[]), "a\nhint: b");
    }

    #[test]
    fn json_is_escaped_by_code_units() {
        assert_eq!(
            escape_json("{\n\t\"\u{9b}\u{202e}\u{7f}é\"}"),
            "{\n\t\"\\u009b\\u202e\\u007fé\"}"
        );
        // U+E0041 is the surrogate pair DB40 DC41 (RFC 8259, 7).
        assert_eq!(escape_json("\"\u{e0041}\""), "\"\\udb40\\udc41\"");
    }
}
