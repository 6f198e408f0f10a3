//! Rules for scenarios of MRC beyond their types.

use super::wrong;
use crate::Error;
use crate::scenario::{Direction, FlowTable, FlowTransport, Mrc, Operation, Scenario, ServiceName, Topology};

/// Planes: the bits of a port mask would hold more, and NICs have 8 ports at most.
const MAX_PLANES: u32 = 8;
/// Paths of a plane, and EVs of a queue pair.
const MAX_PATHS: u32 = 256;
/// Queue pairs of all flow tables of a scenario.
const MAX_PAIRS: u32 = 4_096;
/// The shortest trimmed frame: MRC's headers with IPv6, SRv6 and a tag.
const MIN_TRIM: u16 = 146;
/// 1.024 us x 2^31, as with RC.
const MAX_TIMEOUT: u8 = 31;

impl Scenario {
    /// True if the flows of the scenario are those of MRC.
    pub fn is_mrc(&self) -> bool {
        self.flow.iter().any(|flow| flow.transport == FlowTransport::Mrc)
    }

    /// True if a scenario of MRC can be simulated.
    pub(super) fn check_mrc(&self) -> Result<(), Error> {
        if self.flow.iter().any(|flow| flow.transport != FlowTransport::Mrc) || !self.training.is_empty() {
            return wrong("flow.transport: all traffic of a scenario is MRC, or none".to_owned());
        }
        for (name, given) in [
            ("impairment", self.impairment.len()),
            ("pause", self.pause.len()),
            ("host", self.host.len()),
        ] {
            if given > 0 {
                return wrong(format!(
                    "{name}: with MRC give mrc.path, mrc.port or mrc.responder"
                ));
            }
        }
        if self.network.topology != Topology::Leaf || self.network.spray.is_some() {
            return wrong("network: with MRC the paths are those of [mrc]".to_owned());
        }
        for (index, flow) in self.flow.iter().enumerate() {
            check_flow(index, flow)?;
        }
        self.check_mrc_table()
    }

    fn check_mrc_table(&self) -> Result<(), Error> {
        let mrc = &self.mrc;
        if !(1..=MAX_PLANES).contains(&mrc.planes) {
            return wrong(format!("mrc.planes is {}: give 1 to {MAX_PLANES}", mrc.planes));
        }
        if !(1..=MAX_PATHS).contains(&mrc.paths) {
            return wrong(format!("mrc.paths is {}: give 1 to {MAX_PATHS}", mrc.paths));
        }
        if mrc.evs == 0 || mrc.evs > MAX_PATHS || !mrc.evs.is_multiple_of(mrc.planes) {
            return wrong(format!(
                "mrc.evs is {}: give as many for each plane, {MAX_PATHS} at most",
                mrc.evs
            ));
        }
        if mrc.srv6 && !self.network.ipv6 {
            return wrong("mrc.srv6 needs network.ipv6 = true".to_owned());
        }
        if mrc.trim_bytes < MIN_TRIM || mrc.timeout > MAX_TIMEOUT {
            return wrong(format!(
                "mrc.trim_bytes is {MIN_TRIM} at least, mrc.timeout {MAX_TIMEOUT} at most"
            ));
        }
        if mrc.retries == 0 || mrc.losses_to_leave == 0 || mrc.probe_interval.0 == 0 || mrc.guard == 0 {
            return wrong(
                "mrc.guard, mrc.retries, mrc.losses_to_leave and mrc.probe_interval are above 0".to_owned(),
            );
        }
        check_faults(mrc)
    }
}

fn check_flow(index: usize, flow: &FlowTable) -> Result<(), Error> {
    if flow.service != ServiceName::Rc
        || flow.op != Operation::Write
        || flow.direction != Direction::Forward
        || flow.cm
        || flow.reuse.is_some()
    {
        return wrong(format!(
            "flow.{index}: MRC has WRITEs in one direction, and no connection manager"
        ));
    }
    if flow.qps > MAX_PAIRS || flow.message.0 == 0 || flow.message.0 > u64::from(u32::MAX) {
        return wrong(format!(
            "flow.{index}: qps is 1 to {MAX_PAIRS}, message 1 byte to 4 GiB"
        ));
    }
    Ok(())
}

fn check_faults(mrc: &Mrc) -> Result<(), Error> {
    for (index, path) in mrc.path.iter().enumerate() {
        if path.plane >= mrc.planes || path.path.is_some_and(|path| path >= mrc.paths) {
            return wrong(format!("mrc.path.{index}: there is no such path"));
        }
        if [path.loss, path.trim, path.mark]
            .iter()
            .any(|share| !(0.0..=1.0).contains(share))
        {
            return wrong(format!("mrc.path.{index}: give probabilities from 0 to 1"));
        }
    }
    if mrc.port.iter().any(|port| port.plane >= mrc.planes) {
        return wrong("mrc.port: there is no such plane".to_owned());
    }
    if mrc
        .responder
        .iter()
        .any(|responder| !(1..=127).contains(&responder.penalty))
    {
        return wrong("mrc.responder.penalty is 1 to 127".to_owned());
    }
    if [mrc.control_loss, mrc.trim_loss]
        .iter()
        .any(|share| !(0.0..=1.0).contains(share))
    {
        return wrong("mrc.control_loss and mrc.trim_loss are 0 to 1".to_owned());
    }
    Ok(())
}
