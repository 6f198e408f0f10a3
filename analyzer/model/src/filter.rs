//! The language of `--flow` and `--only-flow`: which flows to show, or which packets to look at.
//!
//! ```text
//! expr    = and { "or" and }            qpn 0x11 or qpn 0x12
//! and     = not { "and" not }           host 10.0.0.1 and dscp 26
//! not     = [ "not" ] ( "(" expr ")" | test )
//! test    = ( [ "host" | "src" | "dst" ] prefix      10.0.0.1   2001:db8::/32
//!         | prefix ( "->" | "<->" ) prefix )         one direction, both directions
//!           [ "qpn" number ]                         the name of a flow, as results print it
//!         | "qpn" number | "dscp" number | "vlan" number | "vni" number
//!         | "service" ( rc | uc | rd | ud | xrc | cnp | mrc | vendor )
//! ```
//!
//! Results name flows `10.0.0.1 > 10.0.0.2 QP 0x11`, and columns `source`, `destination` and `destination_qpn`: `>` reads as `->`,
//! and `qp`, `source`, `destination` and `destination_qpn` as `qpn`, `src`, `dst` and `qpn`. Ranks in brackets behind a name are passed over.

use std::fmt;
use std::net::IpAddr;

use roce_wire::{Address, Roce, Service, VlanTag};

use crate::FlowKey;

/// A compiled `--flow` expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    text: String,
    root: Node,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    // Lists, not pairs: an expression of a million tests is no deeper than its parentheses.
    Or(Vec<Node>),
    And(Vec<Node>),
    Not(Box<Node>),
    Source(Prefix),
    Destination(Prefix),
    Qpn(u32),
    Dscp(u8),
    Vlan(u16),
    Vni(u32),
    Service(Service),
}

impl Node {
    fn or(self, other: Self) -> Self {
        match self {
            Self::Or(mut nodes) => {
                nodes.push(other);
                Self::Or(nodes)
            }
            first => Self::Or(vec![first, other]),
        }
    }

    fn and(self, other: Self) -> Self {
        match self {
            Self::And(mut nodes) => {
                nodes.push(other);
                Self::And(nodes)
            }
            first => Self::And(vec![first, other]),
        }
    }

    fn matches(&self, packet: &Roce) -> bool {
        match self {
            Self::Or(nodes) => nodes.iter().any(|node| node.matches(packet)),
            Self::And(nodes) => nodes.iter().all(|node| node.matches(packet)),
            Self::Not(inner) => !inner.matches(packet),
            Self::Source(prefix) => prefix.contains(packet.source),
            Self::Destination(prefix) => prefix.contains(packet.destination),
            Self::Qpn(qpn) => packet.bth.destination_qpn().value() == *qpn,
            Self::Dscp(dscp) => packet.carrier.has_ip() && packet.dscp() == *dscp,
            Self::Vlan(id) => packet.vlan.map(VlanTag::id) == Some(*id),
            Self::Vni(vni) => packet.vni == Some(*vni),
            Self::Service(service) => is_of(packet.service(), *service),
        }
    }

    /// True if it matches a flow; `None` where that depends on an unknown DSCP.
    fn holds(&self, flow: &FlowKey, dscp: Option<u8>) -> Option<bool> {
        match self {
            Self::Or(nodes) => decided(nodes, flow, dscp, true),
            Self::And(nodes) => decided(nodes, flow, dscp, false),
            Self::Not(inner) => inner.holds(flow, dscp).map(|holds| !holds),
            Self::Source(prefix) => Some(prefix.contains(flow.source)),
            Self::Destination(prefix) => Some(prefix.contains(flow.destination)),
            Self::Qpn(qpn) => Some(flow.destination_qpn.value() == *qpn),
            Self::Dscp(wanted) => dscp.map(|dscp| dscp == *wanted),
            Self::Vlan(id) => Some(flow.vlan == Some(*id)),
            Self::Vni(vni) => Some(flow.vni == Some(*vni)),
            Self::Service(service) => Some(is_of(flow.service, *service)),
        }
    }
}

