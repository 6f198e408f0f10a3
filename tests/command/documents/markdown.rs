//! Contents of a Markdown page: links, anchors, code, tables and sentences, each with its line.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// One page.
#[derive(Default)]
pub(crate) struct Page {
    /// From the top of the repository.
    pub(crate) path: PathBuf,
    /// Names that a link can have behind `#`.
    pub(crate) anchors: BTreeSet<String>,
    pub(crate) links: Vec<(usize, String)>,
    /// Code within text.
    pub(crate) codes: Vec<(usize, String)>,
    pub(crate) blocks: Vec<Block>,
    /// Paragraphs and list items; inline code is one word of them.
    prose: Vec<(usize, String)>,
    /// Rows of tables, each with the anchor of the heading above it.
    rows: Vec<(String, Vec<String>)>,
}

/// A code block.
pub(crate) struct Block {
    line: usize,
    /// Words of the opening fence: the language, and others.
    info: String,
    text: String,
}

/// Replacement of inline code in prose: one word that neither begins nor ends a sentence by its own
/// signs.
const CODE: char = '\u{fffc}';

/// Kind of element that text belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Prose,
    Heading,
    Block,
    Table,
}

impl Page {
    /// Reads a page.
    pub(crate) fn read(top: &Path, path: &Path) -> Self {
        let text =
            fs::read_to_string(top.join(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self::parse(path, &text)
    }

    fn parse(path: &Path, text: &str) -> Self {
        let mut page = Self {
            path: path.to_owned(),
            ..Self::default()
        };
        let mut within = Within::Prose;
        // Text of the open element, and its line.
        let (mut open, mut open_line) = (String::new(), 0);
        let mut heading = String::new();
        let mut head = false;
        let mut slugs = BTreeMap::<String, u32>::new();
        for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
            let line = 1 + text[..range.start].matches('\n').count();
            if open.is_empty() {
                open_line = line;
            }
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push((line, dest_url.into_string()));
                }
                Event::Start(Tag::CodeBlock(kind)) => {
                    page.sentence_ends(within, &mut open, open_line);
                    within = Within::Block;
                    let info = match kind {
                        CodeBlockKind::Fenced(info) => info.into_string(),
                        CodeBlockKind::Indented => String::new(),
                    };
                    page.blocks.push(Block {
                        line,
                        info,
                        text: String::new(),
                    });
                }
                Event::End(TagEnd::CodeBlock) => {
                    page.blocks.last_mut().unwrap().text = std::mem::take(&mut open);
                    within = Within::Prose;
                }
                Event::Start(Tag::Heading { .. }) => within = Within::Heading,
                Event::End(TagEnd::Heading(_)) => {
                    let slug = slug(&open);
                    let seen = slugs.entry(slug.clone()).or_default();
                    heading = if *seen == 0 {
                        slug
                    } else {
                        format!("{slug}-{seen}")
                    };
                    *seen += 1;
                    page.anchors.insert(heading.clone());
                    open.clear();
                    within = Within::Prose;
                }
                Event::Start(Tag::Table(_)) => within = Within::Table,
                Event::End(TagEnd::Table) => within = Within::Prose,
                Event::Start(Tag::TableRow) => page.rows.push((heading.clone(), Vec::new())),
                Event::Start(Tag::TableHead) => head = true,
                Event::End(TagEnd::TableHead) => head = false,
                Event::End(TagEnd::TableCell) => {
                    let cell = std::mem::take(&mut open);
                    if let (false, Some((_, row))) = (head, page.rows.last_mut()) {
                        row.push(cell);
                    }
                }
                Event::Code(code) => {
                    page.codes.push((line, code.to_string()));
                    if within == Within::Prose {
                        open.push(CODE);
                    } else {
                        open.push_str(&code);
                    }
                }
                Event::Text(text) => open.push_str(&text),
                Event::SoftBreak | Event::HardBreak => open.push(' '),
                Event::Start(Tag::Paragraph | Tag::Item | Tag::List(_))
                | Event::End(TagEnd::Paragraph | TagEnd::Item | TagEnd::List(_)) => {
                    page.sentence_ends(within, &mut open, open_line);
                }
                _ => {}
            }
        }
        page
    }

    /// A paragraph or an item of a list is over.
    fn sentence_ends(&mut self, within: Within, open: &mut String, line: usize) {
        if within == Within::Prose && !open.trim().is_empty() {
            self.prose.push((line, open.trim().to_owned()));
        }
        open.clear();
    }

    /// Its sentences, each with the line where its paragraph begins.
    pub(crate) fn sentences(&self) -> impl Iterator<Item = (usize, String)> {
        let of = |(line, text): &(usize, String)| {
            let line = *line;
            split(text).into_iter().map(move |sentence| (line, sentence))
        };
        self.prose.iter().flat_map(of)
    }

    /// The rows of the tables below a heading, until the next one.
    pub(crate) fn rows(&self, anchor: &str) -> Vec<&[String]> {
        let below = self.rows.iter().filter(|(heading, _)| heading == anchor);
        below.map(|(_, row)| row.as_slice()).collect()
    }
}

