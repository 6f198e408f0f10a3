//! The documents are true: what is in backticks exists, commands are understood, examples give the output below them, sentences are
//! short, links lead somewhere.
//!
//! A page is any Markdown file of the project. A code block marked `run` (```` ```console run ````) is run in a folder where `captures`
//! is that of the project: lines behind `$ ` are commands for the shell, the lines below are their output at 80 columns, and a line
//! `[...]` is for any number of lines. With `UPDATE_EXAMPLES=1` the real output is written into the page, and the test fails once.

mod markdown;
mod shell;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

use crate::architecture::ARROWS;
use crate::captures::root;
use markdown::{Block, Page};

/// Pages whose links are checked and nothing else: a generated one, and one that describes earlier states of the project.
const LINKS_ALONE: [&str; 2] = ["docs/schema.md", "CHANGELOG.md"];

/// Words of a sentence.
const MAX_WORDS: usize = 40;

/// All pages, by their path from the top.
fn pages() -> Vec<Page> {
    let mut found = Vec::new();
    look(&root(), Path::new(""), &mut found);
    found.sort();
    assert!(found.len() > 10, "the pages are found: {found:?}");
    found.iter().map(|path| Page::read(&root(), path)).collect()
}

/// The pages whose text is checked.
fn texts() -> Vec<Page> {
    let mut pages = pages();
    pages.retain(|page| LINKS_ALONE.iter().all(|name| page.path != Path::new(name)));
    pages
}

fn look(top: &Path, folder: &Path, found: &mut Vec<PathBuf>) {
    let all = top.join(folder);
    // Build results: cargo marks its target folder so.
    if all.join("CACHEDIR.TAG").exists() {
        return;
    }
    for entry in fs::read_dir(&all).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let path = folder.join(&name);
        if entry.file_type().unwrap().is_dir() {
            if !name.starts_with('.') && name != "target" && name != "node_modules" {
                look(top, &path, found);
            }
        } else if path.extension().is_some_and(|ending| ending == "md") {
            found.push(path);
        }
    }
}

#[track_caller]
fn none(what: &str, wrong: &[String]) {
    assert!(wrong.is_empty(), "{what}:\n{}", wrong.join("\n"));
}

/// Endings of sources: such a name in backticks is a file of the project.
const SOURCES: [&str; 3] = ["rs", "py", "mjs"];

/// Endings that make a name with a folder before it a file of the project.
const FILES: [&str; 9] = ["rs", "py", "mjs", "js", "css", "sh", "md", "toml", "tsv"];

/// The names at the top of the project.
fn top_names() -> BTreeSet<String> {
    fs::read_dir(root())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "target" && name != ".git")
        .collect()
}

/// True if text in backticks names a file or folder of the project.
fn is_path(text: &str, top: &BTreeSet<String>) -> bool {
    let path = Regex::new(r"^[A-Za-z0-9_.][A-Za-z0-9_./*?-]*$").unwrap();
    if !path.is_match(text) {
        return false;
    }
    let ending = Path::new(text)
        .extension()
        .and_then(|ending| ending.to_str())
        .unwrap_or("");
    let first = text.split('/').next().unwrap_or(text);
    let relative = matches!(first, "." | "..");
    if text.contains('/') {
        top.contains(first) || relative || FILES.contains(&ending)
    } else {
        SOURCES.contains(&ending)
    }
}

/// True if a path exists below a folder; `*`, `?` and words in capitals (`NAME.toml`) match any name.
fn exists(folder: &Path, path: &str) -> bool {
    let Some((first, rest)) = path.trim_end_matches('/').split_once('/') else {
        return names(folder, path.trim_end_matches('/')).next().is_some();
    };
    names(folder, first).any(|found| exists(&found, rest))
}

fn names(folder: &Path, pattern: &str) -> impl Iterator<Item = PathBuf> {
    let whole = folder.join(pattern);
    if whole.exists() {
        return vec![whole].into_iter();
    }
    let mut expression = regex::escape(pattern).replace(r"\*", ".*").replace(r"\?", ".");
    for placeholder in ["NAME", "TAP", "FAMILY"] {
        expression = expression.replace(placeholder, ".*");
    }
    let expression = Regex::new(&format!("^{expression}$")).unwrap();
    let found: Vec<PathBuf> = fs::read_dir(folder).map_or_else(
        |_| Vec::new(),
        |entries| {
            entries
                .map(|entry| entry.unwrap())
                .filter(|entry| expression.is_match(&entry.file_name().to_string_lossy()))
                .map(|entry| entry.path())
                .collect()
        },
    );
    found.into_iter()
}

