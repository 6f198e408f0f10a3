//! Captures in stores: URLs among the arguments, and how the reader of captures opens them.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use roce_store::{Location, local_path};

use super::process::{Objects, Whose};

/// Opens captures of stores through the process.
struct Inputs(Arc<Objects>);

impl roce_capture::Objects for Inputs {
    fn is_object(&self, url: &str) -> bool {
        Location::is_url(url)
    }

    fn size(&self, url: &str) -> io::Result<u64> {
        self.0
            .size(url)
            .map_err(|failure| io::Error::other(failure.without_url(url).to_owned()))
    }

    fn open(&self, url: &str) -> io::Result<(Box<dyn Read + Send>, u64)> {
        let opened = self.0.read(url);
        let (stream, size) =
            opened.map_err(|failure| io::Error::other(failure.without_url(url).to_owned()))?;
        Ok((Box::new(stream), size))
    }
}

/// Replaces a `file://` URL by its path.
pub(crate) fn local(path: &mut PathBuf) {
    let local = path.to_str().and_then(local_path).map(PathBuf::from);
    if let Some(local) = local {
        *path = local;
    }
}

/// The places of the captures that are objects.
///
/// # Errors
/// One of them is no URL of an object.
fn places(paths: &[&mut PathBuf]) -> anyhow::Result<Vec<Location>> {
    let urls = paths.iter().filter_map(|path| as_url(path));
    Ok(urls.map(Location::parse).collect::<Result<_, _>>()?)
}

/// The text of a path that begins like the URL of a store.
pub(super) fn as_url(path: &Path) -> Option<&str> {
    path.to_str().filter(|text| Location::is_url(text))
}

/// Lets captures be objects: starts the process if any of `paths`, or the place of results, is one. It has to be called before this process gives
/// up starting programs.
///
/// # Errors
/// A URL is wrong, or the system gives no process.
pub(crate) fn prepare_inputs(
    paths: &mut [&mut PathBuf],
    output: Option<&Location>,
) -> anyhow::Result<Option<Arc<Objects>>> {
    for path in &mut *paths {
        local(path);
    }
    let reads = places(paths)?;
    if reads.is_empty() && output.is_none() {
        return Ok(None);
    }
    let objects = Objects::start(&reads, output, Whose::Own)?;
    // Tests call this more than once in a process: the first way stays.
    let _ = roce_capture::set_objects(Box::new(Inputs(Arc::clone(&objects))));
    Ok(Some(objects))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_urls_become_paths_and_others_stay() {
        for (text, expected) in [
            ("file:///data/a.pcap", "/data/a.pcap"),
            ("s3://b/k", "s3://b/k"),
            ("a.pcap", "a.pcap"),
        ] {
            let mut path = PathBuf::from(text);
            local(&mut path);
            assert_eq!(path, PathBuf::from(expected));
        }
        let mut paths = ["a.pcap", "s3://b/k"].map(PathBuf::from);
        assert_eq!(places(&paths.each_mut()).unwrap().len(), 1);
        assert!(places(&[&mut "s3://b/k?x".into()]).is_err());
    }
}
