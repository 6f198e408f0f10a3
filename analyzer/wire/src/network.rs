//! Network and transport headers in front of the BTH: IP and UDP, or InfiniBand's own routing headers.

pub mod grh;
pub mod ifa;
pub mod ioam;
pub mod ipv4;
pub mod ipv6;
pub mod lrh;
pub mod srv6;
pub mod udp;
