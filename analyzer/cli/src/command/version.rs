//! `--version`: which build of the program this is. `-V` is one line, for scripts; it is clap's.

use std::fmt::Write;

/// Features of this build, and true for those that it has, in alphabetical order.
const FEATURES: [(&str, bool); 6] = [
    ("jemalloc", cfg!(feature = "jemalloc")),
    ("live", cfg!(feature = "live")),
    ("nxapi", cfg!(feature = "nxapi")),
    ("object-store", cfg!(feature = "object-store")),
    ("parquet", cfg!(feature = "parquet")),
    ("sim", cfg!(feature = "sim")),
];

/// The commit that `build.rs` found. An archive of the sources has none.
const COMMIT: Option<&str> = option_env!("ROCE_ANALYZE_BUILD_COMMIT");

/// The target of the build, also from `build.rs`.
const TARGET: Option<&str> = option_env!("ROCE_ANALYZE_BUILD_TARGET");

/// Version, commit, target, features, libpcap and its sniffer: a line each.
pub(crate) fn text() -> String {
    let features: Vec<&str> = FEATURES
        .iter()
        .filter(|(_, is_in)| *is_in)
        .map(|(name, _)| *name)
        .collect();
    let (libpcap, sniffer) = libpcap();
    let mut text = format!("roce-analyze {}\n", env!("CARGO_PKG_VERSION"));
    for (name, value) in [
        ("commit", COMMIT.unwrap_or("unknown").to_owned()),
        ("target", TARGET.unwrap_or("unknown").to_owned()),
        (
            "features",
            if features.is_empty() {
                "none".to_owned()
            } else {
                features.join(", ")
            },
        ),
        ("libpcap", libpcap),
        ("sniffer", sniffer.to_owned()),
    ] {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name:<9} {value}");
    }
    text
}

/// libpcap's version, and a statement about its sniffer of RDMA devices.
#[cfg(feature = "live")]
fn libpcap() -> (String, &'static str) {
    let sniffer = if roce_capture::live::rdma_support() {
        "yes: RDMA devices can be captured"
    } else {
        "no: this libpcap was built without RDMA support"
    };
    (library(&roce_capture::live::version()), sniffer)
}

#[cfg(not(feature = "live"))]
fn libpcap() -> (String, &'static str) {
    let none = "none: this build has no live captures";
    (none.to_owned(), none)
}

/// The version in a path such as `/usr/lib/x86_64-linux-gnu/libpcap.so.1.10.3`, and the path. A static library has no path.
#[cfg(feature = "live")]
fn library(path: &str) -> String {
    let path = roce_model::text::clean(path);
    match path.rsplit_once(".so.") {
        Some((_, version)) => format!("{version} ({path})"),
        None if path.contains('/') => path.into_owned(),
        None => "linked statically, version unknown".to_owned(),
    }
}

#[cfg(all(test, feature = "live"))]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_libpcap_is_in_the_name_of_its_file() {
        for (path, expected) in [
            ("/lib/libpcap.so.1.10.3", "1.10.3 (/lib/libpcap.so.1.10.3)"),
            (
                "/opt/pcap.so.9/libpcap.so.1.11.0",
                "1.11.0 (/opt/pcap.so.9/libpcap.so.1.11.0)",
            ),
            ("/opt/libpcap.so", "/opt/libpcap.so"),
            ("libpcap", "linked statically, version unknown"),
        ] {
            assert_eq!(library(path), expected);
        }
    }
}
