//! Files and ports that connections to stores need, from the environment. A confined process may have these and
//! no others.

use std::path::PathBuf;

/// Variables with files of credentials that are read again when they expire (web identity of AWS, containers of AWS, workload identity of Azure).
const CREDENTIAL_FILES: [&str; 3] = [
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AZURE_FEDERATED_TOKEN_FILE",
];
/// Names by DNS over TCP, services about the instance, and stores.
const PORTS: [u16; 3] = [53, 80, 443];

/// Folders with files that are read while connections go on.
pub fn credential_folders() -> Vec<PathBuf> {
    let files = CREDENTIAL_FILES.iter().filter_map(std::env::var_os);
    let folders = files.filter_map(|file| {
        // A file that is renewed is another one of that name, so its folder is needed; Kubernetes has links to a folder beside.
        let path = PathBuf::from(file);
        path.is_absolute()
            .then(|| path.parent().map(PathBuf::from))
            .flatten()
    });
    folders.collect()
}

/// Ports that stores, proxies, names and credentials are reached at.
pub fn ports() -> Vec<u16> {
    let named = std::env::vars().filter_map(|(name, value)| {
        let name = name.to_ascii_uppercase();
        let is_place = name.contains("ENDPOINT") || name.ends_with("_PROXY") || name.ends_with("_URI");
        let is_ours = ["AWS_", "AZURE_", "GOOGLE_", "HTTP", "ALL_"]
            .iter()
            .any(|first| name.starts_with(first));
        (is_place && is_ours).then(|| port(&value)).flatten()
    });
    let mut ports: Vec<u16> = named.chain(PORTS).collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

/// The port of a URL that names one.
fn port(url: &str) -> Option<u16> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', '?']).next()?;
    let (_, port) = host.rsplit_once(':')?;
    port.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_behind_the_host() {
        for (url, expected) in [
            ("http://127.0.0.1:9000", Some(9000)),
            ("http://user:pw@proxy:3128/", Some(3128)),
            ("http://[fe80::1]:8080/x:1", Some(8080)),
            ("https://s3.example.com/a:5", None),
            ("proxy:3128", Some(3128)),
            ("http://host:99999", None),
        ] {
            assert_eq!(port(url), expected, "{url}");
        }
    }

    #[test]
    fn the_usual_ports_are_always_there() {
        assert!(PORTS.iter().all(|port| ports().contains(port)));
    }
}
