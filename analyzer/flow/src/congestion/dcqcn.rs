//! DCQCN, the reaction point's side: how fast a sender may send after the congestion notifications it got. The parameters
//! and their sets are here, the state machine in `replay`. The most that any known
//! set allows is in `bound`, how fast a port shows to be in `line`. Which notification means which flow comes from outside.

pub(crate) mod bound;
mod line;
pub(crate) mod parse;
pub(crate) mod replay;

use roce_model::Span;

/// Parameters of the reaction point.
///
/// Three sets are named; they come from different sources and are not to be mixed. The names of values are those of
/// the paper (Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, section 3.1).
/// As text: `paper`, `ns3`, `nvidia`, or one of these and changes to it, such as `nvidia,timer=55us,rai=40M`; without
/// a name the changes are to `paper`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// K (`alpha-timer`): without a notification, alpha shrinks once in this time.
    pub alpha_timer: Span,
    /// g (`g`): the weight of one notification, or of its absence, in alpha.
    pub g: f64,
    /// `alpha`: alpha before the first notification.
    pub initial_alpha: f64,
    /// T (`timer`): the time between two rate increases.
    pub timer: Span,
    /// B (`bytes`): the bytes sent between two rate increases.
    pub bytes: u64,
    /// F (`f`): increases by either counter from which on fast recovery is over, and by both that hyper increase must
    /// exceed.
    pub stages: u32,
    /// `rai`: by how much an additive increase raises the target rate, in bit/s.
    pub additive: u64,
    /// `rhai`: the target's rise in a hyper increase, times the steps of both counters past F, in bit/s.
    pub hyper: u64,
    /// `min-rate`: the least rate, in bit/s.
    pub min_rate: u64,
    /// `max-cut`: the largest share of the rate that one notification takes.
    pub max_cut: f64,
    /// `reduce-period`: notifications within this time after a cut make no other one.
    pub reduce_period: Span,
    /// `clamp`: whether every cut sets the target rate to the rate before it; if not, only the first one after an increase.
    pub clamp_target: bool,
}

const MEGABIT: u64 = 1_000_000;

impl Parameters {
    /// The paper: section 3.1 (alpha starts at 1, K 55 us, F 5, the additive step 40 Mb/s) and its table
    /// of deployed parameters (timer 55 us, byte counter 10 MB, g 1/256). It names neither a hyper step
    /// nor a least rate: these are those of [`Parameters::NS3`].
    pub const PAPER: Self = Self {
        alpha_timer: Span(55_000),
        g: 1.0 / 256.0,
        initial_alpha: 1.0,
        timer: Span(55_000),
        bytes: 10_000_000,
        stages: 5,
        additive: 40 * MEGABIT,
        hyper: 200 * MEGABIT,
        min_rate: 100 * MEGABIT,
        max_cut: 0.5,
        reduce_period: Span(0),
        clamp_target: true,
    };

    /// The configuration of its authors' simulator (github.com/bobzhuyb/ns3-rdma, `windows/ns-3-dev/mix/config.txt`: alpha 55 us,
    /// timer 60 us, 300,000 bytes (another version of the file has 300,000,000), g 1/256, F 5, 40 and 200 Mb/s, target clamped;
    /// `qbb-net-device.cc`: alpha begins with 0.5, least rate 100 Mb/s). There alpha is raised before the cut, not after it: a
    /// cut is larger by less than g / 2. And hyper increase begins there when both counters reach F, one step earlier.
    pub const NS3: Self = Self {
        initial_alpha: 0.5,
        timer: Span(60_000),
        bytes: 300_000,
        ..Self::PAPER
    };

    /// NVIDIA's adapters as delivered (`mlxconfig query`, described in "DCQCN CC Parameters" of the DOCA documents): `DCE_TCP_RTT`
    /// 1 us, `DCE_TCP_G` 1019 (alpha keeps 1019/1024 a period), `INITIAL_ALPHA_VALUE` 1023 of 1024, `RPG_TIME_RESET`
    /// 300 us, `RPG_BYTE_RESET` 32767 bytes, `RPG_THRESHOLD` 1, `RPG_AI_RATE` 5 and `RPG_HAI_RATE` 50 Mb/s, `RPG_MIN_RATE`
    /// 1 Mb/s, `RPG_MIN_DEC_FAC` 50 %, `RATE_REDUCE_MONITOR_PERIOD` 4 us, `CLAMP_TGT_RATE` off and
    /// `CLAMP_TGT_RATE_AFTER_TIME_INC` on.
    pub const NVIDIA: Self = Self {
        alpha_timer: Span(1_000),
        g: 5.0 / 1024.0,
        initial_alpha: 1023.0 / 1024.0,
        timer: Span(300_000),
        bytes: 32_767,
        stages: 1,
        additive: 5 * MEGABIT,
        hyper: 50 * MEGABIT,
        min_rate: MEGABIT,
        max_cut: 0.5,
        reduce_period: Span(4_000),
        clamp_target: false,
    };
}

impl Default for Parameters {
    fn default() -> Self {
        Self::PAPER
    }
}
