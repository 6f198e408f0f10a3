//! Pairing: finds the two flows that are the two directions of one connection, and its evidence.

pub(crate) mod attempts;
pub(crate) mod bounded_map;
pub(crate) mod cm_exchanges;
pub(crate) mod evidence;
pub(crate) mod host_queue_pairs;
pub(crate) mod known_peers;
pub(crate) mod outstanding;
pub(crate) mod shared_ports;
