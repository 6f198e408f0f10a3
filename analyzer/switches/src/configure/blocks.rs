//! A running configuration of NX-OS or EOS as blocks: a line, and the lines below it that are further in.

use std::collections::BTreeMap;

/// Lines of a configuration.
const MAX_LINES: usize = 200_000;
/// Levels of blocks. What is further in belongs to the last level.
const MAX_DEPTH: usize = 8;
/// Names of DSCPs beside those of classes (RFC 2474, 2597, 3246).
const NAMES: [(&str, u8); 3] = [("ef", 46), ("default", 0), ("va", 44)];

/// A line with its children. Blanks between words are one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Block {
    pub(super) line: String,
    pub(super) children: Vec<Block>,
}

impl Block {
    /// Children that start with these words, with the rest of their lines.
    pub(super) fn below<'a>(&'a self, words: &str) -> impl Iterator<Item = (&'a str, &'a Block)> {
        starting(&self.children, words)
    }

    /// The rest of the first child that starts with these words.
    pub(super) fn rest(&self, words: &str) -> Option<&str> {
        self.below(words).next().map(|(rest, _)| rest)
    }

    /// True if a child is this line.
    pub(super) fn has(&self, line: &str) -> bool {
        self.children.iter().any(|child| child.line == line)
    }
}

/// Blocks that start with these words, with the rest of their lines.
pub(super) fn starting<'a>(blocks: &'a [Block], words: &str) -> impl Iterator<Item = (&'a str, &'a Block)> {
    blocks.iter().filter_map(move |block| {
        let rest = block.line.strip_prefix(words)?;
        let is_word = rest.is_empty() || rest.starts_with(' ');
        is_word.then(|| (rest.trim_start(), block))
    })
}

/// Blocks that start with these words, by the last word of their lines: the name of a class or policy. The first of a name is kept.
pub(super) fn named<'a>(blocks: &'a [Block], words: &str) -> BTreeMap<&'a str, &'a Block> {
    let mut all = BTreeMap::new();
    for (rest, block) in starting(blocks, words) {
        if let Some(name) = rest.split(' ').next_back() {
            all.entry(name).or_insert(block);
        }
    }
    all
}

/// The blocks of a configuration. Comments (`!`), empty lines and prompts are left out.
pub(super) fn parse(text: &str) -> Result<Vec<Block>, String> {
    let mut roots: Vec<Block> = Vec::new();
    // Open blocks with their indents, from the outermost on.
    let mut open: Vec<(usize, Block)> = Vec::new();
    let close = |roots: &mut Vec<Block>, open: &mut Vec<(usize, Block)>| {
        if let Some((_, block)) = open.pop() {
            match open.last_mut() {
                Some((_, parent)) => parent.children.push(block),
                None => roots.push(block),
            }
        }
    };
    for (number, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        if number >= MAX_LINES {
            return Err(format!("the configuration has more than {MAX_LINES} lines"));
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.first().is_none_or(|first| first.starts_with('!')) {
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        while open
            .last()
            .is_some_and(|(known, _)| *known >= indent || open.len() >= MAX_DEPTH)
        {
            close(&mut roots, &mut open);
        }
        let block = Block {
            line: words.join(" "),
            children: Vec::new(),
        };
        open.push((indent, block));
    }
    while !open.is_empty() {
        close(&mut roots, &mut open);
    }
    Ok(roots)
}

/// The interfaces that are looked at: those that are named, or all `Ethernet` that are not shut down.
pub(super) fn interfaces<'a>(
    blocks: &'a [Block],
    named: &[String],
) -> Result<Vec<(String, &'a Block)>, String> {
    let all = || starting(blocks, "interface").map(|(name, block)| (canonical(name), block));
    if named.is_empty() {
        let is_port =
            |(name, block): &(String, &Block)| name.starts_with("Ethernet") && !block.has("shutdown");
        return Ok(all().filter(is_port).collect());
    }
    let find = |name: &String| {
        let wanted = canonical(name);
        let found = all().find(|(known, _)| *known == wanted);
        found.ok_or_else(|| format!("the configuration has no interface {wanted}"))
    };
    named.iter().map(find).collect()
}

/// `Ethernet1/1` of `Eth1/1` and `ethernet 1/1`.
fn canonical(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    let number = ["ethernet", "eth", "et"]
        .iter()
        .find_map(|prefix| lower.strip_prefix(prefix))
        .map(str::trim_start)
        .filter(|rest| rest.starts_with(|first: char| first.is_ascii_digit()));
    number.map_or_else(|| name.to_owned(), |number| format!("Ethernet{number}"))
}

/// DSCPs of a list such as `26`, `24-31,46` or `cs6 af31`.
pub(super) fn dscps(text: &str) -> Vec<u8> {
    let parts = text.split([' ', ',']).filter(|part| !part.is_empty());
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (dscp(first)?, dscp(last)?);
        Some(first..=last)
    };
    parts.filter_map(range).flatten().collect()
}

fn dscp(word: &str) -> Option<u8> {
    let lower = word.to_ascii_lowercase();
    if let Some((_, dscp)) = NAMES.iter().find(|(name, _)| *name == lower) {
        return Some(*dscp);
    }
    if let Some(class) = lower
        .strip_prefix("cs")
        .and_then(|class| class.parse::<u8>().ok())
    {
        return (class < 8).then(|| class * 8);
    }
    if let Some([class, drop]) = lower.strip_prefix("af").map(str::as_bytes) {
        let (class, drop) = (class.wrapping_sub(b'0'), drop.wrapping_sub(b'0'));
        return ((1..=4).contains(&class) && (1..=3).contains(&drop)).then(|| class * 8 + drop * 2);
    }
    lower.parse().ok().filter(|dscp| *dscp < 64)
}

/// The number behind a word of a line: `minimum-threshold 150 kbytes` is 150,000 bytes.
pub(super) fn threshold(line: &str, word: &str) -> Option<u64> {
    let mut words = line.split(' ').skip_while(|known| *known != word).skip(1);
    let number: u64 = words.next()?.parse().ok()?;
    let unit = match words.next()? {
        "bytes" => 1,
        "kbytes" => 1_000,
        "mbytes" => 1_000_000,
        _ => return None,
    };
    number.checked_mul(unit)
}

/// The first number of a text.
pub(super) fn number(text: &str) -> Option<u64> {
    text.split(' ').next()?.parse().ok()
}
