//! Traffic: connections, their two ends, their messages, and the limits of their rates.

pub(crate) mod account;
pub(crate) mod activity;
pub(crate) mod connect;
pub(crate) mod endpoint;
pub(crate) mod gaps;
pub(crate) mod manager;
pub(crate) mod nccl;
pub(crate) mod requester;
pub(crate) mod responder;
pub(crate) mod traffic;
pub(crate) mod training;
