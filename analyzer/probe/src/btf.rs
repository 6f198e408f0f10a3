//! A reader of BTF, the kernel's description of its own types (Linux Documentation/bpf/btf.rst). It
//! reads what is needed to find the offset of a field and the names of an enumeration's numbers.
//!
//! A module's BTF is split: its types and strings go on where those of vmlinux end.
//!
//! A crate was looked for and not taken: btf-rs has a copyleft licence (LGPL) that `deny.toml` does not
//! allow, and finds no field by its path through nested structures, which is most of this file.

use std::path::Path;
use std::sync::Arc;

use crate::ProbeError;

const MAGIC: u16 = 0xeb9f;
const HEADER_BYTES: usize = 24;
const TYPE_BYTES: usize = 12;

/// Kinds of types, by their numbers in `enum` of Linux include/uapi/linux/btf.h.
mod kind {
    pub(super) const INT: u32 = 1;
    pub(super) const ARRAY: u32 = 3;
    pub(super) const STRUCT: u32 = 4;
    pub(super) const UNION: u32 = 5;
    pub(super) const ENUM: u32 = 6;
    pub(super) const TYPEDEF: u32 = 8;
    pub(super) const VOLATILE: u32 = 9;
    pub(super) const CONST: u32 = 10;
    pub(super) const FUNC_PROTO: u32 = 13;
    pub(super) const VAR: u32 = 14;
    pub(super) const DATASEC: u32 = 15;
    pub(super) const DECL_TAG: u32 = 17;
    pub(super) const TYPE_TAG: u32 = 18;
    pub(super) const ENUM64: u32 = 19;
}

/// The types of vmlinux or, on top of those, of one module.
#[derive(Debug)]
pub(crate) struct Btf {
    base: Option<Arc<Btf>>,
    /// The type section.
    types: Vec<u8>,
    /// Start of each type in the data, by its number less `first`.
    starts: Vec<usize>,
    /// The number of the first type.
    first: u32,
    strings: Vec<u8>,
    /// The offset that the first string has.
    first_string: u32,
}

/// The fixed part of a type.
#[derive(Clone, Copy)]
struct Type<'a> {
    name: u32,
    info: u32,
    /// The type that it is of; for other kinds a size.
    other: u32,
    /// Unread bytes.
    rest: &'a [u8],
}

