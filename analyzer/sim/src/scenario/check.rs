//! Rules for a scenario beyond its types. Names of hosts and links are looked up when it is built.

mod mrc;

use super::{Collective, Operation, Scenario, ServiceName, SwitchPause, Topology, Training};
use crate::Error;
use crate::units::Picos;

/// More would need more memory than a simulation of single packets is good for.
const MAX_HOSTS: u32 = 4_096;
const MAX_SWITCHES: u32 = 256;
/// Queue pairs of one flow table from one host to another.
const MAX_QPS: u32 = 16_384;
/// Shortest period of anything that repeats.
const MIN_PERIOD: Picos = Picos::from_nanos(1);
const SHORTEST: Picos = Picos::from_nanos(1_000);
/// Paths between two hosts: a large fabric has 256 spines.
const MAX_PATHS: u32 = 256;
/// The longest skew and jitter of paths.
const MAX_SKEW: Picos = Picos::from_nanos(500_000);
/// Channels of a job (`MAXCHANNELS` of NCCL is 64).
const MAX_CHANNELS: u32 = 64;
/// Bytes of a receiver's buffer.
const MIN_SLICE: u64 = 256;
const MAX_SLICE: u64 = 1 << 24;
/// Slices of a step's data.
const MAX_SLICES: u64 = 1 << 16;
/// Queue pairs of a connection of NCCL.
const MAX_LANE_QPS: u32 = 128;
/// Taps are numbered in the bits of a word.
const MAX_TAPS: usize = 64;

impl Scenario {
    /// True if it can be simulated.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.check_network()?;
        self.check_numbers()?;
        self.check_traffic()?;
        if self.is_mrc() {
            return self.check_mrc();
        }
        Ok(())
    }

    fn check_network(&self) -> Result<(), Error> {
        let network = &self.network;
        if network.hosts < 2 || network.hosts > MAX_HOSTS {
            return wrong(format!(
                "network.hosts is {}: give 2 to {MAX_HOSTS}",
                network.hosts
            ));
        }
        if network.topology == Topology::Direct && network.hosts != 2 {
            return wrong("network.topology \"direct\" joins 2 hosts".to_owned());
        }
        if network.topology == Topology::LeafSpine {
            for (name, count) in [("leaves", network.leaves), ("spines", network.spines)] {
                if count == 0 || count > MAX_SWITCHES {
                    return wrong(format!("network.{name} is {count}: give 1 to {MAX_SWITCHES}"));
                }
            }
        }
        if network.topology == Topology::Ring {
            let most = MAX_SWITCHES.min(network.hosts);
            if !(3..=most).contains(&network.leaves) {
                return wrong(format!(
                    "network.leaves is {}: a ring has 3 to {most}, each with a host",
                    network.leaves
                ));
            }
            if network.spray.is_some() {
                return wrong("network.spray: a ring has one path".to_owned());
            }
        }
        if network.vlan.is_some_and(|vlan| vlan > 4_094) {
            return wrong("network.vlan is 0 to 4094".to_owned());
        }
        if self.tap.len() > MAX_TAPS {
            return wrong(format!("{} taps: there can be {MAX_TAPS}", self.tap.len()));
        }
        Ok(())
    }

    fn check_numbers(&self) -> Result<(), Error> {
        let (switch, nic, dcqcn) = (&self.switch, &self.nic, &self.dcqcn);
        if ![256, 512, 1024, 2048, 4096].contains(&nic.mtu) {
            return wrong(format!(
                "nic.mtu is {}: give 256, 512, 1024, 2048 or 4096",
                nic.mtu
            ));
        }
        if nic.rnr_timer > 31 {
            return wrong("nic.rnr_timer is a code from 0 to 31".to_owned());
        }
        if nic.dscp > 63 || dcqcn.cnp_dscp > 63 {
            return wrong("a DSCP is 0 to 63".to_owned());
        }
        if switch.quanta == 0 {
            return wrong("switch.quanta is 1 to 65535".to_owned());
        }
        if switch.kmin > switch.kmax {
            return wrong("switch.kmin is more than switch.kmax".to_owned());
        }
        if switch.pause != SwitchPause::Off && switch.xon > switch.xoff {
            return wrong("switch.xon is more than switch.xoff".to_owned());
        }
        if switch
            .ecn_priorities
            .iter()
            .chain(&switch.pause_priorities)
            .any(|priority| *priority > 7)
        {
            return wrong("a priority is 0 to 7".to_owned());
        }
        if let Some(spray) = self.network.spray {
            if !(2..=MAX_PATHS).contains(&spray.paths) {
                return wrong(format!(
                    "network.spray.paths is {}: give 2 to {MAX_PATHS}",
                    spray.paths
                ));
            }
            if spray.skew.max(spray.jitter) > MAX_SKEW {
                return wrong("network.spray.skew and network.spray.jitter are 0 to 500 us".to_owned());
            }
        }
        if nic.ooo_nak_packets == Some(0) {
            return wrong("nic.ooo_nak_packets is 1 at least".to_owned());
        }
        let mut shares = vec![("switch.pmax", switch.pmax), ("dcqcn.g", dcqcn.g.unwrap_or(0.0))];
        for table in &self.impairment {
            shares.extend([
                ("impairment.loss", table.loss),
                ("impairment.corrupt", table.corrupt),
                ("impairment.reorder", table.reorder),
                ("impairment.duplicate", table.duplicate),
                (
                    "impairment.lose_retransmissions",
                    table.lose_retransmissions.unwrap_or(0.0),
                ),
            ]);
        }
        shares.extend(
            self.training
                .iter()
                .map(|table| ("training.spread", table.spread)),
        );
        for (name, share) in shares {
            if !(0.0..=1.0).contains(&share) {
                return wrong(format!("{name} is {share}: give 0 to 1"));
            }
        }
        Ok(())
    }

    fn check_traffic(&self) -> Result<(), Error> {
        if self.flow.is_empty() && self.training.is_empty() {
            return wrong("there is no traffic: add [[flow]] or [[training]]".to_owned());
        }
        for (index, table) in self.flow.iter().enumerate() {
            if table.qps == 0 || table.qps > MAX_QPS {
                return wrong(format!("flow.{index}.qps is {}: give 1 to {MAX_QPS}", table.qps));
            }
            if table.service != ServiceName::Rc && table.op == Operation::Read {
                return wrong(format!("flow.{index}: READ needs service \"rc\""));
            }
            if table.service == ServiceName::Ud && table.op != Operation::Send {
                return wrong(format!("flow.{index}: service \"ud\" needs op = \"send\""));
            }
            if [table.dscp, table.reverse_dscp]
                .into_iter()
                .flatten()
                .any(|dscp| dscp > 63)
            {
                return wrong(format!("flow.{index}: a DSCP is 0 to 63"));
            }
            if table.pace.is_some() && table.interval.is_some() {
                return wrong(format!("flow.{index}: give pace or interval, not both"));
            }
            if table.on.is_some() != table.off.is_some() {
                return wrong(format!("flow.{index}: on and off belong together"));
            }
            for (name, time) in [
                ("interval", table.interval),
                ("refill", table.refill),
                ("on", table.on),
                ("off", table.off),
            ] {
                if time.is_some_and(|time| time < MIN_PERIOD) {
                    return wrong(format!("flow.{index}.{name} is 1 ns at least"));
                }
            }
        }
        for table in &self.pause {
            if table.on < SHORTEST || table.off.is_some_and(|off| off < SHORTEST) {
                return wrong("pause.on and pause.off are 1 us at least".to_owned());
            }
        }
        for (index, table) in self.training.iter().enumerate() {
            if table.compute < SHORTEST {
                return wrong(format!("training.{index}.compute is 1 us at least"));
            }
            if table.qps == 0 || table.qps > MAX_QPS {
                return wrong(format!(
                    "training.{index}.qps is {}: give 1 to {MAX_QPS}",
                    table.qps
                ));
            }
            if table.is_nccl() {
                check_nccl(index, table)?;
            } else if !table.late.is_empty() || !table.receiver.is_empty() {
                return wrong(format!(
                    "training.{index}: late and receiver need transport = \"nccl\""
                ));
            }
        }
        Ok(())
    }
}

