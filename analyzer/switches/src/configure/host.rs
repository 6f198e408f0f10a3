//! Commands for a host: dcb of iproute2, mlnx_qos of MLNX_OFED, or lldptool of lldpad.

use super::settings::{Settings, cnp_priority, priority_list, type_of_service};
use super::step::Step;
use crate::inventory::Cluster;

/// The tool that sets PFC and the map of DSCPs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostTool {
    /// `dcb` of iproute2 5.11 and later, with the kernel's own drivers.
    Dcb,
    /// `mlnx_qos` of MLNX_OFED and DOCA.
    MlnxQos,
    /// `lldptool`, where lldpad negotiates with the switch (DCBX).
    Lldptool,
}

/// Commands for an interface of a host.
pub fn host(cluster: &Cluster, settings: &Settings, interface: &str, tool: HostTool) -> Vec<Step> {
    let mut all = vec![pause(interface)];
    match tool {
        HostTool::Dcb => all.extend(dcb(cluster, interface)),
        HostTool::MlnxQos => all.extend(mlnx_qos(cluster, settings, interface)),
        HostTool::Lldptool => all.extend(lldptool(cluster, interface)),
    }
    all.push(rdma_cm(cluster, settings, interface, tool));
    all.push(applications(cluster));
    all.push(mtu(settings, interface));
    all
}

/// The RDMA device of an interface, or a shell's expression that finds it.
fn device(settings: &Settings, interface: &str) -> String {
    settings
        .dev
        .clone()
        .unwrap_or_else(|| format!("$(basename /sys/class/net/{interface}/device/infiniband/*)"))
}

fn pause(interface: &str) -> Step {
    Step::new(&[
        "802.3x pause off: it stops the whole link and excludes PFC.",
        "Link: some drivers negotiate it again, which takes a second or two.",
    ])
    .comment(format!(
        "Undo: ethtool -A {interface} rx on tx on (never beside PFC)."
    ))
    .run(format!("ethtool -A {interface} autoneg off rx off tx off"))
}

fn dcb(cluster: &Cluster, interface: &str) -> Vec<Step> {
    let Cluster {
        priority,
        dscp,
        cnp_dscp,
        ..
    } = cluster;
    let cnp = cnp_priority(cluster);
    vec![
        Step::new(&[])
            .comment(format!(
                "PFC on priority {priority} alone: the switch is paused before the adapter drops RoCE data."
            ))
            .comment("Link: stays up.")
            .comment(format!("Undo: dcb pfc set dev {interface} prio-pfc all:off"))
            .run(format!(
                "dcb pfc set dev {interface} prio-pfc all:off {priority}:on"
            )),
        Step::new(&[])
            .comment(format!(
                "DSCP {dscp} (RoCE data) to priority {priority}, DSCP {cnp_dscp} (CNPs) to priority {cnp}."
            ))
            .comment("The first such entry makes mlx5 trust the DSCP. Link: stays up.")
            .comment(format!(
                "Undo: dcb app del dev {interface} dscp-prio {dscp}:{priority} {cnp_dscp}:{cnp}"
            ))
            .run(format!(
                "dcb app replace dev {interface} dscp-prio {dscp}:{priority} {cnp_dscp}:{cnp}"
            )),
    ]
}

fn mlnx_qos(cluster: &Cluster, settings: &Settings, interface: &str) -> Vec<Step> {
    let Cluster {
        priority,
        dscp,
        cnp_dscp,
        ..
    } = cluster;
    let cnp = cnp_priority(cluster);
    let device = device(settings, interface);
    let port = settings.port;
    let tos = type_of_service(cluster);
    let mut maps = Step::new(&[])
        .comment(format!(
            "PFC on priority {priority} alone, and the DSCP decides the priority. Link: stays up."
        ))
        .comment(format!(
            "Undo: mlnx_qos -i {interface} --trust pcp --pfc 0,0,0,0,0,0,0,0"
        ))
        .run(format!(
            "mlnx_qos -i {interface} --trust dscp --pfc {}",
            priority_list(*priority)
        ));
    // The adapter's own map takes the three upper bits of a DSCP.
    for (dscp, priority) in [(dscp, *priority), (cnp_dscp, cnp)] {
        if dscp >> 3 != priority {
            maps = maps.run(format!(
                "mlnx_qos -i {interface} --dscp2prio set,{dscp},{priority}"
            ));
        }
    }
    let congestion = Step::new(&[])
        .comment(format!(
            "Congestion control on priority {priority}: CNPs are sent for marked packets, and senders heed them."
        ))
        .comment("Link: stays up. Undo: write 0.")
        .run(format!(
            "echo 1 > /sys/class/net/{interface}/ecn/roce_np/enable/{priority}"
        ))
        .run(format!(
            "echo 1 > /sys/class/net/{interface}/ecn/roce_rp/enable/{priority}"
        ))
        .run(format!(
            "echo {cnp_dscp} > /sys/class/net/{interface}/ecn/roce_np/cnp_dscp"
        ));
    let class = Step::new(&[])
        .comment(format!(
            "All RoCE traffic of the device gets type of service {tos}: DSCP {dscp} and ECT(0)."
        ))
        .comment("New queue pairs have it. Undo: write -1.")
        .run(format!(
            "echo {tos} > /sys/class/infiniband/{device}/tc/{port}/traffic_class"
        ));
    vec![maps, congestion, class]
}

