//! Imports between the files of a crate, read from the sources, without a compiler.
//!
//! An import is a path through `crate::`, `super::` or `self::`, or through a module that the file has or imports. It leads to the file in
//! which the name is defined: re-exports are followed. Tests are left out. Only paths are read; a method of a type that was never named is
//! not seen.
//!
//! A crate was looked for and not taken: syn parses more than is needed here and resolves no names; cargo-modules is a program.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Re-exports that are followed for one name, at most: two files can re-export each other.
const MAX_REEXPORTS: usize = 16;

/// A crate's files and their imports; names are paths below `src`.
pub(crate) struct Modules {
    files: Vec<String>,
    imports: Vec<BTreeSet<usize>>,
}

impl Modules {
    /// Reads the crate in `dir`.
    pub(crate) fn read(dir: &Path) -> Self {
        let mut tree = Tree::default();
        let sources = dir.join("src");
        for root in ["lib.rs", "main.rs"] {
            if sources.join(root).is_file() {
                let node = tree.add(None, root.to_owned());
                let below = sources.clone();
                tree.parse(node, &sources, &below, root);
            }
        }
        let imports = tree.imports();
        Self {
            files: tree.files,
            imports,
        }
    }

    /// Each import: from which file to which.
    pub(crate) fn imports(&self) -> impl Iterator<Item = (&str, &str)> {
        let name = |file: usize| self.files[file].as_str();
        let all = self.imports.iter().enumerate();
        all.flat_map(move |(from, to)| to.iter().map(move |to| (name(from), name(*to))))
    }

    /// The circles: files that import each other, directly or over others.
    pub(crate) fn circles(&self) -> Vec<BTreeSet<&str>> {
        let reached: Vec<BTreeSet<usize>> = (0..self.files.len()).map(|file| self.reached(file)).collect();
        let mut circles = BTreeSet::new();
        for file in 0..self.files.len() {
            let circle: BTreeSet<&str> = reached[file]
                .iter()
                .filter(|other| reached[**other].contains(&file))
                .map(|other| self.files[*other].as_str())
                .collect();
            if circle.len() > 1 {
                circles.insert(circle);
            }
        }
        circles.into_iter().collect()
    }

    /// The files to which the imports of `file` lead.
    fn reached(&self, file: usize) -> BTreeSet<usize> {
        let mut reached = BTreeSet::new();
        let mut next = vec![file];
        while let Some(file) = next.pop() {
            next.extend(self.imports[file].iter().filter(|to| reached.insert(**to)));
        }
        reached
    }
}

/// A path, segment by segment.
type Names = Vec<String>;

/// A module, in a file of its own or within one.
#[derive(Default)]
struct Node {
    file: usize,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    /// Names that `use` introduces, with their paths.
    uses: BTreeMap<String, Names>,
    /// Modules from which `use` takes everything.
    globs: Vec<Names>,
    /// Paths elsewhere than in a `use`, or inside of one.
    paths: Vec<Names>,
    /// Names defined here.
    defined: BTreeSet<String>,
}

#[derive(Default)]
struct Tree {
    nodes: Vec<Node>,
    files: Vec<String>,
    /// Files of macros, which are in no module.
    macros: BTreeMap<String, usize>,
}

/// Target of a path: a module, or a definition in one.
#[derive(Clone, Copy)]
enum PathTarget {
    Module(usize),
    Item(usize),
}

impl Tree {
    fn add(&mut self, parent: Option<usize>, file: String) -> usize {
        self.files.push(file);
        self.nodes.push(Node {
            file: self.files.len() - 1,
            parent,
            ..Node::default()
        });
        self.nodes.len() - 1
    }

    /// Reads a file into `node`; files of its children are in `below`.
    fn parse(&mut self, node: usize, sources: &Path, below: &Path, file: &str) {
        let text = std::fs::read_to_string(sources.join(file)).unwrap();
        let tokens = tokens(&text);
        self.items(node, &tokens, sources, below);
    }

