//! The parameters of DCQCN's reaction point, with three documented sets. Not to be mixed: they belong together.

use roce_model::Span;

/// Parameters of a [`ReactionPoint`](super::ReactionPoint). Rates in bit/s, times in nanoseconds, sizes in bytes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Parameters {
    /// g: weight of a new congestion sample in alpha.
    pub g: f64,
    /// Alpha before the first CNP.
    pub initial_alpha: f64,
    /// K: alpha decays once in each such time without a CNP.
    pub alpha_timer: Span,
    /// T: the rate increases once in each such time.
    pub rate_timer: Span,
    /// B: the rate increases once for this number of bytes sent.
    pub byte_counter: u64,
    /// F: steps of fast recovery before the increase becomes additive.
    pub fast_recovery: u32,
    /// Rate of an additive increase step.
    pub additive: f64,
    /// Rate of a hyper increase step.
    pub hyper: f64,
    /// The rate is never cut below this.
    pub minimum: f64,
    /// CNPs within this time after a cut do not cut again.
    pub cut_period: Span,
}

impl Parameters {
    /// The SIGCOMM 2015 paper (sections 3.1 and 5): g 1/256, K = T = 55 us, B 10 MB, F 5, additive 40 Mb/s.
    /// It gives no value for hyper increase and no least rate; those of [`Parameters::NS3`] are taken.
    pub const PAPER: Self = Self {
        g: 1.0 / 256.0,
        initial_alpha: 1.0,
        alpha_timer: Span(55_000),
        rate_timer: Span(55_000),
        byte_counter: 10_000_000,
        fast_recovery: 5,
        additive: 40e6,
        hyper: 200e6,
        minimum: 100e6,
        cut_period: Span(0),
    };

    /// The authors' ns-3 simulation (github.com/bobzhuyb/ns3-rdma, windows/ns-3-dev/mix/config.txt: T 60 us, B 300 kB, which
    /// is 300 MB in another version of the file, additive 40 Mb/s, hyper 200 Mb/s; qbb-net-device.cc: alpha 0.5 before the
    /// first CNP, least rate 100 Mb/s).
    pub const NS3: Self = Self {
        initial_alpha: 0.5,
        rate_timer: Span(60_000),
        byte_counter: 300_000,
        ..Self::PAPER
    };

    /// NVIDIA NICs, by the defaults of `mlxconfig` and of the DOCA documentation: alpha period 1 us, g =
    /// (1024 - 1019) / 1024, initial alpha 1023/1024, rate reduce monitor period 4 us, time reset 300
    /// us, byte reset 32,767 bytes, F 1, additive 5 and hyper 50 Mb/s.
    pub const NVIDIA: Self = Self {
        g: 5.0 / 1024.0,
        initial_alpha: 1023.0 / 1024.0,
        alpha_timer: Span(1_000),
        rate_timer: Span(300_000),
        byte_counter: 32_767,
        fast_recovery: 1,
        additive: 5e6,
        hyper: 50e6,
        minimum: 1e6,
        cut_period: Span(4_000),
    };

    /// The set of a name: `paper`, `ns3`, `nvidia`.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "paper" => Self::PAPER,
            "ns3" => Self::NS3,
            "nvidia" => Self::NVIDIA,
            _ => return None,
        })
    }
}

impl Default for Parameters {
    fn default() -> Self {
        Self::PAPER
    }
}