/// `enabled` takes numbers of priorities: lldptool-pfc(8) of open-lldp, as in Debian's lldpad 1.1 (`enabled=<none|[0..7],[0..7],...>`).
/// A list of eight bits such as `0,0,0,1,0,0,0,0` would turn priorities 0 and 1 on.
fn lldptool(cluster: &Cluster, interface: &str) -> Vec<Step> {
    let Cluster {
        priority,
        dscp,
        cnp_dscp,
        ..
    } = cluster;
    let cnp = cnp_priority(cluster);
    vec![
        Step::new(&[
            "LLDP with the switch in both directions, PFC's settings in it. Link: stays up.",
            "The adapter's own agent has to be off: it overwrites these settings (doctor: pfc.dcbx).",
        ])
        .comment(format!("Undo: lldptool set-lldp -i {interface} adminStatus=disabled"))
        .run(format!("lldptool set-lldp -i {interface} adminStatus=rxtx"))
        .run(format!("lldptool -T -i {interface} -V PFC enableTx=yes")),
        Step::new(&[])
            .comment(format!(
                "PFC on priority {priority} alone, whatever the switch offers. The value is a list of priorities, not of bits."
            ))
            .comment(format!("Undo: lldptool -T -i {interface} -V PFC enabled=none"))
            .run(format!(
                "lldptool -T -i {interface} -V PFC willing=no enabled={priority}"
            )),
        Step::new(&[])
            .comment(format!(
                "DSCP {dscp} (RoCE data) to priority {priority}, DSCP {cnp_dscp} (CNPs) to priority {cnp}; selector 5 is the DSCP."
            ))
            .comment(format!(
                "Undo: lldptool -T -i {interface} -V APP -d app={priority},5,{dscp}"
            ))
            .run(format!("lldptool -T -i {interface} -V APP app={priority},5,{dscp}"))
            .run(format!("lldptool -T -i {interface} -V APP app={cnp},5,{cnp_dscp}")),
    ]
}

fn rdma_cm(cluster: &Cluster, settings: &Settings, interface: &str, tool: HostTool) -> Step {
    let tos = type_of_service(cluster);
    let device = device(settings, interface);
    let port = settings.port;
    let step = Step::new(&[])
        .comment(format!(
            "Connections of rdma_cm: type of service {tos} = DSCP {} and ECT(0). New connections have it.",
            cluster.dscp
        ))
        .comment("Undo: write 0.");
    if tool == HostTool::MlnxQos {
        return step.run(format!("cma_roce_tos -d {device} -p {port} -t {tos}"));
    }
    let folder = format!("/sys/kernel/config/rdma_cm/{device}");
    step.run("modprobe rdma_cm").run(format!(
        "mkdir -p {folder} && echo {tos} > {folder}/ports/{port}/default_roce_tos"
    ))
}

fn applications(cluster: &Cluster) -> Step {
    let tos = type_of_service(cluster);
    Step::new(&["Programs without rdma_cm take it from their own settings."])
        .run(format!("export NCCL_IB_TC={tos}"))
        .run(format!("export UCX_IB_TRAFFIC_CLASS={tos}"))
        .comment(format!("perftest: --tclass={tos}."))
}

fn mtu(settings: &Settings, interface: &str) -> Step {
    let mtu = settings.host_mtu();
    Step::new(&[])
        .comment(format!(
            "MTU {mtu}: RoCE packets of 4096 bytes fit. Every switch on the path needs at least this."
        ))
        .comment("Link: mlx5 makes its queues again, traffic stops for a moment; queue pairs keep the old path MTU.")
        .comment(format!("Undo: ip link set {interface} mtu 1500"))
        .run(format!("ip link set {interface} mtu {mtu}"))
}
