//! The file of `--web-config`: the part of Prometheus' exporter-toolkit form (docs/web-configuration.md there) that a scrape needs.
//! A key that is not known or not supported is an error, so that nobody believes in a protection that is not there.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use saphyr::{LoadableYamlNode, Yaml};

/// Files larger than this are not read.
const MAX_BYTES: u64 = 1 << 20;
/// Users in one file.
const MAX_USERS: usize = 1024;

/// Contents of the file.
#[derive(Default, Debug)]
pub(super) struct WebConfig {
    pub(super) tls: Option<Tls>,
    /// Names, and bcrypt hashes of passwords.
    pub(super) users: Vec<(String, String)>,
}

/// `tls_server_config`.
#[derive(Default, Debug, PartialEq, Eq)]
pub(super) struct Tls {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
    /// Certificates of the authorities that sign clients' certificates.
    pub(super) client_ca: Option<PathBuf>,
    pub(super) client_auth: ClientAuth,
    /// True if TLS 1.2 is refused.
    pub(super) only_tls13: bool,
}

/// `client_auth_type`.
#[derive(Default, Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientAuth {
    #[default]
    None,
    IfGiven,
    Required,
}

impl WebConfig {
    /// Reads the file. Paths in it are relative to its folder.
    ///
    /// # Errors
    /// It cannot be read, or has what is not understood.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = roce_files::read_text(path, MAX_BYTES)?;
        let folder = path.parent().unwrap_or(Path::new("."));
        Self::parse(&text, folder).with_context(|| path.display().to_string())
    }

    /// Reads the text of a file in `folder`.
    ///
    /// # Errors
    /// It has what is not understood.
    pub(super) fn parse(text: &str, folder: &Path) -> anyhow::Result<Self> {
        // The parser's own message quotes the text, which may have hashes of passwords: only its place is shown.
        let documents = Yaml::load_from_str(text)
            .map_err(|error| anyhow!("no YAML at line {}", error.marker().line()))?;
        let mut config = Self::default();
        let Some(document) = documents.first() else {
            return Ok(config);
        };
        for (key, value) in pairs(document, "the file")? {
            match key {
                "tls_server_config" => config.tls = Some(tls(value, folder)?),
                "basic_auth_users" => config.users = users(value)?,
                "http_server_config" => http(value)?,
                _ => bail!(
                    "{key:?}: not known\nhint: tls_server_config, basic_auth_users and http_server_config are"
                ),
            }
        }
        Ok(config)
    }
}

/// The keys of a mapping with their values; none of an empty value.
fn pairs<'a>(value: &'a Yaml<'a>, what: &str) -> anyhow::Result<Vec<(&'a str, &'a Yaml<'a>)>> {
    if value.is_null() {
        return Ok(Vec::new());
    }
    let mapping = value
        .as_mapping()
        .with_context(|| format!("{what}: no list of keys and values"))?;
    let pairs = mapping.iter().map(|(key, value)| {
        let key = key
            .as_str()
            .with_context(|| format!("{what}: a key is no text"))?;
        Ok((key, value))
    });
    pairs.collect()
}

fn text<'a>(key: &str, value: &'a Yaml<'a>) -> anyhow::Result<&'a str> {
    value.as_str().with_context(|| format!("{key}: no text"))
}

fn tls(value: &Yaml<'_>, folder: &Path) -> anyhow::Result<Tls> {
    let mut tls = Tls::default();
    let mut client_auth = None;
    for (key, value) in pairs(value, "tls_server_config")? {
        match key {
            "cert_file" => tls.certificate = folder.join(text(key, value)?),
            "key_file" => tls.key = folder.join(text(key, value)?),
            "client_ca_file" => tls.client_ca = Some(folder.join(text(key, value)?)),
            "client_auth_type" => {
                client_auth = Some(match text(key, value)? {
                    "NoClientCert" => ClientAuth::None,
                    "VerifyClientCertIfGiven" => ClientAuth::IfGiven,
                    "RequireAndVerifyClientCert" => ClientAuth::Required,
                    other => bail!(
                        "client_auth_type {other:?}: not supported\nhint: NoClientCert, VerifyClientCertIfGiven and RequireAndVerifyClientCert are"
                    ),
                });
            }
            "min_version" => {
                tls.only_tls13 = match text(key, value)? {
                    "TLS12" => false,
                    "TLS13" => true,
                    other => bail!("min_version {other:?}: not supported\nhint: TLS12 and TLS13 are"),
                };
            }
            "max_version" if text(key, value)? == "TLS13" => {}
            "prefer_server_cipher_suites" => {}
            _ => bail!(
                "tls_server_config {key:?}: not supported\nhint: cert_file, key_file, client_ca_file, client_auth_type and min_version are"
            ),
        }
    }
    for (name, path) in [("cert_file", &tls.certificate), ("key_file", &tls.key)] {
        if path.as_os_str().is_empty() {
            bail!("tls_server_config: {name} is missing");
        }
    }
    tls.client_auth = match (client_auth, &tls.client_ca) {
        (Some(ClientAuth::None), Some(_)) => {
            bail!("client_ca_file has no effect with client_auth_type NoClientCert")
        }
        (Some(ClientAuth::IfGiven | ClientAuth::Required), None) => {
            bail!("client_auth_type: client_ca_file is missing")
        }
        (Some(client_auth), _) => client_auth,
        // Whoever names an authority wants its certificates.
        (None, Some(_)) => ClientAuth::Required,
        (None, None) => ClientAuth::None,
    };
    Ok(tls)
}

