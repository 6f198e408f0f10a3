//! Why decoding stopped before the end of a packet.

use core::fmt;

/// A layer of a frame, for saying where something happened.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
#[expect(missing_docs, reason = "each variant is the layer it names")]
pub enum Layer {
    Link,
    Ethernet,
    LinuxSll,
    LinuxSll2,
    Erf,
    Vlan,
    Csig,
    Mpls,
    MacControl,
    Ipv4,
    Ipv6,
    Ipv6Extension,
    Ifa,
    Udp,
    Vxlan,
    Geneve,
    Gre,
    Erspan,
    Lrh,
    Grh,
    Bth,
    Uet,
    Rdeth,
    Deth,
    Xrceth,
    Reth,
    AtomicEth,
    Aeth,
    AtomicAckEth,
    ImmDt,
    Ieth,
    Feth,
    Payload,
    Icrc,
    Mad,
    Cm,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Link => "link header",
            Self::Ethernet => "Ethernet",
            Self::LinuxSll => "Linux cooked header",
            Self::LinuxSll2 => "Linux cooked header v2",
            Self::Erf => "ERF",
            Self::Vlan => "802.1Q",
            Self::Csig => "CSIG",
            Self::Mpls => "MPLS",
            Self::MacControl => "MAC control",
            Self::Ipv4 => "IPv4",
            Self::Ipv6 => "IPv6",
            Self::Ipv6Extension => "IPv6 extension",
            Self::Ifa => "IFA",
            Self::Udp => "UDP",
            Self::Vxlan => "VXLAN",
            Self::Geneve => "Geneve",
            Self::Gre => "GRE",
            Self::Erspan => "ERSPAN",
            Self::Lrh => "LRH",
            Self::Grh => "GRH",
            Self::Bth => "BTH",
            Self::Uet => "UET",
            Self::Rdeth => "RDETH",
            Self::Deth => "DETH",
            Self::Xrceth => "XRCETH",
            Self::Reth => "RETH",
            Self::AtomicEth => "AtomicETH",
            Self::Aeth => "AETH",
            Self::AtomicAckEth => "AtomicAckETH",
            Self::ImmDt => "ImmDt",
            Self::Ieth => "IETH",
            Self::Feth => "FETH",
            Self::Payload => "payload",
            Self::Icrc => "ICRC",
            Self::Mad => "MAD",
            Self::Cm => "CM message",
        })
    }
}

/// Limit that ended the bytes too early.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CutLimit {
    /// The capture kept fewer bytes than the frame had (the snaplen).
    Snaplen,
    /// A length field of this layer claims less than the layer inside it needs, or more than the frame has.
    Length(Layer),
    /// The frame itself ended.
    Frame,
    /// More layers than the decoder follows.
    Depth,
}

/// Decoding stopped in `layer`, which begins at `offset` of the captured frame: it needs `needed` bytes and
/// had `had`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Stop {
    /// The layer that could not be read.
    pub layer: Layer,
    /// Start of the header, in bytes from the start of the frame.
    pub offset: u32,
    /// Bytes that the header needs.
    pub needed: u32,
    /// Bytes that were there.
    pub had: u32,
    /// Limit that cut it.
    pub cut: CutLimit,
}

impl Stop {
    /// True if a length of IP or UDP claims bytes that the frame does not have on the wire, or that IP's own length leaves out.
    pub const fn is_beyond_frame(&self) -> bool {
        self.needed > self.had
            && matches!(
                (self.layer, self.cut),
                (Layer::Ipv4, CutLimit::Length(Layer::Ipv4))
                    | (Layer::Ipv6, CutLimit::Length(Layer::Ipv6))
                    | (Layer::Udp, CutLimit::Length(Layer::Udp))
            )
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            layer,
            offset,
            needed,
            had,
            cut,
        } = self;
        write!(f, "{layer} at byte {offset} needs {needed} bytes, has {had}: ")?;
        match cut {
            CutLimit::Snaplen => f.write_str("cut by the snaplen"),
            CutLimit::Length(by) => write!(f, "cut by the length in {by}"),
            CutLimit::Frame => f.write_str("the frame ends"),
            CutLimit::Depth => f.write_str("too many layers"),
        }
    }
}

impl Layer {
    /// Every layer.
    pub const ALL: [Self; 35] = [
        Self::Link,
        Self::Ethernet,
        Self::LinuxSll,
        Self::LinuxSll2,
        Self::Erf,
        Self::Vlan,
        Self::Csig,
        Self::Mpls,
        Self::MacControl,
        Self::Ipv4,
        Self::Ipv6,
        Self::Ipv6Extension,
        Self::Ifa,
        Self::Udp,
        Self::Vxlan,
        Self::Geneve,
        Self::Gre,
        Self::Erspan,
        Self::Lrh,
        Self::Grh,
        Self::Bth,
        Self::Rdeth,
        Self::Deth,
        Self::Xrceth,
        Self::Reth,
        Self::AtomicEth,
        Self::Aeth,
        Self::AtomicAckEth,
        Self::ImmDt,
        Self::Ieth,
        Self::Feth,
        Self::Payload,
        Self::Icrc,
        Self::Mad,
        Self::Cm,
    ];
}
