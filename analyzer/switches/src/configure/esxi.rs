//! Commands for an ESXi host with an NVIDIA adapter: parameters of its modules.

use super::settings::Settings;
use super::step::Step;
use crate::inventory::Cluster;

/// Commands for an adapter of an ESXi host. Parameters of a module hold for all of its adapters.
pub fn esxi(cluster: &Cluster, settings: &Settings, vmnic: &str) -> Vec<Step> {
    let bits = 1_u16 << cluster.priority;
    vec![
        Step::new(&["What is set now, for undoing: a set replaces all parameters of the module."])
            .run("esxcli system module parameters list -m nmlx5_core")
            .run(format!("esxcli network nic pauseParams list -n {vmnic}"))
            .run(format!("esxcli network nic dcb status get -n {vmnic}")),
        Step::new(&["802.3x pause off: it stops the whole link and excludes PFC. Link: may go down for a moment."])
            .comment(format!(
                "Undo: esxcli network nic pauseParams set -n {vmnic} -r true -t true"
            ))
            .run(format!(
                "esxcli network nic pauseParams set -n {vmnic} -r false -t false"
            )),
        Step::new(&[])
            .comment(format!(
                "PFC on priority {} alone ({bits:#04x} has one bit for each priority), and trust in the DSCP.",
                cluster.priority
            ))
            .comment("It holds for all adapters of the driver, from the next restart on.")
            .comment("Undo: esxcli system module parameters set -m nmlx5_core -p \"\", restart")
            .run(format!(
                "esxcli system module parameters set -m nmlx5_core -p \"pfctx={bits:#04x} pfcrx={bits:#04x} trust_state=2\""
            )),
        Step::new(&[])
            .comment(format!(
                "RoCE traffic of the hypervisor itself gets DSCP {}. Virtual functions choose their own.",
                cluster.dscp
            ))
            .comment("Undo: esxcli system module parameters set -m nmlx5_rdma -p \"\", restart")
            .run(format!(
                "esxcli system module parameters set -m nmlx5_rdma -p \"dscp_force={}\"",
                cluster.dscp
            )),
        Step::new(&[])
            .comment(format!(
                "The MTU is that of the virtual switch: {} (the name of the switch is the site's).",
                settings.host_mtu()
            ))
            .comment("Undo: the same with 1500. Link: stays up.")
            .run(format!(
                "esxcli network vswitch standard set -v vSwitch0 -m {}",
                settings.host_mtu()
            )),
        Step::new(&["Parameters of modules are read at the start. Running machines have to be moved away before."])
            .run("reboot"),
    ]
}