/// A job with NCCL's messages.
fn check_nccl(index: usize, table: &Training) -> Result<(), Error> {
    let wrong = |text: String| wrong(format!("training.{index}.{text}"));
    if table.channels == 0 || table.channels > MAX_CHANNELS {
        return wrong(format!(
            "channels is {}: give 1 to {MAX_CHANNELS}",
            table.channels
        ));
    }
    if !(MIN_SLICE..=MAX_SLICE).contains(&table.slice.0) {
        return wrong(format!(
            "slice is {}: give {MIN_SLICE} to {MAX_SLICE} bytes",
            table.slice.0
        ));
    }
    if table.bytes.0 == 0 || table.bytes.0 / table.slice.0 > MAX_SLICES {
        return wrong(format!(
            "bytes is {}: give 1 byte to {MAX_SLICES} slices",
            table.bytes.0
        ));
    }
    if table.qps > MAX_LANE_QPS {
        return wrong(format!("qps is {}: give 1 to {MAX_LANE_QPS}", table.qps));
    }
    if table.credit_dscp.is_some_and(|dscp| dscp > 63) {
        return wrong("credit_dscp: a DSCP is 0 to 63".to_owned());
    }
    if table.slow_rank.is_some() {
        return wrong("slow_rank: give late".to_owned());
    }
    if table.by_id && !table.version.numbers_requests() {
        return wrong("by_id needs version 2.29 or later".to_owned());
    }
    let grouped = table.ranks_per_host > 1;
    if !(1..=8).contains(&table.ranks_per_host) {
        return wrong("ranks_per_host is 1 to 8".to_owned());
    }
    if grouped && (table.collective != Collective::AllToAll || !table.version.groups()) {
        return wrong(
            "ranks_per_host needs collective = \"all-to-all\" and version 2.12 or later".to_owned(),
        );
    }
    Ok(())
}

fn wrong<T>(text: String) -> Result<T, Error> {
    Err(Error::Scenario(text))
}
