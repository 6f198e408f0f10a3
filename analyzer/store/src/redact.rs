//! Texts of stores without secrets: signatures in the queries of URLs, headers, and values of the environment that are secret.

use std::error::Error;

use roce_model::text::clean;

/// Longest text of a cause, in characters.
const MAX_TEXT: usize = 300;
/// Causes of an error that are looked at.
const MAX_CAUSES: usize = 8;
/// Shortest value of the environment that is searched for: a shorter one occurs in any text.
const MIN_SECRET: usize = 6;

/// Words in the names of variables whose values are secret, in capitals.
const SECRET_NAMES: [&str; 5] = ["SECRET", "TOKEN", "PASSWORD", "SAS", "KEY"];
/// First words of the variables that object_store reads.
const FAMILIES: [&str; 3] = ["AWS_", "AZURE_", "GOOGLE_"];

/// The texts of an error and its causes, without secrets, on one line.
pub fn text_of(error: &dyn Error) -> String {
    text_with(error, &secrets())
}

/// A URL without user and query.
pub fn url(text: &str) -> String {
    let text = text.split(['?', '#']).next().unwrap_or_default();
    let text = match text.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest
                .split_once('/')
                .map_or((rest, None), |(host, path)| (host, Some(path)));
            let host = host.rsplit('@').next().unwrap_or_default();
            path.map_or_else(
                || format!("{scheme}://{host}"),
                |path| format!("{scheme}://{host}/{path}"),
            )
        }
        None => text.to_owned(),
    };
    clean(&text).into_owned()
}

fn text_with(error: &dyn Error, secrets: &[String]) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut cause = Some(error);
    while let Some(error) = cause.filter(|_| texts.len() < MAX_CAUSES) {
        let text = one(&error.to_string(), secrets);
        // Most errors repeat the text of their cause.
        if !texts.iter().any(|known| known.contains(&text)) {
            texts.push(text);
        }
        cause = error.source();
    }
    let text = texts.join(": ");
    let short: String = text.chars().take(MAX_TEXT).collect();
    if short.len() < text.len() {
        return format!("{short}...");
    }
    short
}

fn one(text: &str, secrets: &[String]) -> String {
    let mut text = text.to_owned();
    for secret in secrets {
        text = text.replace(secret, "***");
    }
    let words = text.split_whitespace().map(|word| {
        if word.contains("://") {
            let end = word.trim_end_matches([')', ',', ':', ';', '"', '\'', '.']);
            let (kept, rest) = (url(end), word.get(end.len()..).unwrap_or_default());
            return format!("{kept}{rest}");
        }
        word.to_owned()
    });
    let words: Vec<String> = words.collect();
    clean(&words.join(" ")).into_owned()
}

/// Values of the environment that no text may have, the longest first.
fn secrets() -> Vec<String> {
    let variables = std::env::vars_os().filter_map(|(name, value)| {
        let name = name.to_str()?.to_ascii_uppercase();
        let is_secret = FAMILIES.iter().any(|family| name.starts_with(family))
            && SECRET_NAMES.iter().any(|word| name.contains(word));
        let value = value.into_string().ok()?;
        (is_secret && value.len() >= MIN_SECRET).then_some(value)
    });
    let mut values: Vec<String> = variables.collect();
    values.sort_by_key(|value| std::cmp::Reverse(value.len()));
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Plain(String, #[source] Option<Box<Plain>>);

    #[test]
    fn signatures_and_secrets_are_in_no_text() {
        let cause = Plain(
            "refused (https://me:pw@host/c/k?sv=1&sig=CANARY1), key was CANARY2-secret".to_owned(),
            None,
        );
        let error = Plain("Generic store error".to_owned(), Some(Box::new(cause)));
        let text = text_with(&error, &["CANARY2-secret".to_owned()]);
        assert_eq!(
            text,
            "Generic store error: refused (https://host/c/k), key was ***"
        );
        assert_eq!(url("s3://user:pw@b/k?x=CANARY"), "s3://b/k");
    }

    #[test]
    fn texts_are_short_and_on_one_line() {
        let error = Plain(format!("a\nb\u{1b}[2J {}", "x ".repeat(1_000)), None);
        let text = text_with(&error, &[]);
        assert!(
            text.chars().count() <= MAX_TEXT + 3 && text.starts_with("a b"),
            "{text}"
        );
        assert!(!text.contains(['\n', '\u{1b}']));
    }

    #[test]
    fn a_cause_that_is_repeated_is_said_once() {
        let cause = Plain("timed out".to_owned(), None);
        let error = Plain("request failed: timed out".to_owned(), Some(Box::new(cause)));
        assert_eq!(text_with(&error, &[]), "request failed: timed out");
    }
}
