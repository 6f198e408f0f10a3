//! The inventory, and texts and numbers of switches and hypervisors: [`roce_model::Sample`]s, findings, pauses, configurations.
//!
//! Everything here is a pure function of what somebody else read: no files, no sockets, no clocks.

mod choice;
pub mod configure;
pub mod device;
pub mod findings;
pub mod hypervisor;
pub mod inventory;
pub mod pasted;
pub mod pauses;
mod refusal;
pub mod switch;
mod wiring;

pub use choice::HostNameError;
pub use refusal::refusal_in;
