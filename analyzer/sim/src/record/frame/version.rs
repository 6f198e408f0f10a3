//! The versions of RoCE.

/// The version of RoCE.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Version {
    /// RoCEv1: EtherType 0x8915, a GRH (IBTA A16).
    V1,
    /// RoCEv2: UDP port 4791 over IPv4 or IPv6 (IBTA A17). The UDP checksum is 0 over both, as A17.3.2.4 advises and
    /// Linux rxe does (rxe_net.c, `prepare_udp_hdr`): the ICRC protects the packet; RFC 6936 allows it over IPv6.
    V2 {
        /// The UDP source port: see [`udp_source_port`](super::udp_source_port).
        source_port: u16,
    },
}
