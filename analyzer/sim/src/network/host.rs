//! A host's NIC: which queue pair sends next, and what is done with packets that come in.

mod steps;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::dcqcn::NotificationPoint;
use crate::engine::events::EndpointId;
use crate::network::identification::Identifier;
use crate::network::pause::Drain;
use crate::units::Picos;

/// State of a host's NIC.
#[derive(Debug)]
pub(crate) struct HostState {
    /// Ends that may send, in turn.
    ready: VecDeque<EndpointId>,
    /// Ends that may send later.
    pacing: BinaryHeap<Reverse<(Picos, EndpointId)>>,
    wake: Picos,
    /// The end whose packet leaves the port.
    pub leaves: Option<EndpointId>,
    pub notification: NotificationPoint,
    pub drain: Option<Drain>,
    pub drain_priority: u8,
    /// IP identification of the packets that it sends.
    pub identifier: Identifier,
    /// PSN of the next packet of queue pair 1.
    pub management_psn: u32,
}

impl HostState {
    pub(crate) fn new(notification: NotificationPoint, identifier: Identifier) -> Self {
        Self {
            ready: VecDeque::new(),
            pacing: BinaryHeap::new(),
            wake: Picos::NEVER,
            leaves: None,
            notification,
            drain: None,
            drain_priority: 0,
            identifier,
            management_psn: 0,
        }
    }
}
