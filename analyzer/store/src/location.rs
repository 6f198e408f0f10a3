//! URLs of objects: `s3://BUCKET/KEY`, `gs://BUCKET/KEY`, `az://CONTAINER/KEY`, and `file:///PATH` for local files.
//!
//! A URL has no user, password, query or fragment: secrets do not belong on a command line.

use std::fmt;

use crate::error::Error;

/// Longest URL in bytes. A key has at most 1,024 bytes (S3, Google and Azure alike), a bucket 63.
const MAX_URL_BYTES: usize = 1_200;

/// A kind of store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Scheme {
    /// Amazon S3, and what speaks its protocol.
    S3,
    /// Google Cloud Storage.
    Google,
    /// Azure Blob Storage; the account comes from the environment.
    Azure,
}

impl Scheme {
    const ALL: [(&'static str, Self); 3] = [
        ("s3://", Self::S3),
        ("gs://", Self::Google),
        ("az://", Self::Azure),
    ];

    fn prefix(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(_, scheme)| *scheme == self)
            .map_or("", |(prefix, _)| prefix)
    }
}

/// The place of an object, or of all objects whose keys begin with it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Location {
    scheme: Scheme,
    bucket: String,
    key: String,
}

impl Location {
    /// True if the text begins like the URL of a store.
    pub fn is_url(text: &str) -> bool {
        Scheme::ALL.iter().any(|(prefix, _)| text.starts_with(prefix))
    }

    /// Parses a URL.
    ///
    /// # Errors
    /// It names no bucket, or has what no URL here can have.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let wrong = |reason: &'static str| Error::Url {
            url: crate::redact::url(text),
            reason,
        };
        if text.len() > MAX_URL_BYTES {
            return Err(Error::Url {
                url: format!("{}...", text.chars().take(32).collect::<String>()),
                reason: "longer than 1,200 bytes",
            });
        }
        let found = Scheme::ALL
            .iter()
            .find_map(|(prefix, scheme)| Some((*scheme, text.strip_prefix(prefix)?)));
        let Some((scheme, rest)) = found else {
            return Err(wrong("expected s3://, gs:// or az://"));
        };
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.contains('@') || text.contains(['?', '#']) {
            return Err(wrong(
                "a user, a query or a fragment is not allowed: credentials come from the environment",
            ));
        }
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
        if bucket.is_empty() || !bucket.bytes().all(is_name) {
            return Err(wrong(
                "expected the name of a bucket or container behind the scheme",
            ));
        }
        let key = key.trim_end_matches('/');
        if key.chars().any(char::is_control) {
            return Err(wrong("a control character in the key"));
        }
        let is_odd = |part: &str| part.is_empty() || part == "." || part == "..";
        if !key.is_empty() && key.split('/').any(is_odd) {
            return Err(wrong("an empty part, '.' or '..' in the key"));
        }
        Ok(Self {
            scheme,
            bucket: bucket.to_owned(),
            key: key.to_owned(),
        })
    }

    /// The place of `relative` below this one.
    ///
    /// # Errors
    /// As those of [`parse`](Self::parse).
    pub fn join(&self, relative: &str) -> Result<Self, Error> {
        Self::parse(&format!("{self}/{relative}"))
    }

    /// True if `other` is this place, or below it.
    pub fn contains(&self, other: &Self) -> bool {
        let same = self.scheme == other.scheme && self.bucket == other.bucket;
        let below = other.key.strip_prefix(&self.key);
        same && below.is_some_and(|rest| self.key.is_empty() || rest.is_empty() || rest.starts_with('/'))
    }

    /// The kind of store.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The bucket or container.
    pub fn bucket(&self) -> &str {
        &self.bucket
    }

    /// The key; empty for the whole bucket.
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.scheme.prefix(), self.bucket)?;
        if self.key.is_empty() {
            return Ok(());
        }
        write!(f, "/{}", self.key)
    }
}

/// The path of a `file://` URL: an absolute one of this machine, byte by byte as it stands there.
pub fn local_path(text: &str) -> Option<&str> {
    text.strip_prefix("file://").filter(|path| path.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_a_bucket_and_a_key() {
        for (text, scheme, bucket, key) in [
            ("s3://b/a/b.pcap.zst", Scheme::S3, "b", "a/b.pcap.zst"),
            ("gs://my.bucket_1/x", Scheme::Google, "my.bucket_1", "x"),
            (
                "az://c/date=2026-01-01/x y",
                Scheme::Azure,
                "c",
                "date=2026-01-01/x y",
            ),
            ("s3://b", Scheme::S3, "b", ""),
            ("s3://b/ds/", Scheme::S3, "b", "ds"),
        ] {
            let place = Location::parse(text).unwrap();
            assert_eq!(
                (place.scheme(), place.bucket(), place.key()),
                (scheme, bucket, key),
                "{text}"
            );
            assert_eq!(place.to_string(), text.trim_end_matches('/'));
        }
    }

    #[test]
    fn urls_have_no_secrets_and_lead_nowhere_else() {
        for text in [
            "http://b/k",
            "s3://",
            "s3:///k",
            "s3://user:pw@b/k",
            "az://c/k?sig=abc",
            "s3://b/k#f",
            "s3://b/a//b",
            "s3://b/../k",
            "s3://b/a\nb",
            "s3://b c/k",
            &format!("s3://b/{}", "x".repeat(1_200)),
        ] {
            let error = Location::parse(text).expect_err(text).to_string();
            assert!(!error.contains("pw@") && !error.contains("sig=abc"), "{error}");
        }
    }

    #[test]
    fn what_is_below_a_place_is_in_it() {
        let place = |text: &str| Location::parse(text).unwrap();
        let ds = place("s3://b/ds");
        assert_eq!(
            ds.join("run/date=2026-01-01/x.parquet").unwrap(),
            place("s3://b/ds/run/date=2026-01-01/x.parquet")
        );
        for (other, expected) in [
            ("s3://b/ds", true),
            ("s3://b/ds/x", true),
            ("s3://b/dsx", false),
            ("s3://c/ds/x", false),
            ("gs://b/ds/x", false),
        ] {
            assert_eq!(ds.contains(&place(other)), expected, "{other}");
        }
        assert!(place("s3://b").contains(&ds));
        assert!(ds.join("../x").is_err());
    }

    #[test]
    fn files_are_absolute() {
        assert_eq!(local_path("file:///data/a.pcap"), Some("/data/a.pcap"));
        assert_eq!(local_path("file://host/a"), None);
        assert_eq!(local_path("/data/a.pcap"), None);
    }
}
