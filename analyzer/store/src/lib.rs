//! Objects of S3, Google Cloud Storage and Azure: read as a stream, written whole.
//!
//! Credentials come from the environment and from roles of the instance alone, as the crate `object_store` finds them. No error of
//! this crate has one: texts of the store pass [`redact`]. This crate alone uses `object_store`. It does not know what an object holds, nor which
//! files belong together.

mod backoff;
mod client;
mod environment;
mod error;
mod location;
mod read;
pub mod redact;
mod write;

pub use backoff::Backoff;
pub use client::Client;
pub use environment::{credential_folders, ports};
pub use error::Error;
pub use location::{Location, Scheme, local_path};
pub use read::ObjectReader;

#[cfg(test)]
mod tests;