impl Block {
    /// True if its commands are run.
    pub(crate) fn runs(&self) -> bool {
        self.info.split_whitespace().any(|word| word == "run")
    }

    /// The lines that are commands: those behind `$ `, or without such ones all. A backslash joins a line and the next one.
    pub(crate) fn commands(&self) -> Vec<(usize, String)> {
        let session: Vec<_> = self.session().map(|(line, command, _)| (line, command)).collect();
        if !session.is_empty() {
            return session;
        }
        let text = self.text.replace("\\\n", " ");
        text.lines()
            .map(|command| (self.line, command.to_owned()))
            .collect()
    }

    /// Each command behind `$ `, with its line and the text below it.
    pub(crate) fn session(&self) -> impl Iterator<Item = (usize, String, String)> {
        let text = self.text.replace("\\\n", " ");
        let mut found: Vec<(usize, String, String)> = Vec::new();
        for (number, line) in text.lines().enumerate() {
            if let Some(command) = line.strip_prefix("$ ") {
                found.push((self.line + 1 + number, command.to_owned(), String::new()));
            } else if let Some((_, _, below)) = found.last_mut() {
                below.push_str(line);
                below.push('\n');
            }
        }
        found.into_iter()
    }
}

/// A path from the top, of one that is relative to a folder.
pub(crate) fn join(folder: &Path, path: &str) -> PathBuf {
    let mut joined = folder.to_owned();
    for part in Path::new(path).components() {
        match part {
            Component::ParentDir => assert!(joined.pop(), "{path} is outside of the project"),
            Component::CurDir => {}
            _ => joined.push(part),
        }
    }
    joined
}

/// The anchor of a heading, as GitHub makes it: small letters, hyphens for spaces, no other signs.
fn slug(heading: &str) -> String {
    heading
        .trim()
        .to_lowercase()
        .chars()
        .filter(|sign| sign.is_alphanumeric() || matches!(sign, ' ' | '-' | '_'))
        .map(|sign| if sign == ' ' { '-' } else { sign })
        .collect()
}

/// Sentences of a paragraph: each ends at a full stop, a question mark or an exclamation mark before a word that is not in small letters.
fn split(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut sentence = String::new();
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        if !sentence.is_empty() {
            sentence.push(' ');
        }
        sentence.push_str(word);
        let over = word
            .trim_end_matches([')', '"', '\'', '*'])
            .ends_with(['.', '?', '!']);
        let goes_on = words
            .peek()
            .is_some_and(|next| next.starts_with(char::is_lowercase));
        if over && !goes_on {
            found.push(std::mem::take(&mut sentence));
        }
    }
    if !sentence.is_empty() {
        found.push(sentence);
    }
    found
}

#[test]
fn pages_are_taken_apart() {
    let text = "# One: `two`\n\nA [link](x.md#y) of `a b. C` here. It has 1.5 words\nmore.\n\n- an item\n- another one.\n\n\
                | a | b |\n|---|---|\n| `c` | d e |\n\n| f |\n|---|\n\n```console run\n$ true\n$ echo \\\n  a\na\n```\n\n# One: two\n";
    let page = Page::parse(Path::new("docs/page.md"), text);
    assert_eq!(page.links, [(3, "x.md#y".to_owned())]);
    assert!(page.anchors.contains("one-two") && page.anchors.contains("one-two-1"));
    let sentences: Vec<_> = page.sentences().map(|(_, sentence)| sentence).collect();
    let expected = [
        "A link of \u{fffc} here.",
        "It has 1.5 words more.",
        "an item",
        "another one.",
    ];
    assert_eq!(sentences, expected);
    assert_eq!(page.rows("one-two"), [["c", "d e"]]);
    let session: Vec<_> = page.blocks[0].session().collect();
    assert!(page.blocks[0].runs());
    assert_eq!(session[1].1, "echo    a");
    assert_eq!(session[1].2, "a\n");
    assert_eq!(join(Path::new("docs"), "../README.md"), Path::new("README.md"));
}