fn users(value: &Yaml<'_>) -> anyhow::Result<Vec<(String, String)>> {
    let mut users = Vec::new();
    for (name, value) in pairs(value, "basic_auth_users")? {
        let hash = text(name, value)?;
        // The hash is not in the message: messages end up in logs.
        if hash.parse::<bcrypt::HashParts>().is_err() {
            bail!("basic_auth_users {name:?}: not a bcrypt hash\nhint: htpasswd -nBC 10 {name} prints one");
        }
        users.push((name.to_owned(), hash.to_owned()));
    }
    if users.len() > MAX_USERS {
        bail!("basic_auth_users: more than {MAX_USERS}");
    }
    Ok(users)
}

/// The endpoint has HTTP/1.1 alone, so there is nothing to set.
fn http(value: &Yaml<'_>) -> anyhow::Result<()> {
    for (key, _) in pairs(value, "http_server_config")? {
        if key != "http2" {
            bail!("http_server_config {key:?}: not supported");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "$2b$04$VcGvTrbTUTiZI80GGu4zDeEDcMIUXZ.uZqZZ8ApyeAojmIkPFwHzG";

    fn parse(text: &str) -> anyhow::Result<WebConfig> {
        WebConfig::parse(text, Path::new("/etc/roce"))
    }

    #[test]
    fn the_form_of_prometheus_exporters() {
        let config = parse(&format!(
            "tls_server_config:\n  cert_file: host.crt\n  key_file: /keys/host.key\n  client_ca_file: ca.crt\n  min_version: TLS13\n\
             basic_auth_users:\n  prometheus: {HASH}\nhttp_server_config:\n  http2: false\n"
        ))
        .unwrap();
        let expected = Tls {
            certificate: "/etc/roce/host.crt".into(),
            key: "/keys/host.key".into(),
            client_ca: Some("/etc/roce/ca.crt".into()),
            client_auth: ClientAuth::Required,
            only_tls13: true,
        };
        assert_eq!(config.tls, Some(expected));
        assert_eq!(config.users, [("prometheus".to_owned(), HASH.to_owned())]);
        let empty = parse("").unwrap();
        assert!(empty.tls.is_none() && empty.users.is_empty());
    }

    #[test]
    fn what_is_not_supported_is_refused() {
        let tls = "tls_server_config:\n  cert_file: a\n  key_file: b\n";
        for (text, expected) in [
            ("tls_server_confg: {}\n".to_owned(), "not known"),
            (format!("{tls}  cipher_suites: [x]\n"), "not supported"),
            (
                format!("{tls}  client_auth_type: RequestClientCert\n"),
                "not supported",
            ),
            (
                format!("{tls}  client_auth_type: RequireAndVerifyClientCert\n"),
                "client_ca_file",
            ),
            (format!("{tls}  min_version: TLS10\n"), "not supported"),
            (
                "tls_server_config:\n  cert_file: a\n".to_owned(),
                "key_file is missing",
            ),
            ("basic_auth_users:\n  a: secret\n".to_owned(), "not a bcrypt hash"),
            ("http_server_config:\n  headers: {}\n".to_owned(), "not supported"),
            ("- a\n".to_owned(), "no list of keys"),
            ("a: [\n".to_owned(), "no YAML"),
        ] {
            let error = format!("{:#}", parse(&text).unwrap_err());
            assert!(error.contains(expected), "{text}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