impl Type<'_> {
    fn kind(&self) -> u32 {
        self.info >> 24 & 0x1f
    }

    fn count(&self) -> usize {
        (self.info & 0xffff) as usize
    }

    /// A flag of its kind: with bit fields, or signed.
    fn flag(&self) -> bool {
        self.info >> 31 != 0
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

impl Btf {
    /// Reads a file of /sys/kernel/btf.
    ///
    /// # Errors
    /// It cannot be read, or is no BTF.
    pub(crate) fn open(path: &Path, base: Option<Arc<Self>>) -> Result<Self, ProbeError> {
        let bytes = std::fs::read(path).map_err(|source| ProbeError::File {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(&bytes, base).ok_or_else(|| ProbeError::Btf {
            path: path.to_owned(),
        })
    }

    /// `None`: it is no BTF of this machine's byte order, or is cut.
    pub(crate) fn parse(bytes: &[u8], base: Option<Arc<Self>>) -> Option<Self> {
        let magic = u16::from_ne_bytes(*bytes.first_chunk()?);
        if magic != MAGIC || bytes.len() < HEADER_BYTES {
            return None;
        }
        let header = word(bytes, 4)? as usize;
        let section = |at: usize| -> Option<&[u8]> {
            let start = header.checked_add(word(bytes, at)? as usize)?;
            bytes.get(start..start.checked_add(word(bytes, at + 4)? as usize)?)
        };
        let types = section(8)?.to_vec();
        let strings = section(16)?.to_vec();
        let mut starts = Vec::new();
        let mut at = 0;
        while at < types.len() {
            starts.push(at);
            let info = word(&types, at + 4)?;
            let count = (info & 0xffff) as usize;
            at += TYPE_BYTES
                + match info >> 24 & 0x1f {
                    kind::INT | kind::VAR | kind::DECL_TAG => 4,
                    kind::ARRAY => 12,
                    kind::STRUCT | kind::UNION | kind::DATASEC | kind::ENUM64 => 12 * count,
                    kind::ENUM | kind::FUNC_PROTO => 8 * count,
                    _ => 0,
                };
        }
        let (first, first_string) = match &base {
            Some(base) => (
                base.first + u32::try_from(base.starts.len()).ok()?,
                base.first_string + u32::try_from(base.strings.len()).ok()?,
            ),
            None => (1, 0),
        };
        Some(Self {
            base,
            types,
            starts,
            first,
            strings,
            first_string,
        })
    }

    fn type_of(&self, number: u32) -> Option<Type<'_>> {
        let Some(index) = number.checked_sub(self.first) else {
            return self.base.as_ref()?.type_of(number);
        };
        let start = *self.starts.get(index as usize)?;
        Some(Type {
            name: word(&self.types, start)?,
            info: word(&self.types, start + 4)?,
            other: word(&self.types, start + 8)?,
            rest: self.types.get(start + TYPE_BYTES..)?,
        })
    }

    fn text(&self, offset: u32) -> Option<&str> {
        let Some(start) = offset.checked_sub(self.first_string) else {
            return self.base.as_ref()?.text(offset);
        };
        let bytes = self.strings.get(start as usize..)?;
        std::str::from_utf8(bytes.split(|byte| *byte == 0).next()?).ok()
    }

    /// The type of that name and one of these kinds: the module's own before those of vmlinux.
    fn find(&self, name: &str, kinds: &[u32]) -> Option<Type<'_>> {
        let own = (self.first..).take(self.starts.len()).find_map(|number| {
            let found = self.type_of(number)?;
            (kinds.contains(&found.kind()) && self.text(found.name) == Some(name)).then_some(found)
        });
        match (own, &self.base) {
            (Some(found), _) => Some(found),
            (None, Some(base)) => base.find(name, kinds),
            (None, None) => None,
        }
    }

    /// Offset in bytes of the field at `path` (`ah_attr.grh.dgid`) in a structure. `None`: there is no
    /// such structure or field, or it is a bit field.
    pub(crate) fn offset(&self, structure: &str, path: &str) -> Option<u32> {
        let mut within = self.find(structure, &[kind::STRUCT])?;
        let mut bits = 0;
        let mut names = path.split('.').peekable();
        while let Some(name) = names.next() {
            let (offset, number) = self.member(within, name)?;
            bits += offset;
            if names.peek().is_some() {
                within = self.resolved(number)?;
            }
        }
        (bits % 8 == 0).then_some(bits / 8)
    }

    /// The offset in bits and the type of a member, also inside unnamed structures and unions.
    fn member(&self, structure: Type<'_>, name: &str) -> Option<(u32, u32)> {
        if !matches!(structure.kind(), kind::STRUCT | kind::UNION) {
            return None;
        }
        for index in 0..structure.count() {
            let at = 12 * index;
            let (called, number) = (word(structure.rest, at)?, word(structure.rest, at + 4)?);
            let mut offset = word(structure.rest, at + 8)?;
            if structure.flag() {
                // The upper byte has the size of a bit field.
                offset &= 0x00ff_ffff;
            }
            match self.text(called)? {
                found if found == name => return Some((offset, number)),
                "" => {
                    if let Some((inner, number)) = self.member(self.resolved(number)?, name) {
                        return Some((offset + inner, number));
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// Type behind names and qualifiers.
    fn resolved(&self, mut number: u32) -> Option<Type<'_>> {
        // Chains are short; a circle would be a broken file.
        for _ in 0..32 {
            let found = self.type_of(number)?;
            match found.kind() {
                kind::TYPEDEF | kind::VOLATILE | kind::CONST | kind::TYPE_TAG => number = found.other,
                _ => return Some(found),
            }
        }
        None
    }

    /// The names and numbers of an enumeration of 32 bits; empty when there is none of that name.
    pub(crate) fn enumeration(&self, name: &str) -> Vec<(String, u32)> {
        let Some(found) = self.find(name, &[kind::ENUM]) else {
            return Vec::new();
        };
        (0..found.count())
            .filter_map(|index| {
                let called = self.text(word(found.rest, 8 * index)?)?.to_owned();
                Some((called, word(found.rest, 8 * index + 4)?))
            })
            .collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Write;

    use super::*;

    /// Says that a test did not run. Not by `println!`, which the test harness keeps to itself.
    pub(crate) fn skip(test: &str) {
        let _ = writeln!(
            std::io::stdout(),
            "SKIPPED: probe, {test}: this kernel has no BTF"
        );
    }

    /// BTF by hand: strings, and types of words.
    fn made(strings: &str, types: &[u32]) -> Vec<u8> {
        let bytes = |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|word| word.to_ne_bytes()).collect() };
        let types = bytes(types);
        let sizes = [0, types.len(), types.len(), strings.len()].map(|size| u32::try_from(size).unwrap());
        let mut file = Vec::new();
        file.extend(MAGIC.to_ne_bytes());
        file.extend([1, 0]);
        file.extend(24_u32.to_ne_bytes());
        file.extend(bytes(&sizes));
        file.extend(types);
        file.extend(strings.as_bytes());
        file
    }

    fn info(kind: u32, count: u32) -> u32 {
        kind << 24 | count
    }

    /// `struct in { int a; int b; }; struct out { int x; union { struct in y; int z; }; }; enum color { RED = 0, BLUE = 7 }`.
    fn base() -> Arc<Btf> {
        let strings = "\0int\0in\0a\0b\0out\0x\0y\0z\0color\0RED\0BLUE\0";
        let at = |name: &str| u32::try_from(strings.find(&format!("\0{name}\0")).unwrap() + 1).unwrap();
        let types = [
            &[at("int"), info(kind::INT, 0), 4, 32][..],
            &[at("in"), info(kind::STRUCT, 2), 8, at("a"), 1, 0, at("b"), 1, 32],
            &[0, info(kind::UNION, 2), 8, at("y"), 2, 0, at("z"), 1, 0],
            &[at("out"), info(kind::STRUCT, 2), 12, at("x"), 1, 0, 0, 3, 32],
            &[at("color"), info(kind::ENUM, 2), 4, at("RED"), 0, at("BLUE"), 7],
        ]
        .concat();
        Arc::new(Btf::parse(&made(strings, &types), None).unwrap())
    }

    #[test]
    fn fields_are_found_through_unnamed_unions() {
        let base = base();
        // x takes bytes 0 to 4, the union begins at 4, b at 4 in it.
        assert_eq!(base.offset("out", "x"), Some(0));
        assert_eq!(base.offset("out", "y.b"), Some(8));
        assert_eq!(base.offset("out", "z"), Some(4));
        assert_eq!(base.offset("out", "w"), None);
        assert_eq!(base.offset("color", "x"), None);
        assert_eq!(
            base.enumeration("color"),
            [("RED".to_owned(), 0), ("BLUE".to_owned(), 7)]
        );
    }

    #[test]
    fn a_module_goes_on_where_vmlinux_ends() {
        let base = base();
        // Its strings begin after those of the base, its types at number 6.
        let strings = "\0mod\0inner\0";
        let at = |name: &str| {
            let offset = strings.find(&format!("\0{name}\0")).unwrap() + 1;
            u32::try_from(offset + base.strings.len()).unwrap()
        };
        let types = [at("mod"), info(kind::STRUCT, 1), 12, at("inner"), 2, 64];
        let module = Btf::parse(&made(strings, &types), Some(Arc::clone(&base))).unwrap();
        assert_eq!(module.offset("mod", "inner.b"), Some(12));
        assert_eq!(
            module.offset("in", "b"),
            Some(4),
            "types of the base are found, too"
        );
        assert_eq!(module.enumeration("color").len(), 2);
    }

    #[test]
    fn what_is_cut_is_refused() {
        let whole = made("\0int\0", &[1, info(kind::INT, 0), 4, 32]);
        assert!(Btf::parse(&whole, None).is_some());
        for length in 0..whole.len() {
            assert!(Btf::parse(&whole[..length], None).is_none(), "{length} bytes");
        }
    }

    #[test]
    fn the_running_kernel_is_read() {
        let path = Path::new("/sys/kernel/btf/vmlinux");
        if !path.exists() {
            return skip("the running kernel's BTF");
        }
        let btf = Btf::open(path, None).unwrap();
        // The name is the first field of a network device's historical layout no more: only that there is one.
        assert!(btf.offset("net_device", "name").is_some());
        assert!(btf.offset("sk_buff", "network_header").is_some());
        let types = btf.enumeration("bpf_map_type");
        // uapi: BPF_MAP_TYPE_HASH = 1, BPF_MAP_TYPE_RINGBUF = 27.
        assert!(types.contains(&("BPF_MAP_TYPE_HASH".to_owned(), 1)));
        assert!(types.contains(&("BPF_MAP_TYPE_RINGBUF".to_owned(), 27)));
    }
}
