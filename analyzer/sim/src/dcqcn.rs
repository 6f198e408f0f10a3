//! DCQCN, the congestion control of RoCEv2: the notification point at the receiver's NIC and the reaction point at
//! the sender's.
//!
//! Source: Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, sections 3 and 5.
//! The third part, the congestion point, is the RED marking of a switch queue: see `switch`.

mod notification;
mod parameters;
mod reaction;

pub use notification::{CnpScope, NotificationPoint};
pub use parameters::Parameters;
pub use reaction::ReactionPoint;
