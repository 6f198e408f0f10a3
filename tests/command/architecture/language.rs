//! Language of comments and constants: the rules of CONTRIBUTING that a program can verify. A comment is understood alone, when an editor
//! shows it, and says first what it is about.

use super::names::sources;

/// Words with which no comment starts: the noun comes first.
const BEGINNINGS: [&str; 7] = [
    "What", "Whether", "The same", "Of", "So many", "So much", "So long",
];

/// Words in names of constants that do not say what is limited.
const LIMITS: [&str; 3] = ["MOST", "LEAST", "TOGETHER"];

/// Words that mean something else in a folder, and the word for it there.
const WORDS: [(&str, &str, &str); 6] = [
    ("analyzer/flow/", "part of a run", "shard of a run"),
    ("analyzer/flow/", "part of the run", "shard of the run"),
    ("analyzer/flow/", "parts of a run", "shards of a run"),
    ("analyzer/pipeline/", "part of a run", "shard of a run"),
    ("analyzer/pipeline/", "part of the run", "shard of the run"),
    ("analyzer/flow/", "requested a moment ago", "NAK that was sent"),
];

/// The sign of a line that is a comment, and its text.
fn comment(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start();
    let sign = ["///", "//!", "//"]
        .into_iter()
        .find(|sign| line.starts_with(sign))?;
    Some((sign, line[sign.len()..].trim()))
}

/// The comments of a file, each with the number of its first line. Paragraphs are comments of their own.
fn comments(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut sign_before = "";
    for (number, line) in text.lines().enumerate() {
        let Some((sign, words)) = comment(line).filter(|(_, words)| !words.is_empty()) else {
            sign_before = "";
            continue;
        };
        if sign == sign_before {
            let last = &mut found.last_mut().expect("a comment was found").1;
            last.push(' ');
            last.push_str(words);
        } else {
            found.push((number + 1, words.to_owned()));
        }
        sign_before = sign;
    }
    found
}

/// True if a text starts with these words.
fn starts_with(text: &str, words: &str) -> bool {
    text.strip_prefix(words)
        .is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}

/// The rule that a comment of a file breaks.
fn broken(file: &str, text: &str) -> Option<String> {
    if let Some(words) = BEGINNINGS.iter().find(|words| starts_with(text, words)) {
        return Some(format!("begins with '{words}'"));
    }
    if text.starts_with("...") || text.ends_with(", ...") && !text.ends_with("`, ...") {
        return Some("is half of a sentence".to_owned());
    }
    let word = WORDS
        .iter()
        .find(|(folder, word, _)| file.starts_with(folder) && text.contains(word));
    word.map(|(_, word, instead)| format!("has '{word}', which is a {instead}"))
}

/// The name of the constant that a line defines.
fn constant(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let rest = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.trim_start(),
        None => line,
    };
    let rest = rest
        .strip_prefix("const ")
        .or_else(|| rest.strip_prefix("static "))?;
    Some(rest.split_once(':')?.0)
}

#[test]
fn comments_and_constants_say_what_they_are_about() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (file, text) in sources() {
        for (line, comment) in comments(&text) {
            count += 1;
            if let Some(rule) = broken(&file, &comment) {
                wrong.push(format!("{file}:{line}: {rule}: {comment}"));
            }
        }
        for (number, line) in text.lines().enumerate() {
            let name = constant(line).unwrap_or_default();
            if name.split('_').any(|word| LIMITS.contains(&word)) {
                wrong.push(format!(
                    "{file}:{}: {name} does not say what is limited",
                    number + 1
                ));
            }
        }
    }
    assert!(count > 10_000, "{count} comments were read");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn sentences_are_read_over_lines() {
    let text = "/// A sentence of\n/// two lines.\n///\n/// What it does.\nconst LEAST_SIZE: u8 = 1;\n// Office hours, ...\n";
    let read = comments(text);
    let texts: Vec<&str> = read.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(
        texts,
        ["A sentence of two lines.", "What it does.", "Office hours, ..."]
    );
    let rules: Vec<bool> = texts.iter().map(|text| broken("", text).is_some()).collect();
    assert_eq!(rules, [false, true, true]);
    assert_eq!(
        broken("", "Office hours."),
        None,
        "a word that begins as another does"
    );
    assert_eq!(broken("", "Names: `h1`, ..."), None, "a list");
    assert_eq!(text.lines().find_map(constant), Some("LEAST_SIZE"));
    assert!(broken("analyzer/flow/src/a.rs", "Every part of a run.").is_some());
}
