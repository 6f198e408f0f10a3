//! The profile of Wireshark that `annotate --profile` writes: its files are beside this one, as they are.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::bail;
use roce_files::{Access, Directory, FilePlace};

/// Names and contents of the files.
const FILES: [(&str, &str); 5] = [
    ("preferences", include_str!("profile/preferences")),
    ("colorfilters", include_str!("profile/colorfilters")),
    ("dfilter_buttons", include_str!("profile/dfilter_buttons")),
    ("roce_comments.lua", include_str!("profile/roce_comments.lua")),
    ("README.txt", include_str!("profile/README.txt")),
];

/// Writes the profile into a folder, which is made where there is none. Returns the paths.
pub(super) fn write(path: &Path, overwrite: bool) -> anyhow::Result<Vec<PathBuf>> {
    let folder = Directory::named(path, Access::Umask)?;
    if let Some((name, _)) = FILES.iter().find(|(name, _)| folder.has(name))
        && !overwrite
    {
        bail!(
            "{}: it exists already\nhint: --overwrite replaces it",
            folder.path_of(name).display()
        );
    }
    for (name, text) in FILES {
        let mut file = FilePlace::below(&folder, name).begin(Access::Umask)?;
        file.write_all(text.as_bytes())?;
        file.finish()?;
    }
    Ok(FILES.iter().map(|(name, _)| folder.path_of(name)).collect())
}
