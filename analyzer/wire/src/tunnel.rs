//! Encapsulations that mirrored or overlaid traffic comes in.

pub mod erspan;
pub mod geneve;
pub mod gre;
pub mod mpls;
pub mod vxlan;
