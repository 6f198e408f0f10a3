//! Commands on this machine and on others: with limits of time and output, over the system's ssh; and captures on many of them.
//!
//! ssh_config, agents, keys and jump hosts are the user's own. ssh asks for no password, and accepts no host key that it does not know.
//! The crates russh (0.65), openssh (0.11) and ssh2 were looked at: the first two bring many crates, the last one a C library, and none
//! of them reads all of ssh_config.

pub mod clock;
pub mod fleet;
pub mod link;
mod machine;
#[cfg(feature = "nxapi")]
mod nxapi;
mod outcome;
mod parallel;
pub mod program;
#[cfg(feature = "nxapi")]
mod push;
mod reader;
mod session;
pub mod traffic;

pub use machine::{CommandOutput, Machine, RemoteError, quoted};
pub use parallel::{each, each_again, each_mut};
#[cfg(feature = "nxapi")]
pub use push::{PushOutcome, PushTarget};
pub use reader::{Count, DeviceReader, ReaderError, Recorder};
pub use session::{Bounds, Session, SessionLine};