    fn items(&mut self, node: usize, tokens: &[String], sources: &Path, below: &Path) {
        let mut at = 0;
        while at < tokens.len() {
            let word = |ahead: usize| tokens.get(at + ahead).map_or("", String::as_str);
            match word(0) {
                "#" if word(1) == "[" => {
                    let end = closing(tokens, at + 1);
                    let attribute = &tokens[at..end];
                    let has = |name: &str| attribute.iter().any(|token| token == name);
                    at = end;
                    if word_is(attribute.get(2), "cfg") && has("test") && !has("not") {
                        at = after_item(tokens, at);
                    }
                    continue;
                }
                "mod" if word(2) == ";" => {
                    self.child(node, word(1).to_owned(), sources, below);
                    at += 3;
                    continue;
                }
                "mod" if word(2) == "{" => {
                    let end = closing(tokens, at + 2);
                    let file = self.nodes[node].file;
                    self.nodes.push(Node {
                        file,
                        parent: Some(node),
                        ..Node::default()
                    });
                    let inner = self.nodes.len() - 1;
                    self.nodes[node].children.insert(word(1).to_owned(), inner);
                    self.items(inner, &tokens[at + 3..end - 1], sources, &below.join(word(1)));
                    at = end;
                    continue;
                }
                "use" => {
                    let end = (at..tokens.len()).find(|at| tokens[*at] == ";");
                    let end = end.unwrap_or(tokens.len());
                    self.used(node, &[], &tokens[at + 1..end]);
                    at = end + 1;
                    continue;
                }
                "fn" | "struct" | "enum" | "union" | "trait" | "type" | "const" | "static" => {
                    self.nodes[node].defined.insert(word(1).to_owned());
                }
                "macro_rules" if word(1) == "!" => {
                    let file = self.nodes[node].file;
                    self.macros.insert(word(2).to_owned(), file);
                }
                _ if is_name(word(0)) && word(1) == "::" => {
                    let before = at.checked_sub(1).map(|before| tokens[before].as_str());
                    let mut path = vec![word(0).to_owned()];
                    while tokens.get(at + 1).is_some_and(|token| token == "::")
                        && tokens.get(at + 2).is_some_and(|token| is_name(token))
                    {
                        path.push(tokens[at + 2].clone());
                        at += 2;
                    }
                    if before != Some("::") {
                        self.nodes[node].paths.push(path);
                    }
                }
                _ => {}
            }
            at += 1;
        }
    }

    /// The file of a child module, if it is there: what has another path is for other features.
    fn child(&mut self, node: usize, name: String, sources: &Path, below: &Path) {
        let candidates = [below.join(format!("{name}.rs")), below.join(&name).join("mod.rs")];
        let Some(path) = candidates.into_iter().find(|path| path.is_file()) else {
            return;
        };
        let file = path.strip_prefix(sources).unwrap().to_str().unwrap().to_owned();
        let child = self.add(Some(node), file.clone());
        self.nodes[node].children.insert(name.clone(), child);
        let below: PathBuf = below.join(name);
        self.parse(child, sources, &below, &file);
    }

    /// Takes note of a tree of imports.
    fn used(&mut self, node: usize, before: &[String], tree: &[String]) {
        let mut path = before.to_vec();
        let mut at = 0;
        while at < tree.len() {
            match tree[at].as_str() {
                "{" => {
                    let end = closing(tree, at);
                    for branch in branches(&tree[at + 1..end - 1]) {
                        self.used(node, &path, branch);
                    }
                    return;
                }
                "*" => {
                    self.nodes[node].globs.push(path.clone());
                    self.nodes[node].paths.push(path);
                    return;
                }
                "as" => {
                    let name = tree.get(at + 1).cloned().unwrap_or_default();
                    return self.named(node, name, path);
                }
                "self" if !path.is_empty() => {}
                name if is_name(name) => path.push(name.to_owned()),
                _ => {}
            }
            at += 1;
        }
        let name = path.last().cloned().unwrap_or_default();
        self.named(node, name, path);
    }

