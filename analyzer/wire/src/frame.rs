//! Headers at the start of a captured frame: link layers, and pseudo headers of capture tools.

pub mod csig;
pub mod erf;
pub mod ethernet;
pub mod loopback;
pub mod sll;
pub mod sll2;
pub mod vlan;