#[test]
fn paths_in_backticks_exist() {
    let top = top_names();
    let mut wrong = Vec::new();
    for page in texts() {
        let beside = root().join(page.path.parent().unwrap());
        for (line, code) in &page.codes {
            if is_path(code, &top) && !exists(&root(), code) && !exists(&beside, code) {
                wrong.push(format!("{}:{line}: `{code}`", page.path.display()));
            }
        }
    }
    none("these paths do not exist", &wrong);
}

#[test]
fn paths_are_told_from_other_code() {
    let top = top_names();
    for path in [
        "tests/command/main.rs",
        "main.rs",
        "captures/*.pcap",
        "../tests",
        ".ci/run",
    ] {
        assert!(is_path(path, &top), "{path}");
    }
    for other in [
        "--flow",
        "a/b",
        "/sys/fs/cgroup",
        "run.json",
        "DIR/run.json",
        "cargo test",
    ] {
        assert!(!is_path(other, &top), "{other}");
    }
    assert!(exists(&root(), "tests/data/golden/NAME.txt"));
    assert!(!exists(&root(), "tests/data/golden/NAME.toml"));
}

#[test]
#[cfg_attr(
    not(all(feature = "parquet", feature = "object-store", feature = "live")),
    ignore = "some commands are not in this build"
)]
fn commands_are_understood() {
    let mut wrong = Vec::new();
    let mut understood = 0;
    for page in texts() {
        // In text, shorter ones only name a command.
        let inline = page.codes.iter().filter(|(_, code)| {
            code.starts_with("roce-analyze ") && code.split(' ').count() > 2 && !code.contains("...")
        });
        let shown = page.blocks.iter().flat_map(Block::commands);
        for (line, command) in inline.cloned().chain(shown) {
            let Some(arguments) = shell::arguments(&command) else {
                continue;
            };
            match shell::parse(&arguments) {
                Ok(()) => understood += 1,
                Err(error) => wrong.push(format!("{}:{line}: {command}\n{error}", page.path.display())),
            }
        }
    }
    none("these commands are refused", &wrong);
    assert!(understood > 20, "commands are found: {understood}");
}

#[test]
fn examples_give_what_they_show() {
    let mut wrong = Vec::new();
    let mut ran = 0;
    for page in texts() {
        let folder = shell::folder();
        for block in page.blocks.iter().filter(|block| block.runs()) {
            for (line, command, expected) in block.session() {
                ran += 1;
                let output = shell::output(folder.path(), &command);
                if shell::matches(&expected, &output) {
                    continue;
                }
                if std::env::var_os("UPDATE_EXAMPLES").is_some() {
                    update(&page.path, &command, &expected, &output);
                }
                wrong.push(format!("{}:{line}: $ {command}\n{output}", page.path.display()));
            }
        }
    }
    none("these commands give other output, which follows them", &wrong);
    assert!(ran > 3, "examples are found: {ran}");
}

/// Writes output into its page, but where the page leaves some of it out: after an intended change, as with snapshots.
fn update(page: &Path, command: &str, expected: &str, output: &str) {
    if expected.lines().any(|line| line == "[...]") {
        return;
    }
    let path = root().join(page);
    let text = fs::read_to_string(&path).unwrap();
    let prompt = format!("$ {command}\n");
    let lines: Vec<&str> = output.lines().map(str::trim_end).collect();
    let new = format!("{prompt}{}\n", lines.join("\n"));
    let text = text.replacen(&(prompt + expected), &new, 1);
    fs::write(&path, text).unwrap();
}

#[test]
fn sentences_are_short() {
    let mut wrong = Vec::new();
    let mut all = Vec::new();
    for page in texts() {
        for (line, sentence) in page.sentences() {
            let words = sentence.split_whitespace().count();
            if words > MAX_WORDS {
                wrong.push(format!(
                    "{}:{line}: {words} words: {sentence}",
                    page.path.display()
                ));
            }
            all.push((page.path.clone(), words));
        }
    }
    // `cargo test sentences_are_short -- --nocapture` prints them.
    for page in texts().iter().map(|page| &page.path) {
        let words = all.iter().filter(|(path, _)| path == page);
        spread(
            &page.display().to_string(),
            words.map(|(_, words)| *words).collect(),
        );
    }
    let front = |path: &Path| {
        path.starts_with("docs") || path == Path::new("README.md") || path == Path::new("ARCHITECTURE.md")
    };
    let words = all.iter().filter(|(path, _)| front(path));
    spread(
        "README, ARCHITECTURE, docs",
        words.map(|(_, words)| *words).collect(),
    );
    none("these sentences are too long", &wrong);
}

/// Prints how long sentences are.
#[expect(clippy::print_stdout, reason = "a measurement, printed on request")]
fn spread(what: &str, mut words: Vec<usize>) {
    words.sort_unstable();
    let at = |share: usize| words.get(words.len() * share / 100).copied().unwrap_or(0);
    println!(
        "{what}: {} sentences, median {}, 90th percentile {}, longest {} words",
        words.len(),
        at(50),
        at(90),
        words.last().copied().unwrap_or(0)
    );
}

