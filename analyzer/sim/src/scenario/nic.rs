//! The tables of NICs: reliability and congestion control.

use roce_model::Span;
use serde::Deserialize;

use crate::dcqcn::{CnpScope, Parameters};
use crate::units::{Picos, Rate, Size};

/// Recovery of lost packets by a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// Everything from the lost packet on is retransmitted; the receiver drops packets out of order.
    #[default]
    GoBackN,
    /// Only lost packets are retransmitted; the receiver keeps packets out of order.
    Selective,
}

/// The IPv4 identification of the packets that a host sends. A retransmission takes the next number; a
/// duplicate of the network keeps its own. (RFC 6864 leaves the field free for packets that must not be
/// fragmented.)
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IpId {
    /// Each queue pair counts its own packets (Linux `ip_select_ident_segs`, include/net/ip.h: a counter of each connected
    /// socket).
    #[default]
    CountFlow,
    /// One counter for all packets of the host.
    CountHost,
    /// Always zero (Linux for datagrams with DF that belong to no connected socket).
    Zero,
    /// Random.
    Random,
}

/// Duplicates of SEND and WRITE packets that the responder acknowledges again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DuplicateAck {
    /// Those that request an ACK.
    #[default]
    Requested,
    /// All of them (IBTA C9-105; `duplicate_request` of Linux drivers/infiniband/sw/rxe/rxe_resp.c).
    Always,
}

/// Every NIC.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Nic {
    /// Path MTU: 256, 512, 1024, 2048 or 4096 bytes of payload.
    pub mtu: u32,
    /// DSCP of data and ACKs.
    pub dscp: u8,
    /// Recovery of lost packets.
    pub recovery: Recovery,
    /// Time without progress after which a sender retransmits; doubled with each try in a row.
    pub timeout: Picos,
    /// Tries without progress until the queue pair fails.
    pub retries: u32,
    /// RNR NAKs without progress that a sender bears until the queue pair fails; no limit when not given (7 in IBTA's field).
    pub rnr_retries: Option<u32>,
    /// Code of the RNR timer, 0 to 31 (IBTA 9.7.5.2.8).
    pub rnr_timer: u8,
    /// Requests between two that request an ACK; the last packet of a message always requests one. 0:
    /// the last only.
    pub ack_every: u32,
    /// Number of ack-requested packets that the receiver answers with one ACK; delayed ACKs leave after
    /// `ack_delay`.
    pub ack_coalesce: u32,
    /// Longest time that an ACK is held back.
    pub ack_delay: Picos,
    /// READ requests that one queue pair has outstanding at most.
    pub outstanding_reads: u32,
    /// Bytes that one queue pair has outstanding at most.
    pub window: Size,
    /// A NAK is followed by a CNP (slow restart of ConnectX-5 and 6; Lumina, SIGCOMM 2023).
    pub cnp_after_nak: bool,
    /// The IP TTL that packets leave with.
    pub ttl: u8,
    /// Packets may arrive in any order, and only lost ones are retransmitted (ConnectX with adaptive
    /// routing; AWS SRD, Shalev et al., IEEE Micro 2020). A gap alone causes no NAK. `recovery` has no
    /// effect then.
    pub out_of_order: bool,
    /// `out_of_order`: a PSN that is missing for this time counts as lost. The responder NAKs it; the
    /// requester requests a READ response again. Without it, time alone causes no NAK.
    pub ooo_nak_after: Option<Picos>,
    /// `out_of_order`: a PSN counts as lost once a PSN has come that is this much higher (as the
    /// reordering threshold of RFC 9002, section 6.1.1). Without it, a count alone causes no NAK.
    pub ooo_nak_packets: Option<u32>,
    /// IPv4 identification.
    pub ip_id: IpId,
    /// Duplicates that are acknowledged again.
    pub duplicate_ack: DuplicateAck,
}

impl Default for Nic {
    fn default() -> Self {
        Self {
            mtu: 1024,
            dscp: 26,
            recovery: Recovery::GoBackN,
            timeout: Picos::from_nanos(1_000_000),
            retries: 7,
            rnr_retries: None,
            rnr_timer: 1,
            ack_every: 0,
            ack_coalesce: 1,
            ack_delay: Picos::from_nanos(4_000),
            outstanding_reads: 16,
            window: Size(1 << 30),
            cnp_after_nak: false,
            ttl: 64,
            out_of_order: false,
            ooo_nak_after: None,
            ooo_nak_packets: None,
            ip_id: IpId::CountFlow,
            duplicate_ack: DuplicateAck::Requested,
        }
    }
}

