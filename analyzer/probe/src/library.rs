//! libibverbs on this machine: where it is, and where its functions begin, for uprobes.
//!
//! A function can be there more than once: under an old version for programs of long ago, and under the one that the linker takes
//! today. Only the latter is meant.

use std::path::{Path, PathBuf};

use object::elf::SHN_UNDEF;
use object::read::elf::{ElfFile64, Sym as _};
use object::{Object as _, ObjectSection as _};

/// Its name since 2006.
const NAME: &str = "libibverbs.so.1";

/// Folders of libraries in the distributions.
const FOLDERS: [&str; 6] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/lib64",
    "/lib",
    "/usr/local/lib",
];

/// The system's library.
pub(crate) fn find() -> Option<PathBuf> {
    let candidates = FOLDERS.iter().map(|folder| Path::new(folder).join(NAME));
    candidates.into_iter().find(|path| path.exists())
}

/// Start of a function's code in a library's file. `None`: it has no such function, or is no 64-bit ELF
/// file.
pub(crate) fn function(library: &[u8], name: &str) -> Option<u64> {
    let file: ElfFile64<'_, object::Endianness> = ElfFile64::parse(library).ok()?;
    let endian = file.endian();
    let symbols = file.elf_dynamic_symbol_table();
    let versions = file.elf_section_table().versions(endian, library).ok()?;
    let (_, symbol) = symbols.enumerate().find(|(index, symbol)| {
        let hidden = versions
            .as_ref()
            .is_some_and(|versions| versions.version_index(endian, *index).is_hidden());
        symbol.st_shndx(endian) != SHN_UNDEF
            && !hidden
            && symbols.symbol_name(endian, symbol).ok() == Some(name.as_bytes())
    })?;
    let address = symbol.st_value(endian);
    file.sections().find_map(|section| {
        let (start, size) = section.file_range()?;
        let within = address.checked_sub(section.address())?;
        (section.address() != 0 && within < size).then_some(start + within)
    })
}