#[test]
fn links_lead_somewhere() {
    let pages = pages();
    let mut wrong = Vec::new();
    for page in &pages {
        for (line, link) in &page.links {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() {
                page.path.clone()
            } else {
                markdown::join(page.path.parent().unwrap(), path)
            };
            let anchored = || {
                let page = pages.iter().find(|page| page.path == target);
                page.is_some_and(|page| page.anchors.contains(anchor))
            };
            if !root().join(&target).exists() || !anchor.is_empty() && !anchored() {
                wrong.push(format!("{}:{line}: {link}", page.path.display()));
            }
        }
    }
    none("these links lead nowhere", &wrong);
}

#[test]
fn the_crates_of_the_architecture_page_are_those_that_are_held() {
    let page = Page::read(&root(), Path::new("ARCHITECTURE.md"));
    let mut above = BTreeSet::new();
    for row in page.rows("crates") {
        for import in row[2].split(", ").filter(|name| *name != "-") {
            assert!(above.contains(import), "{}: {import} is not above it", row[0]);
        }
        above.insert(row[0].rsplit('/').next().unwrap().trim_matches('`').to_owned());
    }
    let shown: BTreeSet<(String, BTreeSet<String>)> = page
        .rows("crates")
        .into_iter()
        .map(|row| {
            let imports = row[2].split(", ").filter(|name| *name != "-");
            (
                row[1].clone(),
                imports.map(|name| format!("roce-{name}")).collect(),
            )
        })
        // A workspace of its own.
        .filter(|(name, _)| name != "roce-ebpf")
        .collect();
    let held: BTreeSet<(String, BTreeSet<String>)> = ARROWS
        .iter()
        .map(|(name, imports)| {
            // Its package has the command's name.
            let short = |name: &&str| name.replace("roce-analyze", "roce-cli");
            ((*name).to_owned(), imports.iter().map(short).collect())
        })
        .collect();
    assert_eq!(shown, held);
}

#[test]
fn the_page_of_findings_lists_every_one() {
    let page = Page::read(&root(), Path::new("docs/findings.md"));
    let shown: BTreeSet<Vec<String>> = page
        .rows("what-it-finds")
        .into_iter()
        .map(|row| {
            row[row.len() - 3..]
                .iter()
                .map(|cell| cell.trim().to_owned())
                .collect()
        })
        .collect();
    let list = shell::output(&root(), "COLUMNS=200 roce-analyze explain list");
    let line = Regex::new(r"^(\S+)\s+(.*\S)\s+\((\w+)\)$").unwrap();
    // Tables and words follow the findings.
    let (list, _) = list.split_once("\n\n").unwrap();
    // A title that is too long for the line goes on in the next one.
    let list = Regex::new(r"\n\s+").unwrap().replace_all(list.trim_end(), " ");
    let rules: BTreeSet<Vec<String>> = list
        .lines()
        .map(|text| {
            let found = line.captures(text).unwrap_or_else(|| panic!("{text}"));
            (1..=3).map(|group| found[group].to_owned()).collect()
        })
        .collect();
    assert!(rules.len() > 15, "{rules:?}");
    let missing: Vec<_> = rules.difference(&shown).collect();
    let unknown: Vec<_> = shown.difference(&rules).collect();
    assert!(
        missing.is_empty() && unknown.is_empty(),
        "in `explain list` alone: {missing:?}\non the page alone: {unknown:?}"
    );
}

/// A number of a constant as the sources write it: `16_384`, `1 << 14`.
fn number(text: &str) -> u64 {
    let one = |text: &str| text.trim().replace('_', "").parse::<u64>().unwrap();
    match text.split_once("<<") {
        Some((value, bits)) => one(value) << one(bits),
        None => one(text),
    }
}

#[test]
fn the_bounds_of_the_architecture_page_are_constants_of_the_sources() {
    let page = Page::read(&root(), Path::new("ARCHITECTURE.md"));
    let place = Regex::new(r"^(MAX_\w+) in (\S+\.rs)$").unwrap();
    let mut held = 0;
    for row in page.rows("bounds") {
        let [.., limit, _, constant] = row else {
            panic!("{row:?}");
        };
        // The first one is an option.
        let constant = constant.replace('`', "");
        let Some(found) = place.captures(&constant) else {
            continue;
        };
        let source = std::fs::read_to_string(root().join(&found[2])).unwrap();
        let line = Regex::new(&format!(r"const {}: \w+ = ([\d_ <]+);", &found[1])).unwrap();
        let value = line.captures(&source).unwrap_or_else(|| panic!("{constant}"));
        assert_eq!(number(&value[1]), number(&limit.replace(',', "")), "{constant}");
        held += 1;
    }
    assert_eq!(held, 12);
}
