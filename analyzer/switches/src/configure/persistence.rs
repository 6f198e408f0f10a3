//! Files that keep a host's settings over a restart: kernel arguments, limits, sysctl, and what runs when an interface comes up.

use super::host::{HostTool, host};
use super::settings::Settings;
use super::step::Step;
use crate::inventory::Cluster;

/// Kind of file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Persistence {
    /// Kernel arguments: GRUB and OpenShift.
    Kernel,
    /// Locked memory: limits.d, and units of systemd.
    Memlock,
    /// Settings of several ports in one subnet.
    Sysctl,
    /// A unit of systemd for an interface.
    Systemd,
    /// A pod of Kubernetes.
    K8s,
    /// A dispatcher of NetworkManager.
    NetworkManager,
    /// A file of netplan, and a dispatcher of systemd-networkd.
    Netplan,
}

/// The files of a kind. Those that run commands have the ones of [`host`].
pub fn persistence(
    cluster: &Cluster,
    settings: &Settings,
    kind: Persistence,
    interface: Option<&str>,
    tool: HostTool,
) -> Vec<Step> {
    let interface = interface.unwrap_or("IFACE");
    match kind {
        Persistence::Kernel => kernel(),
        Persistence::Memlock => memlock(),
        Persistence::Sysctl => sysctl(),
        Persistence::K8s => pod(),
        Persistence::Systemd => systemd(&commands(cluster, settings, interface, tool), interface),
        Persistence::NetworkManager => {
            network_manager(&commands(cluster, settings, interface, tool), settings, interface)
        }
        Persistence::Netplan => netplan(&commands(cluster, settings, interface, tool), settings, interface),
    }
}

/// Commands of an interface, without variables of applications and without the MTU, which the network's own files have.
fn commands(cluster: &Cluster, settings: &Settings, interface: &str, tool: HostTool) -> Vec<String> {
    let all = host(cluster, settings, interface, tool);
    all.into_iter()
        .flat_map(|step| step.commands)
        .filter(|command| !command.starts_with("export ") && !command.starts_with("ip link "))
        .collect()
}

/// A command that writes a file, for a root shell.
fn file(step: Step, path: &str, text: &str) -> Step {
    step.run(format!("cat > {path} <<'EOF'")).lines(text).run("EOF")
}

fn kernel() -> Vec<Step> {
    let grub = Step::new(&[
        "The IOMMU in pass-through mode: adapters reach memory without translation of each page (doctor: iommu).",
        "It changes the kernel's arguments, from the next restart on. On AMD leave intel_iommu=on out.",
        "Undo: remove the file, update-grub, restart.",
    ]);
    let openshift = Step::new(&[
        "OpenShift: the operator restarts the workers one after the other.",
        "Undo: oc delete machineconfig 99-worker-roce-iommu",
    ]);
    let machine_config = "apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata:
  name: 99-worker-roce-iommu
  labels:
    machineconfiguration.openshift.io/role: worker
spec:
  kernelArguments:
    - intel_iommu=on
    - iommu=pt";
    vec![
        file(
            grub,
            "/etc/default/grub.d/roce.cfg",
            "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX intel_iommu=on iommu=pt\"",
        )
        .run("update-grub"),
        openshift
            .run("oc apply -f - <<'EOF'")
            .lines(machine_config)
            .run("EOF"),
    ]
}

fn memlock() -> Vec<Step> {
    vec![
        file(
            Step::new(&[
                "RDMA locks the memory that it uses; the usual limit of 8 MB is too small. New logins have it.",
                "Undo: remove the file.",
            ]),
            "/etc/security/limits.d/rdma.conf",
            "* soft memlock unlimited\n* hard memlock unlimited",
        ),
        file(
            Step::new(&[
                "Services do not read limits.d: containerd, slurmd and others need it in their unit. Each restarts once.",
                "Undo: remove the file, systemctl daemon-reload.",
            ])
            .run("mkdir -p /etc/systemd/system/containerd.service.d"),
            "/etc/systemd/system/containerd.service.d/memlock.conf",
            "[Service]\nLimitMEMLOCK=infinity",
        )
        .run("systemctl daemon-reload && systemctl restart containerd"),
    ]
}

fn sysctl() -> Vec<Step> {
    vec![
        file(
            Step::new(&[
                "Several ports in one subnet: each answers ARP for its own address alone, and replies may take another port.",
                "Without it connections of different rails share one port (doctor: routing.rails). Link: stays up.",
                "Undo: remove the file, sysctl --system.",
            ]),
            "/etc/sysctl.d/60-roce.conf",
            "net.ipv4.conf.all.arp_ignore = 1\nnet.ipv4.conf.all.arp_announce = 2\nnet.ipv4.conf.all.rp_filter = 2\nnet.ipv4.conf.default.rp_filter = 2",
        )
        .run("sysctl --system"),
    ]
}

