//! Objects of stores, through another process: a run parses what anybody sent, so it opens no connection and reads no credentials itself.
//!
//! The process is started before the run gives up its rights, and ends with it (`serve`). It may connect to stores, and touch no file of this
//! machine: what is to be written comes to it as an open file. `input` lets captures be read so, `output` has the folder of results that become objects.

mod input;
mod output;
mod process;
mod run;
mod serve;
mod wire;

pub(crate) use input::local;
pub(crate) use process::{Destination, Whose};
pub(crate) use roce_store::Backoff;
pub(crate) use run::ObjectRun;
pub(crate) use serve::{ServeArguments, serve};
pub(crate) use wire::Cause;