/// `decisive` if a node gives it; `None` if no node does and one is not known; else the opposite.
fn decided(nodes: &[Node], flow: &FlowKey, dscp: Option<u8>, decisive: bool) -> Option<bool> {
    let mut result = Some(!decisive);
    for node in nodes {
        match node.holds(flow, dscp) {
            Some(answer) if answer == decisive => return Some(decisive),
            Some(_) => (),
            None => result = None,
        }
    }
    result
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Prefix {
    address: u128,
    mask: u128,
}

impl Prefix {
    fn contains(self, address: Address) -> bool {
        u128::from_be_bytes(*address.octets()) & self.mask == self.address
    }

    fn parse(text: &str) -> Result<Self, String> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let ip: IpAddr = address
            .parse()
            .map_err(|_| format!("'{address}' is not an IP address"))?;
        let whole: u32 = if ip.is_ipv4() { 32 } else { 128 };
        let length = match length {
            None => whole,
            Some(text) => text
                .parse()
                .ok()
                .filter(|length| *length <= whole)
                .ok_or_else(|| format!("'/{text}' is not a prefix length of 0 to {whole}"))?,
        };
        let mask = match whole - length {
            128 => 0,
            // An IPv4 address has its mapped form: the 96 bits before it always count.
            host_bits => u128::MAX << host_bits,
        };
        let address = u128::from_be_bytes(*Address::from(ip).octets()) & mask;
        Ok(Self { address, mask })
    }
}

/// Error in an expression, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    text: String,
    /// Place, in bytes from the start of the expression.
    pub at: usize,
    /// Expected words.
    pub message: String,
}

impl std::error::Error for FilterError {}

impl fmt::Display for FilterError {
    /// The message, the expression, and a caret under the place.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let column = self
            .text
            .get(..self.at)
            .map_or(0, |before| before.chars().count());
        write!(f, "{}\n  {}\n  {:column$}^", self.message, self.text, "")
    }
}

impl Filter {
    /// Nesting of parentheses and `not` that is taken.
    const DEPTH: usize = 64;

    /// Compiles an expression.
    ///
    /// # Errors
    /// [`FilterError`] with the place and what was expected there.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        let mut parser = Parser {
            text,
            words: words(text),
            next: 0,
            depth: 0,
        };
        let root = parser.or()?;
        match parser.peek() {
            None => Ok(Self {
                text: text.to_owned(),
                root,
            }),
            Some(_) => Err(parser.expected("'and', 'or' or the end")),
        }
    }

    /// True if the packet is one to look at.
    pub fn matches(&self, packet: &Roce) -> bool {
        self.root.matches(packet)
    }

    /// True if it matches the packets of a flow. `dscp` is the one of most of them, if it is known. A
    /// flow of unknown DSCP does not match where the answer depends on it.
    pub fn matches_flow(&self, flow: &FlowKey, dscp: Option<u8>) -> bool {
        self.root.holds(flow, dscp) == Some(true)
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[derive(Clone, Copy)]
struct Word<'a> {
    at: usize,
    text: &'a str,
}

/// Splits at white space; parentheses and arrows are words of their own.
fn words(text: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let at = text.len() - rest.len();
        // Results print ranks behind the name of a flow.
        if let Some(after) = behind_ranks(rest) {
            rest = after;
            continue;
        }
        let length = match rest {
            _ if rest.starts_with("<->") => 3,
            _ if rest.starts_with("->") => 2,
            _ if rest.starts_with(['(', ')', '>']) => 1,
            _ => rest
                .char_indices()
                .find(|(at, c)| {
                    c.is_whitespace()
                        || matches!(c, '(' | ')' | '>')
                        || rest[*at..].starts_with("->")
                        || rest[*at..].starts_with("<->")
                })
                .map_or(rest.len(), |(at, _)| at),
        };
        let (word, after) = rest.split_at(length.max(rest.chars().next().map_or(1, char::len_utf8)));
        if !word.trim().is_empty() {
            words.push(Word { at, text: word });
        }
        rest = after;
    }
    words
}

/// Rest of a text behind `[rank 3 > rank 11, channel 2]`, which repeats the name before it.
fn behind_ranks(text: &str) -> Option<&str> {
    let (ranks, after) = text.strip_prefix('[')?.split_once(']')?;
    let begins = ["rank ", "from rank ", "to rank "];
    begins
        .iter()
        .any(|begin| ranks.starts_with(begin))
        .then_some(after)
}

