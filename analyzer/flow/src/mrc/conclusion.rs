//! Rows of all connections at the end.

use roce_model::{MrcConnectionRow, MrcPathRow, MrcReports, UetTrafficRow};

/// Rows of the connections of a shard, of MRC and UET.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MrcConclusion {
    /// The connections.
    pub connections: Vec<MrcConnectionRow>,
    /// Their paths.
    pub paths: Vec<MrcPathRow>,
    /// Reports that are in no table.
    pub reports: MrcReports,
    /// Packets of UET.
    pub traffic: Vec<UetTrafficRow>,
}

impl MrcConclusion {
    /// Adds those of another shard.
    pub(crate) fn add(&mut self, other: &Self) {
        let before = u32::try_from(self.connections.len()).unwrap_or(u32::MAX);
        self.connections
            .extend(other.connections.iter().map(|row| MrcConnectionRow {
                connection: row.connection + before,
                ..row.clone()
            }));
        self.paths.extend(other.paths.iter().map(|row| MrcPathRow {
            connection: row.connection + before,
            ..row.clone()
        }));
        self.reports.ports.extend_from_slice(&other.reports.ports);
        self.reports.taps.extend_from_slice(&other.reports.taps);
        self.traffic.extend_from_slice(&other.traffic);
    }
}