    fn named(&mut self, node: usize, name: String, path: Names) {
        self.nodes[node].paths.push(path.clone());
        self.nodes[node].uses.insert(name, path);
    }

    fn root(&self, mut node: usize) -> usize {
        while let Some(parent) = self.nodes[node].parent {
            node = parent;
        }
        node
    }

    /// Target of a path in `node`; `None`: another crate, or no path of modules.
    fn resolve(&self, node: usize, path: &[String], left: usize) -> Option<PathTarget> {
        let left = left.checked_sub(1)?;
        let (first, rest) = path.split_first()?;
        let here = &self.nodes[node];
        match first.as_str() {
            "crate" => self.walk(self.root(node), rest, left),
            "self" => self.walk(node, rest, left),
            "super" => self.walk(here.parent?, rest, left),
            name => {
                if let Some(child) = here.children.get(name) {
                    return self.walk(*child, rest, left);
                }
                match self.resolve(node, here.uses.get(name).filter(|path| **path != [name])?, left)? {
                    PathTarget::Module(module) => self.walk(module, rest, left),
                    item @ PathTarget::Item(_) => Some(item),
                }
            }
        }
    }

    /// Target of the rest of a path, from a module on.
    fn walk(&self, node: usize, path: &[String], left: usize) -> Option<PathTarget> {
        let here = &self.nodes[node];
        let Some((first, rest)) = path.split_first() else {
            return Some(PathTarget::Module(node));
        };
        if first == "super" || here.children.contains_key(first) {
            return self.resolve(node, path, left);
        }
        if here.defined.contains(first) {
            return Some(PathTarget::Item(here.file));
        }
        if let Some(used) = here.uses.get(first) {
            return match self.resolve(node, used, left) {
                Some(PathTarget::Module(module)) => self.walk(module, rest, left),
                Some(item) => Some(item),
                // Another crate's: this file passes it on.
                None => Some(PathTarget::Item(here.file)),
            };
        }
        for glob in &here.globs {
            if let Some(PathTarget::Module(module)) = self.resolve(node, glob, left)
                && self.nodes[module].defined.contains(first)
            {
                return Some(PathTarget::Item(self.nodes[module].file));
            }
        }
        let place = self.macros.get(first).copied();
        Some(PathTarget::Item(place.unwrap_or(here.file)))
    }

    fn imports(&self) -> Vec<BTreeSet<usize>> {
        let mut imports = vec![BTreeSet::new(); self.files.len()];
        for (number, node) in self.nodes.iter().enumerate() {
            for path in &node.paths {
                let to = match self.resolve(number, path, MAX_REEXPORTS) {
                    Some(PathTarget::Item(file)) => file,
                    // A name from a module that was imported by its own name is a path itself.
                    Some(PathTarget::Module(module)) if node.globs.contains(path) => self.nodes[module].file,
                    _ => continue,
                };
                if to != node.file {
                    imports[node.file].insert(to);
                }
            }
        }
        imports
    }
}

fn word_is(token: Option<&String>, word: &str) -> bool {
    token.is_some_and(|token| token == word)
}

