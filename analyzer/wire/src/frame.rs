//! What a captured frame begins with: link-layer headers and the pseudo headers of capture tools.

pub mod erf;
pub mod ethernet;
pub mod loopback;
pub mod sll;
pub mod sll2;
pub mod vlan;
