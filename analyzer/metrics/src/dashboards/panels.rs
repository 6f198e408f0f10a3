//! The panels: one description, from which all dashboards are made.

mod capacity;
mod chain;
mod cluster;
mod hosts;
mod shared;
mod switch;

use super::panel::Dashboard;
use capacity::CAPACITY;
use chain::CHAIN;
use cluster::CLUSTER;
use hosts::HOSTS;
use switch::SWITCH;

/// All dashboards.
pub const DASHBOARDS: &[Dashboard] = &[
    Dashboard {
        name: "cluster",
        title: "RoCE / Cluster",
        switches: false,
        sections: CLUSTER,
    },
    Dashboard {
        name: "host",
        title: "RoCE / Host",
        switches: false,
        sections: HOSTS,
    },
    Dashboard {
        name: "switch",
        title: "RoCE / Switch",
        switches: true,
        sections: SWITCH,
    },
    Dashboard {
        name: "chain",
        title: "RoCE / Whole chain",
        switches: true,
        sections: CHAIN,
    },
    Dashboard {
        name: "capacity",
        title: "RoCE / Capacity and what is usual",
        switches: true,
        sections: CAPACITY,
    },
];
