//! Hosts, ports, links and switches, which carry packets, and their impairments.

pub(crate) mod cause;
pub(crate) mod class;
pub(crate) mod count;
pub(crate) mod host;
pub(crate) mod identification;
pub(crate) mod impair;
pub(crate) mod packet;
pub(crate) mod pause;
pub(crate) mod port;
pub(crate) mod spray;
pub(crate) mod switch;
pub(crate) mod topology;
