//! The version of the dataset and the names of its tables.

/// Rises when a column changes its meaning or its type; new columns do not raise it. No other version is read.
pub const SCHEMA_VERSION: u32 = 2;

/// The tables of a dataset, each a folder.
pub const TABLES: [&str; 21] = [
    "flows",
    "timeline",
    "events",
    "episodes",
    "findings",
    "steps",
    "taps",
    "vantages",
    "hops",
    "hop_timeline",
    "ends",
    "waits",
    "collectives",
    "credits",
    "collective_waits",
    "mrc_connections",
    "mrc_paths",
    "uet_traffic",
    "hops_inband",
    "samples",
    "run",
];