fn pod() -> Vec<Step> {
    let pod = "spec:
  containers:
    - name: trainer
      securityContext:
        capabilities:
          add: [\"IPC_LOCK\"]
      resources:
        limits:
          nvidia.com/roce_gdr: 1
      volumeMounts:
        - { name: shm, mountPath: /dev/shm }
  volumes:
    - name: shm
      emptyDir: { medium: Memory }";
    vec![
        Step::new(&[
            "A pod that locks memory (IPC_LOCK), has an RDMA device, and shared memory for NCCL.",
            "The resource's name is that of the site's device plugin: kubectl get node -o yaml shows it.",
            "Whether the limit of locked memory holds is the container runtime's matter: --print memlock.",
        ])
        .lines(pod),
    ]
}

/// A script that runs commands, each of which may fail without stopping the rest.
fn script(commands: &[String]) -> String {
    format!("#!/bin/sh\n{}", commands.join("\n"))
}

fn systemd(commands: &[String], interface: &str) -> Vec<Step> {
    let unit = format!(
        "[Unit]
Description=RoCE settings of {interface}
BindsTo=sys-subsystem-net-devices-{device}.device
After=sys-subsystem-net-devices-{device}.device network-pre.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/sbin/roce-{interface}

[Install]
WantedBy=sys-subsystem-net-devices-{device}.device",
        // systemd-escape: a hyphen of a name becomes \x2d.
        device = interface.replace('-', "\\x2d")
    );
    let path = format!("/usr/local/sbin/roce-{interface}");
    vec![
        file(
            Step::new(&[
                "DCB's settings are lost when the adapter is reset or the driver is loaded: this runs whenever the interface appears.",
            ]),
            &path,
            &script(commands),
        )
        .run(format!("chmod 755 {path}")),
        file(
            Step::new(&["Link: as with the commands themselves."]).comment(format!(
                "Undo: systemctl disable --now roce-{interface}.service; what is set stays until the next restart."
            )),
            &format!("/etc/systemd/system/roce-{interface}.service"),
            &unit,
        )
        .run(format!(
            "systemctl daemon-reload && systemctl enable --now roce-{interface}.service"
        )),
    ]
}

fn network_manager(commands: &[String], settings: &Settings, interface: &str) -> Vec<Step> {
    let path = "/etc/NetworkManager/dispatcher.d/50-roce";
    let body = format!(
        "#!/bin/sh\n[ \"$1\" = {interface} ] && [ \"$2\" = up ] || exit 0\n{}",
        commands.join("\n")
    );
    vec![
        Step::new(&["The connection has the interface's name here. Link: comes up again with the new MTU."])
            .comment(format!(
                "Undo: nmcli connection modify {interface} 802-3-ethernet.mtu 0"
            ))
            .run(format!(
                "nmcli connection modify {interface} 802-3-ethernet.mtu {}",
                settings.host_mtu()
            )),
        file(
            Step::new(&[
                "NetworkManager runs it when the interface comes up. Its own dcb settings need fcoe-utils and lldpad.",
                "Undo: remove the file.",
            ]),
            path,
            &body,
        )
        .run(format!("chmod 755 {path}"))
        .run(format!("nmcli connection up {interface}")),
    ]
}

fn netplan(commands: &[String], settings: &Settings, interface: &str) -> Vec<Step> {
    let path = "/etc/networkd-dispatcher/routable.d/50-roce";
    let body = format!(
        "#!/bin/sh\n[ \"$IFACE\" = {interface} ] || exit 0\n{}",
        commands.join("\n")
    );
    let yaml = format!(
        "network:\n  version: 2\n  ethernets:\n    {interface}:\n      mtu: {}",
        settings.host_mtu()
    );
    vec![
        file(
            Step::new(&["netplan sets the MTU; it has no settings of DCB. Undo: remove the file."]),
            "/etc/netplan/90-roce.yaml",
            &yaml,
        )
        .run("chmod 600 /etc/netplan/90-roce.yaml"),
        file(
            Step::new(&["networkd-dispatcher runs it when the interface comes up. Undo: remove the file."]),
            path,
            &body,
        )
        .run(format!("chmod 755 {path}"))
        .run("netplan apply"),
    ]
}