/// Names of the test of the destination's queue pair number.
const QPN: [&str; 3] = ["qpn", "qp", "destination_qpn"];

/// A hint for words that other filter languages have, and for words that are nearly one of ours.
fn hint(found: &str) -> Option<String> {
    const OURS: [&str; 11] = [
        "host", "src", "dst", "qpn", "service", "dscp", "vlan", "vni", "and", "or", "not",
    ];
    let word = found.to_ascii_lowercase();
    if OURS.contains(&word.as_str()) {
        return None;
    }
    if word.len() > 1 && word.contains('=') {
        return Some("; hint: write a test without '=', such as \"qpn 0x11\"".to_owned());
    }
    let ours = match word.as_str() {
        "&&" | "&" | "," => "and",
        "||" | "|" => "or",
        "!" => "not",
        "ip" | "addr" | "address" | "ip.addr" | "net" => "host",
        "from" | "ip.src" => "src",
        "to" | "ip.dst" => "dst",
        "queue" | "queue_pair" | "dqpn" => "qpn",
        "flow" | "connection" => {
            return Some("; hint: \"10.0.0.1 <-> 10.0.0.2\" selects both directions".to_owned());
        }
        "port" | "sport" | "udp" => {
            return Some(
                "; hint: all RoCEv2 goes to UDP port 4791; select a queue pair with \"qpn 0x11\"".to_owned(),
            );
        }
        // An arrow of the wrong kind.
        "=" | "\u{2192}" | "-" => "->",
        "<>" | "<" | "<-" | "\u{2194}" => "<->",
        word => {
            OURS.into_iter()
                .map(|ours| (strsim::jaro_winkler(word, ours), ours))
                .filter(|(likeness, _)| *likeness >= 0.8)
                .max_by(|a, b| a.0.total_cmp(&b.0))?
                .1
        }
    };
    Some(format!("; hint: did you mean '{ours}'?"))
}

