//! Puts the page together: one file that holds its style, its scripts and its data, and may load nothing else.
//!
//! Scripts and style are files of this folder. They are the only ones that may run: the page's policy
//! names their hashes. Data is compressed and in Base64 where no markup is seen, so that nothing in a
//! capture can end it or become part of the page.

use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use sha2::{Digest, Sha256};

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("style.css");
/// In the order in which they follow each other inside of one function: they share its names and nothing beyond.
const SCRIPTS: [&str; 20] = [
    include_str!("format.js"),
    include_str!("dom.js"),
    include_str!("data.js"),
    include_str!("view.js"),
    include_str!("draw.js"),
    include_str!("grid.js"),
    include_str!("counters.js"),
    include_str!("tracks.js"),
    include_str!("timeline.js"),
    include_str!("verdicts.js"),
    include_str!("waits.js"),
    include_str!("ranks.js"),
    include_str!("spent.js"),
    include_str!("matrix.js"),
    include_str!("mrc.js"),
    include_str!("inband.js"),
    include_str!("tables.js"),
    include_str!("flowpage.js"),
    include_str!("about.js"),
    include_str!("main.js"),
];

/// A block of data and its name in the page.
pub(super) struct Block {
    pub(super) name: &'static str,
    pub(super) bytes: Vec<u8>,
}

/// Writes the page.
pub(super) fn write(blocks: &[Block], mut out: impl Write) -> io::Result<()> {
    let script = format!("(() => {{\n\"use strict\";\n{}\n}})();\n", SCRIPTS.join("\n"));
    let policy = format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; img-src data:; base-uri 'none'; form-action 'none'",
        hash(&script),
        hash(STYLE)
    );
    let mut rest = PAGE;
    while let Some((before, after)) = rest.split_once("{{") {
        out.write_all(before.as_bytes())?;
        let Some((name, after)) = after.split_once("}}") else {
            break;
        };
        match name {
            "policy" => out.write_all(policy.as_bytes())?,
            "style" => out.write_all(STYLE.as_bytes())?,
            "script" => out.write_all(script.as_bytes())?,
            // The only one left: the page is ours.
            _ => blocks.iter().try_for_each(|block| write_block(block, &mut out))?,
        }
        rest = after;
    }
    out.write_all(rest.as_bytes())?;
    out.flush()
}

fn write_block(block: &Block, out: &mut impl Write) -> io::Result<()> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&block.bytes)?;
    let text = STANDARD.encode(encoder.finish()?);
    writeln!(
        out,
        "<script type=\"application/octet-stream\" id=\"data-{}\">{text}</script>",
        block.name
    )
}

/// A source of the policy: the hash of the text between the tags.
fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_ends_a_script_early() {
        for script in SCRIPTS {
            assert!(!script.contains("</"), "{script:.60}");
            assert!(!script.contains("<!--"), "{script:.60}");
            assert!(script.lines().count() <= 600, "{script:.60}");
        }
        assert!(!STYLE.contains("</"));
    }

    #[test]
    fn states_have_the_words_of_the_terminal() {
        let listed: Vec<String> = roce_model::TimeState::ALL
            .iter()
            .map(|state| format!("[\"{}\", \"{}\", ", state.name(), state.words()))
            .collect();
        let script = include_str!("spent.js");
        let places: Vec<Option<usize>> = listed.iter().map(|state| script.find(state)).collect();
        assert!(
            places.is_sorted() && places.iter().all(Option::is_some),
            "{listed:?}"
        );
    }

    #[test]
    fn names_are_declared_once() {
        let mut names = std::collections::BTreeSet::new();
        for line in SCRIPTS.iter().flat_map(|script| script.lines()) {
            let mut words = line.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
            let is_declaration =
                ["const", "let", "function", "class"].contains(&words.next().unwrap_or_default());
            if let Some(name) = words.next().filter(|name| is_declaration && !name.is_empty()) {
                assert!(names.insert(name), "{name}: {line}");
            }
        }
        assert!(names.len() > 100);
    }

    #[test]
    fn nothing_comes_from_elsewhere() {
        for text in SCRIPTS.iter().chain([&PAGE, &STYLE]) {
            for word in [
                "http:",
                "https:",
                "innerHTML",
                "eval(",
                "document.write",
                "import(",
                "fetch(",
            ] {
                let own = text.replace("http://www.w3.org/2000/svg", "");
                assert!(!own.contains(word), "{word} in {text:.60}");
            }
        }
    }

    #[test]
    fn the_policy_names_what_is_in_the_page() {
        let mut page = Vec::new();
        write(&[], &mut page).unwrap();
        let page = String::from_utf8(page).unwrap();
        for (open, close) in [("<style>", "</style>"), ("<script>", "</script>")] {
            let (_, after) = page.split_once(open).unwrap();
            let (text, _) = after.split_once(close).unwrap();
            assert!(page.contains(&hash(text)), "{open}");
        }
        assert!(!page.contains("{{"));
    }
}