/// A named set of parameters of the reaction point: see [`Parameters`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParameterSet {
    /// [`Parameters::PAPER`].
    #[default]
    Paper,
    /// [`Parameters::NS3`].
    Ns3,
    /// [`Parameters::NVIDIA`].
    Nvidia,
}

/// DCQCN, in every NIC. Values that are given replace those of the set.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CongestionControl {
    /// The set that the values come from.
    pub set: ParameterSet,
    /// Notification point: receivers answer CE with CNPs.
    pub notify: bool,
    /// Reaction point: senders slow down when a CNP comes.
    pub react: bool,
    /// Data is sent ECN-capable, ECT(0).
    pub ecn: bool,
    /// Least time between two CNPs. When not given: 50 us for `paper` and `ns3`, 4 us for `nvidia`.
    pub cnp_interval: Option<Picos>,
    /// Scope of that time.
    pub cnp_scope: CnpScope,
    /// DSCP of CNPs.
    pub cnp_dscp: u8,
    /// See [`Parameters::g`].
    pub g: Option<f64>,
    /// See [`Parameters::initial_alpha`].
    pub initial_alpha: Option<f64>,
    /// See [`Parameters::alpha_timer`].
    pub alpha_timer: Option<Picos>,
    /// See [`Parameters::rate_timer`].
    pub rate_timer: Option<Picos>,
    /// See [`Parameters::byte_counter`].
    pub byte_counter: Option<Size>,
    /// See [`Parameters::fast_recovery`].
    pub fast_recovery: Option<u32>,
    /// See [`Parameters::additive`].
    pub additive: Option<Rate>,
    /// See [`Parameters::hyper`].
    pub hyper: Option<Rate>,
    /// See [`Parameters::minimum`].
    pub minimum: Option<Rate>,
    /// See [`Parameters::cut_period`].
    pub cut_period: Option<Picos>,
}

impl Default for CongestionControl {
    fn default() -> Self {
        Self {
            set: ParameterSet::Paper,
            notify: true,
            react: true,
            ecn: true,
            cnp_interval: None,
            cnp_scope: CnpScope::Qp,
            cnp_dscp: 48,
            g: None,
            initial_alpha: None,
            alpha_timer: None,
            rate_timer: None,
            byte_counter: None,
            fast_recovery: None,
            additive: None,
            hyper: None,
            minimum: None,
            cut_period: None,
        }
    }
}

impl CongestionControl {
    /// The parameters of the reaction point.
    pub fn parameters(&self) -> Parameters {
        let base = match self.set {
            ParameterSet::Paper => Parameters::PAPER,
            ParameterSet::Ns3 => Parameters::NS3,
            ParameterSet::Nvidia => Parameters::NVIDIA,
        };
        let time = |given: Option<Picos>, base: Span| given.map_or(base, |time| Span(time.nanos()));
        let rate = |given: Option<Rate>, base: f64| given.map_or(base, Rate::bits);
        Parameters {
            g: self.g.unwrap_or(base.g),
            initial_alpha: self.initial_alpha.unwrap_or(base.initial_alpha),
            alpha_timer: time(self.alpha_timer, base.alpha_timer),
            rate_timer: time(self.rate_timer, base.rate_timer),
            byte_counter: self.byte_counter.map_or(base.byte_counter, |size| size.0),
            fast_recovery: self.fast_recovery.unwrap_or(base.fast_recovery),
            additive: rate(self.additive, base.additive),
            hyper: rate(self.hyper, base.hyper),
            minimum: rate(self.minimum, base.minimum),
            cut_period: time(self.cut_period, base.cut_period),
        }
    }

    /// The least time between two CNPs.
    pub fn interval(&self) -> Span {
        self.cnp_interval.map_or(
            match self.set {
                ParameterSet::Paper | ParameterSet::Ns3 => Span(50_000),
                ParameterSet::Nvidia => Span(4_000),
            },
            |time| Span(time.nanos()),
        )
    }
}
