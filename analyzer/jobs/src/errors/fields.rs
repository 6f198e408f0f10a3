//! Values behind their names in a line, whatever stands between the two.

use core::net::IpAddr;

use roce_model::Address;

use crate::prefix::after_prefixes;

/// Names of the queue pair of the side that writes the line, and of the other one. The longer name of two comes first.
const OWN_QUEUE_PAIR: [&str; 19] = [
    "qp_id",
    "local_qp_num",
    "local_qpn",
    "local qpn",
    "local_qp",
    "local qp",
    "lqpn",
    "qp number",
    "qp_number",
    "qp_num",
    "qp num",
    "src_qp",
    "sqpn",
    "sqn",
    "qpid",
    "work queue",
    "qpn",
    "qp",
    "queue pair",
];
const OTHER_QUEUE_PAIR: [&str; 14] = [
    "remote_qp_num",
    "remote_qpn",
    "remote qpn",
    "remote_qp",
    "remote qp",
    "dest_qp_num",
    "dest_qpn",
    "dest_qp",
    "dest qp",
    "peer_qpn",
    "peer_qp",
    "peer qp",
    "dqpn",
    "rqpn",
];
/// Names of addresses of either side. GIDs come first: they are the addresses of the packets.
const OWN_ADDRESS: [&str; 16] = [
    "local_gid",
    "local gid",
    "localgid",
    "sgid",
    "src_gid",
    "local_ip",
    "local_addr",
    "laddr",
    "local",
    "src_ip",
    "src_addr",
    "src",
    "saddr",
    "source",
    "my efa addr",
    "local rnic",
];
const OTHER_ADDRESS: [&str; 22] = [
    "remote_gid",
    "remote gid",
    "remotegid",
    "dgid",
    "dest_gid",
    "dst_gid",
    "remote_ip",
    "remote_addr",
    "raddr",
    "remote",
    "dst_ip",
    "dst_addr",
    "daddr",
    "dst",
    "dest",
    "traddr",
    "peer_addr",
    "peer efa addr",
    "remote peer",
    "server",
    "peer host",
    "peer",
];
/// Names of the adapter's own code.
const VENDOR_ERROR: [&str; 11] = [
    "vendor_err_synd",
    "vendor_syndrome",
    "vendor syndrome",
    "vendor_error",
    "vendor error",
    "vendor_code",
    "vendor code",
    "vendor_err",
    "vendor err",
    "syndrom",
    "vend",
];
/// Largest number of a queue pair: it has 24 bits.
const MAX_QUEUE_PAIR: u32 = 0xff_ffff;

/// A line, and the same in small letters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a> {
    pub(super) text: &'a str,
    pub(super) lower: &'a str,
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

