//! The profile of Wireshark that `annotate --profile` writes: its files are beside this one, as they are.

use std::io::Write as _;
use std::path::{Path, PathBuf};

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
    for (name, _) in FILES {
        FilePlace::below(&folder, name).refuse_taken(overwrite)?;
    }
    for (name, text) in FILES {
        let mut file = FilePlace::below(&folder, name).begin(overwrite, Access::Umask)?;
        file.write_all(text.as_bytes())?;
        file.finish()?;
    }
    Ok(FILES.iter().map(|(name, _)| folder.path_of(name)).collect())
}
