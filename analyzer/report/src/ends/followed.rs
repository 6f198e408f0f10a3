//! Rows and events of the flows that can be the connection of an error.

use std::collections::{BTreeMap, HashMap, VecDeque};

use roce_model::{Address, FlowId, FlowKey, FlowRow, TapId, Time};

/// An event of a flow.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Event {
    pub(super) time: Time,
    pub(super) kind: &'static str,
    pub(super) value: Option<u64>,
    pub(super) detail: Option<String>,
}

/// A flow, and what is known of it.
#[derive(Clone, Debug)]
pub(super) struct FollowedFlow {
    pub(super) key: FlowKey,
    pub(super) rows: BTreeMap<(TapId, u32), FlowRow>,
    pub(super) events: VecDeque<(TapId, Event)>,
}

/// The two latest of the last packets of an address, by tap: with their flows.
pub(super) type Last = HashMap<(TapId, Address), Vec<(Time, FlowId)>>;