fn is_name(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// The place behind what closes the bracket at `open`.
fn closing(tokens: &[String], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

/// The place behind the item that begins at `at`, with its attributes.
fn after_item(tokens: &[String], mut at: usize) -> usize {
    while let Some(token) = tokens.get(at) {
        match token.as_str() {
            ";" => return at + 1,
            "{" => return closing(tokens, at),
            "(" | "[" => at = closing(tokens, at),
            _ => at += 1,
        }
    }
    at
}

/// The parts between the commas of `{...}`.
fn branches(tokens: &[String]) -> Vec<&[String]> {
    let (mut parts, mut from, mut at) = (Vec::new(), 0, 0);
    while at < tokens.len() {
        match tokens[at].as_str() {
            "{" => at = closing(tokens, at),
            "," => {
                parts.push(&tokens[from..at]);
                at += 1;
                from = at;
            }
            _ => at += 1,
        }
    }
    parts.push(&tokens[from..]);
    parts.retain(|part| !part.is_empty());
    parts
}

/// Words and signs, without comments and without quoted text.
fn tokens(text: &str) -> Vec<String> {
    let text: Vec<char> = text.chars().collect();
    let next = |at: usize| text.get(at).copied().unwrap_or('\0');
    let (mut tokens, mut at) = (Vec::new(), 0);
    while at < text.len() {
        let letter = text[at];
        if letter == '/' && next(at + 1) == '/' {
            while at < text.len() && text[at] != '\n' {
                at += 1;
            }
        } else if letter == '/' && next(at + 1) == '*' {
            while at < text.len() && !(text[at] == '*' && next(at + 1) == '/') {
                at += 1;
            }
            at += 2;
        } else if letter.is_alphanumeric() || letter == '_' {
            let from = at;
            while next(at).is_alphanumeric() || next(at) == '_' {
                at += 1;
            }
            let word: String = text[from..at].iter().collect();
            let raw = ["r", "br", "cr"].contains(&word.as_str()) && ['"', '#'].contains(&next(at));
            if raw {
                at = after_raw(&text, at);
            } else {
                tokens.push(word);
            }
        } else if letter == '"' {
            at += 1;
            while at < text.len() && text[at] != '"' {
                at += if text[at] == '\\' { 2 } else { 1 };
            }
            at += 1;
        } else if letter == '\'' {
            // A character, or a lifetime, which is left out by its sign alone.
            at += match (next(at + 1), next(at + 2)) {
                ('\\', _) => {
                    // The sign behind the backslash can be a quote itself.
                    let end = (at + 3..text.len()).find(|end| text[*end] == '\'');
                    end.unwrap_or(text.len()) + 1 - at
                }
                (_, '\'') => 3,
                _ => 1,
            };
        } else if letter == ':' && next(at + 1) == ':' {
            tokens.push("::".to_owned());
            at += 2;
        } else {
            if !letter.is_whitespace() {
                tokens.push(letter.to_string());
            }
            at += 1;
        }
    }
    tokens
}

/// The place behind a raw string whose signs begin at `at`.
fn after_raw(text: &[char], at: usize) -> usize {
    let signs = text[at..].iter().take_while(|letter| **letter == '#').count();
    if text.get(at + signs) != Some(&'"') {
        // A raw name, such as r#type.
        return at + signs;
    }
    let mut at = at + signs + 1;
    while at < text.len() {
        let closes = text[at] == '"'
            && text[at + 1..]
                .iter()
                .take(signs)
                .filter(|letter| **letter == '#')
                .count()
                == signs;
        at += 1;
        if closes {
            return at + signs;
        }
    }
    at
}

#[test]
fn imports_are_read_as_the_compiler_reads_them() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join("src").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(
        "lib.rs",
        "mod a;\nmod b;\npub use b::inner::Deep;\nmod c; // mod d;\n",
    );
    // Deep is defined in b/inner.rs; a string and a comment are no imports.
    write(
        "a.rs",
        "use crate::{Deep, c};\nfn f() -> &'static str { c::g('\"'); /* crate::b::Top */ \"crate::b::Top\" }\n",
    );
    write(
        "b.rs",
        "pub mod inner;\npub struct Top;\n#[cfg(test)]\nmod tests { use crate::a::f; }\n",
    );
    write("b/inner.rs", "use super::Top;\npub struct Deep(Top);\n");
    write(
        "c.rs",
        "pub fn g(_: char) { let _ = std::mem::size_of::<crate::b::Top>(); crate::a::f(); }\n",
    );
    let modules = Modules::read(dir.path());
    let imports: Vec<_> = modules.imports().collect();
    assert_eq!(
        imports,
        [
            ("lib.rs", "b/inner.rs"),
            ("a.rs", "b/inner.rs"),
            ("a.rs", "c.rs"),
            ("b/inner.rs", "b.rs"),
            ("c.rs", "a.rs"),
            ("c.rs", "b.rs"),
        ]
    );
    assert_eq!(modules.circles(), [BTreeSet::from(["a.rs", "c.rs"])]);
}