struct Parser<'a> {
    text: &'a str,
    words: Vec<Word<'a>>,
    next: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.words.get(self.next).map(|word| word.text)
    }

    /// Takes the next word when it is `word`, in any case.
    fn take(&mut self, word: &str) -> bool {
        let taken = self.peek().is_some_and(|next| next.eq_ignore_ascii_case(word));
        self.next += usize::from(taken);
        taken
    }

    /// Takes the next word when it is one of `words`, in any case.
    fn take_one(&mut self, words: &[&str]) -> bool {
        words.iter().any(|word| self.take(word))
    }

    fn expected(&self, what: &str) -> FilterError {
        let found = self
            .peek()
            .map_or("the expression ends".to_owned(), |word| format!("found '{word}'"));
        let hint = self.peek().and_then(hint).unwrap_or_default();
        self.error(self.next, format!("expected {what}, {found}{hint}"))
    }

    fn error(&self, word: usize, message: String) -> FilterError {
        let at = self.words.get(word).map_or(self.text.len(), |word| word.at);
        FilterError {
            text: self.text.to_owned(),
            at,
            message,
        }
    }

    fn or(&mut self) -> Result<Node, FilterError> {
        let mut node = self.and()?;
        while self.take("or") {
            node = node.or(self.and()?);
        }
        Ok(node)
    }

    fn and(&mut self) -> Result<Node, FilterError> {
        let mut node = self.not()?;
        while self.take("and") {
            node = node.and(self.not()?);
        }
        Ok(node)
    }

    fn not(&mut self) -> Result<Node, FilterError> {
        self.depth += 1;
        if self.depth > Filter::DEPTH {
            return Err(self.error(self.next, format!("nested deeper than {} levels", Filter::DEPTH)));
        }
        let node = if self.take("not") {
            Node::Not(Box::new(self.not()?))
        } else if self.take("(") {
            let node = self.or()?;
            if !self.take(")") {
                return Err(self.expected("')'"));
            }
            node
        } else {
            self.test()?
        };
        self.depth -= 1;
        Ok(node)
    }

    fn test(&mut self) -> Result<Node, FilterError> {
        const TESTS: &str =
            "an address, 'host', 'src', 'dst', 'qpn', 'service', 'dscp', 'vlan', 'vni', 'not' or '('";
        let Some(word) = self.peek() else {
            return Err(self.expected(TESTS));
        };
        self.next += 1;
        Ok(match word.to_ascii_lowercase().as_str() {
            "host" => {
                let prefix = self.prefix()?;
                self.with_qpn(Node::Source(prefix).or(Node::Destination(prefix)))?
            }
            "src" | "source" => {
                let source = Node::Source(self.prefix()?);
                self.with_qpn(source)?
            }
            "dst" | "destination" => {
                let destination = Node::Destination(self.prefix()?);
                self.with_qpn(destination)?
            }
            word if QPN.contains(&word) => self.qpn()?,
            "dscp" => Node::Dscp(self.number("a DSCP", 63)?),
            "vlan" => Node::Vlan(self.number("a VLAN identifier", 4095)?),
            "vni" => Node::Vni(self.number("a network identifier", 0x00ff_ffff)?),
            "service" => self.service()?,
            _ if word.contains(['.', ':']) => {
                self.next -= 1;
                self.addresses()?
            }
            _ => {
                self.next -= 1;
                return Err(self.expected(TESTS));
            }
        })
    }

    fn addresses(&mut self) -> Result<Node, FilterError> {
        let a = self.prefix()?;
        let node = if self.take_one(&["->", ">"]) {
            let b = self.prefix()?;
            Node::Source(a).and(Node::Destination(b))
        } else if self.take("<->") {
            let b = self.prefix()?;
            let there = Node::Source(a).and(Node::Destination(b));
            there.or(Node::Source(b).and(Node::Destination(a)))
        } else {
            Node::Source(a).or(Node::Destination(a))
        };
        self.with_qpn(node)
    }

    /// Results print addresses and a queue pair's number beside each other: both hold.
    fn with_qpn(&mut self, addresses: Node) -> Result<Node, FilterError> {
        if self.take_one(&QPN) {
            Ok(addresses.and(self.qpn()?))
        } else {
            Ok(addresses)
        }
    }

    fn qpn(&mut self) -> Result<Node, FilterError> {
        Ok(Node::Qpn(self.number("a queue pair number", 0x00ff_ffff)?))
    }

    fn prefix(&mut self) -> Result<Prefix, FilterError> {
        let Some(word) = self.peek() else {
            return Err(self.expected("an address"));
        };
        let prefix = Prefix::parse(word).map_err(|message| self.error(self.next, message))?;
        self.next += 1;
        Ok(prefix)
    }

    fn number<T: TryFrom<u32>>(&mut self, what: &str, max: u32) -> Result<T, FilterError> {
        let Some(word) = self.peek() else {
            return Err(self.expected(what));
        };
        let number = match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
            Some(hex) => u32::from_str_radix(hex, 16).ok(),
            None => word.parse().ok(),
        };
        let number = number
            .filter(|number| *number <= max)
            .and_then(|number| T::try_from(number).ok());
        let number = number.ok_or_else(|| {
            self.error(
                self.next,
                format!("'{word}' is not {what} of 0 to {max} (decimal or 0x hex)"),
            )
        })?;
        self.next += 1;
        Ok(number)
    }

    fn service(&mut self) -> Result<Node, FilterError> {
        const SERVICES: [Service; 8] = [
            Service::Rc,
            Service::Uc,
            Service::Rd,
            Service::Ud,
            Service::Xrc,
            Service::Cnp,
            Service::Mrc,
            Service::Vendor,
        ];
        for service in SERVICES {
            if self.take(service.name()) {
                return Ok(Node::Service(service));
            }
        }
        Err(self.expected("a service: rc, uc, rd, ud, xrc, cnp, mrc or vendor"))
    }
}

/// True of a service that a filter names. Opcodes of MRC may be those of a vendor.
fn is_of(service: Service, named: Service) -> bool {
    service == named || service == Service::Mrc && named == Service::Vendor
}

#[cfg(test)]
mod tests;