impl<'a> Fields<'a> {
    /// The rest of the text behind each occurrence of a whole word, without what separates the two.
    pub(super) fn behind(self, name: &'static str) -> impl Iterator<Item = &'a str> {
        let bytes = self.lower.as_bytes();
        // Names that begin or end with a blank or a sign end the word beside them.
        let [has_sign_first, has_sign_last] =
            [name.bytes().next(), name.bytes().last()].map(|edge| edge.is_some_and(|byte| !is_word(byte)));
        self.lower.match_indices(name).filter_map(move |(at, _)| {
            let end = at + name.len();
            let before = at.checked_sub(1).and_then(|before| bytes.get(before));
            let is_begun = has_sign_first || before.is_none_or(|byte| !is_word(*byte));
            let is_ended = has_sign_last || bytes.get(end).is_none_or(|byte| !is_word(*byte));
            (is_begun && is_ended).then(|| value(self.text.get(end..).unwrap_or_default()))
        })
    }

    /// The number behind one of these names, decimal or with `0x`.
    pub(super) fn number(self, names: &[&'static str]) -> Option<u32> {
        names.iter().find_map(|name| self.behind(name).find_map(number))
    }

    fn queue_pair_named(self, names: &[&'static str]) -> Option<u32> {
        let number = |rest: &str| {
            // mlx4 prints six digits of a hexadecimal number.
            let word = word(rest);
            let number = match word
                .strip_prefix('0')
                .filter(|rest| word.len() == 6 && !rest.starts_with('x'))
            {
                Some(_) => u32::from_str_radix(word, 16).ok(),
                None => number(rest),
            };
            // Queue pairs 0 and 1 are those of the subnet's management; a pointer has more bits.
            number.filter(|number| (2..=MAX_QUEUE_PAIR).contains(number))
        };
        names.iter().find_map(|name| self.behind(name).find_map(number))
    }

    /// The queue pair of the side that writes the line.
    pub(super) fn own_queue_pair(self) -> Option<u32> {
        // "remote QP 0x1" has the word of the own one, too.
        let masked = OTHER_QUEUE_PAIR
            .iter()
            .filter(|name| name.contains(' '))
            .fold(self.lower.to_owned(), |text, name| {
                text.replace(name, &"-".repeat(name.len()))
            });
        let own = Fields {
            text: self.text,
            lower: &masked,
        };
        own.queue_pair_named(&OWN_QUEUE_PAIR)
    }

    /// The queue pair of the other side.
    pub(super) fn other_queue_pair(self) -> Option<u32> {
        self.queue_pair_named(&OTHER_QUEUE_PAIR)
    }

    fn address_named(self, names: &[&'static str]) -> Option<Address> {
        names.iter().find_map(|name| self.behind(name).find_map(address))
    }

    /// The addresses of the side that writes the line, and of the other one.
    pub(super) fn addresses(self) -> (Option<Address>, Option<Address>) {
        if let Some(pair) = self.pair() {
            return pair;
        }
        let own = self.address_named(&OWN_ADDRESS);
        let other = self.glued_gid().or_else(|| self.address_named(&OTHER_ADDRESS));
        let (from, to) = self
            .arrow()
            .unwrap_or_else(|| (self.address_named(&["from"]), self.address_named(&["to"])));
        match (from, to) {
            (Some(from), Some(to)) => (own.or(Some(from)), other.or(Some(to))),
            (one, two) => (own, other.or(one).or(two).or_else(|| self.lustre())),
        }
    }

    /// `10.0.0.1 -> 10.0.0.2`.
    fn arrow(self) -> Option<(Option<Address>, Option<Address>)> {
        let (before, after) = self.text.split_once("->")?;
        let own = before.trim_end().rsplit([' ', '(', '[', '<', '=']).next()?;
        Some((Some(address(own)?), Some(address(after.trim_start())?)))
    }

    /// `<10.0.0.1,10.0.0.2,0>` of RDS: own and other address, and the class.
    fn pair(self) -> Option<(Option<Address>, Option<Address>)> {
        let (_, rest) = self.text.split_once("completion on <")?;
        let mut parts = rest.split([',', '>']);
        let (own, other) = (address(parts.next()?)?, address(parts.next()?.trim_start())?);
        Some((Some(own), Some(other)))
    }

    /// `remoteGids::1`: NCCL has no space between the two.
    pub(super) fn glued_gid(self) -> Option<Address> {
        let (_, rest) = self.text.split_once("remoteGid")?;
        address(rest.strip_prefix('s').unwrap_or(rest).trim_start())
    }

    /// `10.0.0.2@o2ib`: a peer of Lustre by the address of its adapter.
    fn lustre(self) -> Option<Address> {
        let (before, _) = self.text.split_once("@o2ib")?;
        let begin = before.rfind(|glyph: char| !glyph.is_ascii_digit() && glyph != '.');
        address(before.get(begin.map_or(0, |at| at + 1)..)?)
    }

    /// The adapter's own code. The kernel prints some of them as bare hexadecimal digits.
    pub(super) fn vendor_error(self) -> Option<u32> {
        if let Some(bare) = self.behind("vend_err").next() {
            let word = word(bare);
            return u32::from_str_radix(word.strip_prefix("0x").unwrap_or(word), 16).ok();
        }
        self.number(&VENDOR_ERROR)
    }

    /// The network interface of a driver's line: `mlx5_core 0000:5e:00.0 ens1f0np0: Link down`, the word behind the PCI address.
    pub(super) fn interface(self) -> Option<&'a str> {
        let mut words = self.text.split(' ');
        words.find(|word| is_pci_address(word))?;
        let name = words.next()?.strip_suffix(':')?;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.@".contains(&byte);
        let is_name = !name.is_empty() && name.len() <= MAX_INTERFACE && name.bytes().all(is_plain);
        // The function that prints, and the level, stand there, too.
        let is_one =
            name.bytes().any(|byte| byte.is_ascii_digit()) && !name.contains("mlx5_") && !name.contains('@');
        (is_name && is_one).then_some(name)
    }

    /// The device of a line of the kernel: its PCI address, a controller of NVMe, or a host of SCSI.
    pub(super) fn device(self) -> Option<&'a str> {
        let is_numbered = |word: &str, name: &str| {
            let digits = word.strip_prefix(name).unwrap_or_default();
            !digits.is_empty() && digits.len() <= 6 && digits.bytes().all(|byte| byte.is_ascii_digit())
        };
        let words = self.text.split(' ').map(|word| word.trim_end_matches(':'));
        let mut before = "";
        words.into_iter().find(|word| {
            let is_one = is_pci_address(word)
                || before == "nvme" && is_numbered(word, "nvme")
                || before == "scsi" && is_numbered(word, "host");
            before = word;
            is_one
        })
    }

    /// Addresses of IPv4 and IPv6 wherever they stand: with a port in `<>`, behind a colon, before `@`, or bare.
    pub(super) fn any_addresses(self) -> impl Iterator<Item = Address> {
        let is_part = |glyph: char| glyph.is_ascii_alphanumeric() || ":._".contains(glyph);
        let words = after_prefixes(self.text).split(move |glyph| !is_part(glyph));
        words.filter_map(|word| {
            // Versions and times have fewer points; names of C++ (`c10::Error`) have other letters.
            let is_hex = |byte: u8| byte.is_ascii_hexdigit() || b":.".contains(&byte);
            let is_four = word.matches('.').count() == 3;
            let is_six = word.contains("::") && word.len() > 4;
            let is_address = (is_four || is_six) && word.bytes().all(is_hex);
            is_address.then(|| address(word)).flatten()
        })
    }

    /// The adapter, such as `mlx5_1`, and its port. That of the peer, which stands behind `@`, is none.
    pub(super) fn adapter(self) -> Option<(&'a str, Option<u32>)> {
        let (at, word) = words(self.text).find(|(at, word)| {
            let before = self.text.get(..*at).unwrap_or_default();
            let is_of_peer = before.ends_with('@') && !self.lower.contains("local rnic");
            is_adapter(word) && !is_of_peer
        })?;
        let rest = self.text.get(at + word.len()..).unwrap_or_default();
        let port = rest.strip_prefix([':', '/']).and_then(number);
        Some((word, port.or_else(|| self.number(&["port"]))))
    }
}

/// Longest name of an interface (Linux IFNAMSIZ).
const MAX_INTERFACE: usize = 16;

/// `0000:5e:00.0`, with a colon behind it or not.
fn is_pci_address(word: &str) -> bool {
    let parts: Vec<&str> = word.split([':', '.']).collect();
    let is_hex = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    matches!(parts.as_slice(), [domain, bus, slot, function]
        if domain.len() == 4 && bus.len() == 2 && slot.len() == 2 && function.len() == 1)
        && parts.iter().all(is_hex)
}

/// The words of a text of letters, digits, `_` and `-`, with their places.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split_inclusive(|glyph: char| !glyph.is_ascii_alphanumeric() && glyph != '_' && glyph != '-')
        .filter_map(move |part| {
            let begin = at;
            at += part.len();
            let word = part.trim_end_matches(|glyph: char| {
                !glyph.is_ascii_alphanumeric() && glyph != '_' && glyph != '-'
            });
            (!word.is_empty()).then_some((begin, word))
        })
}

/// True for a name of an RDMA device, as drivers and rdma-core give them.
fn is_adapter(word: &str) -> bool {
    let numbered = |prefix: &str| {
        word.strip_prefix(prefix)
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let placed = |prefix: &str| {
        word.strip_prefix(prefix)
            .is_some_and(|rest| rest.starts_with(|glyph: char| glyph.is_ascii_digit()) && rest.contains('s'))
    };
    [
        "mlx5_bond_",
        "mlx4_",
        "mlx5_",
        "bnxt_re_bond",
        "bnxt_re",
        "irdma",
        "rxe",
        "siw",
        "erdma_",
        "hns_",
        "efa_",
        "qedr",
        "ionic_",
        "mana_",
        "vmw_pvrdma",
    ]
    .into_iter()
    .any(numbered)
        || ["rocep", "ibp", "rdmap", "roceo", "iwp"].into_iter().any(placed)
}

/// A text without what separates a name from its value. Two colons are of an address.
fn value(text: &str) -> &str {
    let blank = [' ', '\t', '=', '#', '(', '<', '[', '"', '\''];
    let text = text.trim_start_matches(blank);
    match text.strip_prefix(':') {
        Some(rest) if !rest.starts_with(':') => rest.trim_start_matches(blank),
        _ => text,
    }
}

/// The letters and digits that a text begins with.
fn word(text: &str) -> &str {
    let end = text.find(|glyph: char| !glyph.is_ascii_alphanumeric());
    text.get(..end.unwrap_or(text.len())).unwrap_or_default()
}

/// The number that a text begins with, decimal or with `0x`.
pub(super) fn number(text: &str) -> Option<u32> {
    let word = word(text);
    match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => word.parse().ok(),
    }
}

/// The address that a text begins with; a port behind it is left out.
pub(super) fn address(text: &str) -> Option<Address> {
    // libfabric writes the format before the address (fi_tostr): fi_addr_efa://[fe80::1]:0:7, fi_sockaddr_in://10.0.0.1:7.
    let text = match text.split_once("://") {
        Some((format, rest)) if format.starts_with("fi_") && !format.contains(' ') => rest,
        _ => text,
    };
    let text = text.trim_start_matches('[');
    let end = text.find(|glyph: char| !glyph.is_ascii_hexdigit() && glyph != ':' && glyph != '.');
    let text = text.get(..end.unwrap_or(text.len()))?.trim_end_matches('.');
    let whole = text
        .parse::<IpAddr>()
        .or_else(|_| text.trim_end_matches(':').parse());
    let found = whole.ok().or_else(|| {
        let (before, _) = text.split_once(':').filter(|(before, _)| before.contains('.'))?;
        before.parse().ok()
    });
    found.map(Address::from)
}
