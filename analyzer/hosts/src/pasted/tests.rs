use std::fmt::Write as _;

use serde_json::json;

use super::*;
use crate::doctor::{Outcome, Plan, Status, judge};

fn text_of(host: &Host, path: &str) -> String {
    host.text(path).unwrap_or_default()
}

/// After rdma-core, libibverbs/examples/devinfo.c.
const DEVINFO: &str = "gpu1:~$ ibv_devinfo -v\nhca_id:\tmlx5_2\n\ttransport:\t\t\tInfiniBand (0)\n\tfw_ver:\t\t\t\t28.39.1002\n\tnode_guid:\t\t\ta088:c203:00aa:1c2e\n\tvendor_part_id:\t\t\t4129\n\tboard_id:\t\t\tMT_0000000838\n\tphys_port_cnt:\t\t\t1\n\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_DOWN (1)\n\t\t\tmax_mtu:\t\t4096 (5)\n\t\t\tactive_mtu:\t\t1024 (3)\n\t\t\tsm_lid:\t\t\t0\n\t\t\tport_lid:\t\t17\n\t\t\tlink_layer:\t\tEthernet\n\t\t\tactive_width:\t\t4X (2)\n\t\t\tactive_speed:\t\t100.0 Gbps (128)\n\t\t\tphys_state:\t\tLINK_UP (5)\n\t\t\tGID[  0]:\t\tfe80:0000:0000:0000:a288:c2ff:feaa:1c2e, RoCE v1\n\t\t\tGID[  3]:\t\t0000:0000:0000:0000:0000:ffff:0a00:6702, RoCE v2\n";

#[test]
fn devices_of_ibv_devinfo_are_files() {
    let host = pasted_host(DEVINFO, "out").unwrap();
    assert!(host.is_partial && host.is_recorded);
    let port = "sys/class/infiniband/mlx5_2/ports/1";
    for (path, expected) in [
        ("state", "1: DOWN"),
        ("phys_state", "5: LinkUp"),
        ("link_layer", "Ethernet"),
        // Four lanes of 100 Gbit/s.
        ("rate", "400 Gb/sec (4X NDR)"),
        ("lid", "0x11"),
        ("gids/3", "0000:0000:0000:0000:0000:ffff:0a00:6702"),
        ("gid_attrs/types/0", "IB/RoCE v1"),
        ("gid_attrs/types/3", "RoCE v2"),
    ] {
        assert_eq!(text_of(&host, &format!("{port}/{path}")), expected, "{path}");
    }
    assert_eq!(
        text_of(&host, "sys/class/infiniband/mlx5_2/board_id"),
        "MT_0000000838"
    );
    assert!(!host.has("sys/class/infiniband/mlx5_2/device/physfn"));
    let virtual_one = DEVINFO.replace("4129", "4126");
    let host = pasted_host(&virtual_one, "out").unwrap();
    assert!(host.has("sys/class/infiniband/mlx5_2/device/physfn"));
}

#[test]
fn addresses_and_interfaces() {
    let text = "DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4  \t\tVER\tDEV\n---\t----\t-----\t---\nmlx5_0\t1\t0\tfe80:0000:0000:0000:ba59:9fff:fea1:b2c0\t\t\tv1\tens1f0np0\nmlx5_0\t1\t3\t0000:0000:0000:0000:0000:ffff:c0a8:0001\t192.168.0.1  \tv2\tens1f0np0\nn_gids_found=2\n\
        link mlx5_1/1 state INIT physical_state POLLING netdev ens2\n0000:5e:00.0 mlx5_4 (MT4123 - X) ConnectX-6 VPI fw 20.35.1012 port 1 (ACTIVE) ==> ens5f0 (Up)\nmlx5_6 port 1 ==> ib0 (Down)\n";
    let host = pasted_host(text, "gids").unwrap();
    let port = "sys/class/infiniband/mlx5_0/ports/1";
    assert_eq!(text_of(&host, &format!("{port}/gid_attrs/types/3")), "RoCE v2");
    assert_eq!(text_of(&host, &format!("{port}/gid_attrs/ndevs/0")), "ens1f0np0");
    assert_eq!(
        text_of(&host, "sys/class/infiniband/mlx5_1/ports/1/state"),
        "2: INIT"
    );
    assert!(host.has("sys/class/infiniband/mlx5_1/device/net/ens2"));
    assert!(host.has("sys/class/infiniband/mlx5_6/device/net/ib0"));
    let uevent = "sys/class/infiniband/mlx5_4/device/uevent";
    assert_eq!(
        host.field(uevent, "PCI_SLOT_NAME").as_deref(),
        Some("0000:5e:00.0")
    );
}

#[test]
fn settings_of_interfaces() {
    let text = "# mlnx_qos -i ens1f0\nDCBX mode: OS controlled\nPriority trust state: dscp\ndscp2prio mapping:\n\tprio:0 dscp:07,06,05,\n\tprio:3 dscp:31,26,24,\nReceive buffer size (bytes): 20016,156096,0,0,0,0,0,0,max_buffer_size=262016\nPFC configuration:\n\tpriority    0   1   2   3   4   5   6   7\n\tenabled     0   0   0   1   0   0   0   0   \n\tbuffer      0   0   0   1   0   0   0   0   \n\
        # ethtool -a ens1f0\nPause parameters for ens1f0:\nAutonegotiate:\toff\nRX:\t\ton\nTX:\t\toff\n7: ens1f0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 4200 qdisc mq state UP mode DEFAULT group default qlen 1000\nexport NCCL_IB_TC=\"106\"\nPATH=/bin\nmax locked memory           (kbytes, -l) 64\n";
    let host = pasted_host(text, "out").unwrap();
    let answer = |name: &str| host.json(&format!("answers/{name}.json")).unwrap();
    assert_eq!(answer("dcb-pfc.ens1f0")["prio_pfc"][3], true);
    assert_eq!(answer("dcb-app.ens1f0")["dscp_prio"][4], json!([26, 3]));
    assert_eq!(answer("dcb-buffer.ens1f0")["buffer_size"][1], 156_096);
    assert_eq!(
        answer("ethtool-pause.ens1f0"),
        json!({ "autonegotiate": false, "rx": true, "tx": false })
    );
    assert_eq!(answer("env"), json!({ "NCCL_IB_TC": "106" }));
    assert_eq!(text_of(&host, "sys/class/net/ens1f0/mtu"), "4200");
    // 64 kilobytes.
    assert!(text_of(&host, "proc/self/limits").contains(" 65536 "));
}

/// After infiniband-diags, src/ibstat.c, and dcb-pfc(8), dcb-app(8).
#[test]
fn ports_of_ibstat_and_settings_of_dcb() {
    let text = "CA 'mlx5_3'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tFirmware version: 28.36.1700\n\tPort 1:\n\t\tState: Initializing\n\t\tPhysical state: LinkUp\n\t\tRate: 400\n\t\tBase lid: 65535\n\t\tSM lid: 0\n\t\tLink layer: InfiniBand\n\
        $ dcb pfc show dev ens2f1np1\npfc-cap 8 macsec-bypass off delay 0\nprio-pfc 0:off 1:off 2:off 3:off 4:off 5:on 6:off 7:off\n$ dcb app show dev ens2f1np1\ndscp-prio AF41:5 48:6\n";
    let host = pasted_host(text, "out").unwrap();
    let port = "sys/class/infiniband/mlx5_3/ports/1";
    for (name, expected) in [
        ("state", "2: INIT"),
        ("rate", "400 Gb/sec"),
        ("lid", "0xffff"),
        ("link_layer", "InfiniBand"),
    ] {
        assert_eq!(text_of(&host, &format!("{port}/{name}")), expected, "{name}");
    }
    let pfc = host.json("answers/dcb-pfc.ens2f1np1.json").unwrap();
    assert_eq!(
        (&pfc["prio_pfc"][4], &pfc["prio_pfc"][5]),
        (&json!(false), &json!(true))
    );
    let app = host.json("answers/dcb-app.ens2f1np1.json").unwrap();
    assert_eq!(app["dscp_prio"], json!([["AF41", 5], ["48", 6]]));
}

#[test]
fn devices_of_lspci() {
    let text = "3b:00.0 Ethernet controller: Mellanox Technologies MT28908 Family [ConnectX-6]\n\tSubsystem: Mellanox Technologies Device 0028\n\tCapabilities: [60] Express (v2) Endpoint, MSI 00\n\t\tDevCap:\tMaxPayload 512 bytes, PhantFunc 0\n\t\tDevCtl:\tCorrErr+ NonFatalErr+\n\t\t\tRlxdOrd+ ExtTag+\n\t\t\tMaxPayload 256 bytes, MaxReadReq 512 bytes\n\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x16, ASPM not supported\n\t\tLnkSta:\tSpeed 8GT/s (downgraded), Width x8 (downgraded)\n";
    let host = pasted_host(text, "lspci").unwrap();
    let folder = "sys/bus/pci/devices/0000:3b:00.0";
    for (name, expected) in [
        ("vendor", "0x15b3"),
        ("max_link_speed", "16 GT/s PCIe"),
        ("current_link_width", "8"),
    ] {
        assert_eq!(text_of(&host, &format!("{folder}/{name}")), expected, "{name}");
    }
    // Payload 256 is code 1 in bits 7:5, 512 is code 2 in bits 14:12.
    let space = host.bytes(&format!("{folder}/config")).unwrap();
    assert_eq!(space[0x68..0x6a], 0x2020_u16.to_le_bytes());
}

#[test]
fn files_behind_their_paths() {
    for text in [
        "/sys/class/net/ens1/mtu:9000\n",
        "$ grep . /sys/class/net/ens1/mtu\n/sys/class/net/ens1/mtu:9000\n",
        "sys/class/net/ens1/mtu = 9000\n",
        "==> /sys/class/net/ens1/mtu <==\n9000\n\n==> /sys/class/net/ens1/operstate <==\nup\n",
    ] {
        let host = pasted_host(text, "out").unwrap();
        assert_eq!(text_of(&host, "sys/class/net/ens1/mtu"), "9000", "{text}");
    }
    let host = pasted_host("/sys/bus/pci/devices/0000:3b:00.0/numa_node:1\n", "out").unwrap();
    assert_eq!(text_of(&host, "sys/bus/pci/devices/0000:3b:00.0/numa_node"), "1");
}

#[test]
fn counters_alone_and_other_texts_are_no_host() {
    for text in [
        "",
        "hello\n",
        "NIC statistics:\n     rx_prio3_pause: 41210\n",
        "/sys/class/infiniband/mlx5_0/ports/1/hw_counters/np_cnp_sent:12\n",
        "link mlx5_0/1 rx_write_requests 0 out_of_buffer 3\n",
        "hca_id:\nport:\nGID[:\n==> \nDEV ==> \n",
        ":::\n==> /sys/ <==",
    ] {
        let host = pasted_host(text, "out");
        assert!(
            host.is_none_or(|host| host.names("sys/class/infiniband").is_empty()),
            "{text}"
        );
    }
}

/// After MLNX_OFED's ibdev2netdev, ethtool's settings.c and pciutils' lspci -vv.
#[test]
fn one_adapter_is_joined_with_its_interface_and_its_slot() {
    let text = "# ibdev2netdev\nmlx5_4 port 1 ==> ens5 (Up)\nmlx5_4 port 2 ==> ens6 (Down)\n# ethtool ens5\nSettings for ens5:\n\
        \tSupported link modes:   40000baseCR4/Full\n\t                        100000baseCR4/Full\n\tSupported pause frame use: Symmetric\n\
        \tSpeed: 40000Mb/s\n# lspci -vv\n3b:00.0 Ethernet controller: Mellanox Technologies MT2892 Family [ConnectX-6 Dx]\n\
        \tLnkCap:\tPort #0, Speed 16GT/s, Width x16, ASPM not supported\n\tLnkSta:\tSpeed 16GT/s, Width x8 (downgraded)\n";
    let host = pasted_host(text, "out").unwrap();
    let device = "sys/class/infiniband/mlx5_4";
    assert_eq!(text_of(&host, &format!("{device}/ports/1/state")), "4: ACTIVE");
    assert_eq!(text_of(&host, &format!("{device}/ports/2/state")), "1: DOWN");
    assert_eq!(text_of(&host, &format!("{device}/ports/1/rate")), "40 Gb/sec");
    assert_eq!(
        text_of(&host, &format!("{device}/device/uevent")),
        "PCI_SLOT_NAME=0000:3b:00.0"
    );
    assert_eq!(
        host.json("answers/ethtool-link.ens5.json").unwrap(),
        json!({ "max_speed_mbit": 100_000 })
    );
}

/// After MLNX_OFED's show_gids, cma_roce_tos and cma_roce_mode, and its file tc/N/traffic_class.
#[test]
fn answers_behind_a_prompt_are_files() {
    let text = "[root@gpu12 ~]# show_gids\nDEV\tPORT\tINDEX\tGID\t\tIPv4\t\tVER\tDEV\n\
        mlx5_1\t1\t1\tfe80:0000:0000:0000:0e42:a1ff:fe31:7a41\t\t\tv2\tens2f1np1\n\
        root@n:~# ulimit -l\n64\nroot@n:~# cma_roce_tos -d mlx5_1 -p 1\n106\n$ sudo cma_roce_mode -d mlx5_1 -p 1\nRoCE v2\n\
        $ cat /sys/class/infiniband/mlx5_1/tc/1/traffic_class\nGlobal tclass=106\n$ ulimit -n\n$ cat /sys/class/net/ens1/mtu\n# \n";
    let host = pasted_host(text, "out").unwrap();
    let (device, manager) = (
        "sys/class/infiniband/mlx5_1",
        "sys/kernel/config/rdma_cm/mlx5_1/ports/1",
    );
    for (path, expected) in [
        (format!("{device}/ports/1/link_layer"), "Ethernet"),
        (format!("{device}/device/net/ens2f1np1/name"), "ens2f1np1"),
        (format!("{device}/tc/1/traffic_class"), "Global tclass=106"),
        (format!("{manager}/default_roce_tos"), "106"),
        (format!("{manager}/default_roce_mode"), "RoCE v2"),
        ("sys/class/net/ens1/mtu".to_owned(), ""),
    ] {
        assert_eq!(text_of(&host, &path), expected, "{path}");
    }
    // 64 KiB; nothing answered the other limit, nor the hard one.
    let limits = text_of(&host, "proc/self/limits");
    assert!(
        limits.contains("65536") && limits.lines().count() == 1,
        "{limits}"
    );
}

/// The outcome of a check that a text has; the first one.
fn judged(text: &str, id: &str) -> Outcome {
    let host = pasted_host(text, "out").unwrap();
    let mut all = judge(&host, &Plan::default(), &[id.to_owned()]);
    all.remove(0).outcome
}

/// After rdma-core, libibverbs/examples/devinfo.c, without `-v`.
#[test]
fn path_mtus_of_ibv_devinfo_are_judged() {
    let text = |state: &str, active: &str, layer: &str| {
        format!(
            "hca_id:\tmlx5_0\n\ttransport:\t\t\tInfiniBand (0)\n\tfw_ver:\t\t\t\t22.36.1010\n\tphys_port_cnt:\t\t\t1\n\t\tport:\t1\n\t\t\tstate:\t\t\t{state}\n\t\t\tmax_mtu:\t\t4096 (5)\n\t\t\tactive_mtu:\t\t{active}\n\t\t\tsm_lid:\t\t\t0\n\t\t\tport_lid:\t\t0\n\t\t\tport_lmc:\t\t0x00\n\t\t\tlink_layer:\t\t{layer}\n"
        )
    };
    let outcome = judged(&text("PORT_ACTIVE (4)", "1024 (3)", "Ethernet"), "mtu.interface");
    assert_eq!(outcome.status, Status::Warning);
    assert_eq!(
        outcome.summary,
        "mlx5_0:1: the path MTU is 1024, the adapter can do 4096"
    );
    assert_eq!(outcome.seen[0].value, "max_mtu 4096, active_mtu 1024");
    let outcome = judged(&text("PORT_ACTIVE (4)", "4096 (5)", "Ethernet"), "mtu.interface");
    assert_eq!(outcome.status, Status::Ok);
    // A port without a link has no path, and the subnet manager decides on InfiniBand's.
    for text in [
        text("PORT_DOWN (1)", "1024 (3)", "Ethernet"),
        text("PORT_ACTIVE (4)", "2048 (4)", "InfiniBand"),
    ] {
        assert_eq!(
            judged(&text, "mtu.interface").status,
            Status::NotApplicable,
            "{text}"
        );
    }
    // The interface's own MTU says more: it is judged once.
    let both = text("PORT_ACTIVE (4)", "1024 (3)", "Ethernet")
        + "link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ens1\n4: ens1: <UP,LOWER_UP> mtu 1500 qdisc mq state UP\n";
    let host = pasted_host(&both, "out").unwrap();
    let all = judge(&host, &Plan::default(), &["mtu.interface".to_owned()]);
    assert_eq!(all.len(), 1, "{all:?}");
    assert!(all[0].outcome.summary.starts_with("ens1: MTU 1500"));
}

/// After bash's and zsh's `ulimit`, and util-linux' prlimit(1). 64 kilobytes and 65536 bytes are 64 KiB.
#[test]
fn limits_alone_are_judged() {
    for text in [
        "$ ulimit -l\n64\n",
        "ulimit -l\n64\n",
        "user@node3:~$ ulimit -Sl\n64\n",
        "max locked memory           (kbytes, -l) 64\n",
        "-l: locked-in-memory size (kbytes)     64\n",
        "locked memory(kbytes)           64\n",
        "RESOURCE   DESCRIPTION                             SOFT      HARD UNITS\nMEMLOCK    max locked-in-memory address space     65536     65536 bytes\n",
    ] {
        let outcome = judged(text, "memlock");
        assert_eq!(outcome.status, Status::Warning, "{text}: {outcome:?}");
        assert!(
            outcome.summary.contains("soft limit 64 KiB"),
            "{}",
            outcome.summary
        );
        assert_eq!(outcome.confidence, "likely");
    }
    // A shell shows the soft limit alone.
    assert_eq!(judged("$ ulimit -l\n64\n", "pod.memlock").status, Status::Unknown);
    assert_eq!(
        judged("$ ulimit -Hl\n64\n", "pod.memlock").status,
        Status::Warning
    );
    assert_eq!(judged("$ ulimit -l\nunlimited\n", "memlock").status, Status::Ok);
    // 8 GiB: nobody knows whether that is too little.
    assert_eq!(
        judged("$ ulimit -l\n8388608\n", "memlock").status,
        Status::Unknown
    );
}

/// After open-lldp's lldptool(8), mlnx_qos and dcb-pfc(8).
#[test]
fn priorities_with_pfc_of_a_text() {
    let on = |priorities: &[usize]| std::array::from_fn(|priority| priorities.contains(&priority));
    for (text, interface, priorities) in [
        (
            "# lldptool -t -i ens1 -V PFC\nIEEE 8021QAZ PFC TLV\n\t Willing: yes\n\t PFC capable traffic classes: 8\n\t PFC enabled: 3 4\n",
            "ens1",
            [3, 4].as_slice(),
        ),
        ("# lldptool -ti ens2 -V PFC -c enabled\nenabled=3\n", "ens2", &[3]),
        ("\t PFC enabled: none\n", "out", &[]),
        (
            "DCBX mode: OS controlled\nPriority trust state: dscp\nPFC configuration:\n\tpriority    0   1   2   3   4   5   6   7\n\tenabled     0   0   0   1   0   0   0   0   \n",
            "out",
            &[3],
        ),
        (
            "$ dcb pfc show dev ens3\npfc-cap 8\nprio-pfc 0:off 1:off 2:off 3:off 4:off 5:on 6:off 7:off\n",
            "ens3",
            &[5],
        ),
    ] {
        assert_eq!(
            pasted_pfc(text, "out"),
            [(interface.to_owned(), on(priorities))],
            "{text}"
        );
    }
    // The neighbour's settings are not this port's.
    assert_eq!(
        pasted_pfc("# lldptool -t -n -i ens1 -V PFC\n\t PFC enabled: 3\n", "out"),
        []
    );
}

/// After the README of sriov-network-device-plugin, iproute2's `rdma link` and ethtool's `-i`.
#[test]
fn a_given_device_is_missing_only_where_devices_are_listed() {
    let given = "PCIDEVICE_INTEL_COM_A=0000:5e:00.3\nPCIDEVICE_INTEL_COM_A_INFO={\"0000:5e:00.3\":{\"rdma\":{\"uverbs\":\"/dev/infiniband/uverbs3\"}}}\n";
    let link = "link mlx5_3/1 state ACTIVE physical_state LINK_UP netdev net2\n";
    let of = |address: &str| format!("$ ethtool -i net2\ndriver: mlx5_core\nbus-info: {address}\n");
    for text in [
        format!("{given}$ ulimit -l\nunlimited\n"),
        format!("{given}{link}"),
        format!("{given}{link}{}", of("0000:5e:00.3")),
    ] {
        for check in ["sriov.pod", "pod.networks"] {
            let status = judged(&text, check).status;
            assert!(
                [Status::Unknown, Status::Ok].contains(&status),
                "{check}: {status:?} {text}"
            );
        }
    }
    let other = format!("{given}{link}{}", of("0000:5e:00.4"));
    assert_eq!(judged(&other, "sriov.pod").status, Status::Warning);
}

/// After ethtool's `--show-fec`: 100GBASE-R has lanes of 25 Gbit/s and more, 40GBASE-R four of 10 (IEEE 802.3, clause 82).
#[test]
fn fec_that_is_off_is_judged_by_the_speed_of_the_interface() {
    let text = |speed: u32| {
        format!(
            "$ ethtool --show-fec ens1\nFEC parameters for ens1:\nConfigured FEC encodings: Off\nActive FEC encoding: Off\n$ ethtool ens1\nSettings for ens1:\n\tSpeed: {speed}Mb/s\n$ rdma link\nlink mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ens1\n"
        )
    };
    assert_eq!(judged(&text(100_000), "link.fec").status, Status::Warning);
    assert_eq!(judged(&text(25_000), "link.fec").status, Status::Warning);
    assert_eq!(judged(&text(40_000), "link.fec").status, Status::Ok);
}

/// After rdma-core, libibverbs/examples/devinfo.c, without `-v`: no physical state, and no PCI address.
#[test]
fn plain_ibv_devinfo_is_judged() {
    let device = |name: &str, firmware: &str, state: &str, lids: &str, layer: &str| {
        format!(
            "hca_id:\t{name}\n\ttransport:\t\t\tInfiniBand (0)\n\tfw_ver:\t\t\t\t{firmware}\n\tboard_id:\t\t\tMT_0000000223\n\tphys_port_cnt:\t\t\t1\n\t\tport:\t1\n\t\t\tstate:\t\t\t{state}\n\t\t\tmax_mtu:\t\t4096 (5)\n\t\t\tactive_mtu:\t\t4096 (5)\n{lids}\t\t\tlink_layer:\t\t{layer}\n"
        )
    };
    let none = "\t\t\tsm_lid:\t\t\t0\n\t\t\tport_lid:\t\t65535\n";
    let given = "\t\t\tsm_lid:\t\t\t1\n\t\t\tport_lid:\t\t9\n";
    let text = device("mlx5_1", "20.35.1012", "PORT_INIT (2)", none, "InfiniBand");
    let outcome = judged(&text, "ib.port");
    assert_eq!(outcome.status, Status::Critical);
    assert!(
        outcome.summary.contains("no subnet manager has configured it"),
        "{}",
        outcome.summary
    );
    let text = device("mlx5_1", "20.35.1012", "PORT_ACTIVE (4)", given, "InfiniBand");
    assert_eq!(judged(&text, "ib.port").status, Status::Ok);
    let text = device("mlx5_1", "20.35.1012", "PORT_DOWN (1)", none, "InfiniBand");
    assert_eq!(judged(&text, "ib.port").status, Status::Unknown);
    let pair = |other: &str| {
        device("mlx5_1", "20.35.1012", "PORT_ACTIVE (4)", none, "Ethernet")
            + &device("mlx5_2", other, "PORT_ACTIVE (4)", none, "Ethernet")
    };
    assert_eq!(
        judged(&pair("20.31.1014"), "firmware.same").status,
        Status::Warning
    );
    assert_eq!(judged(&pair("20.35.1012"), "firmware.same").status, Status::Ok);
    assert_eq!(
        judged("$ ibv_devinfo\nNo IB devices found\n", "rdma.devices").status,
        Status::Critical
    );
}

/// After MLNX_OFED's mlnx_qos: limits of the classes.
#[test]
fn rate_limits_of_mlnx_qos_are_judged() {
    let text = |limit: &str| {
        format!(
            "$ mlnx_qos -i ens2\nDCBX mode: OS controlled\nPriority trust state: dscp\nPFC configuration:\n\tpriority    0   1   2   3   4   5   6   7\n\tenabled     0   0   0   1   0   0   0   0\ntc: 0 ratelimit: unlimited, tsa: vendor\n\t priority:  1\ntc: 5 ratelimit: {limit}, tsa: ets, bw: 50%\n\t priority:  5\n"
        )
    };
    let outcome = judged(&text("2.5 Gbps"), "qos.ratelimit");
    assert_eq!(outcome.status, Status::Warning);
    assert!(
        outcome.summary.contains("class 5 2500 Mbit/s"),
        "{}",
        outcome.summary
    );
    assert_eq!(judged(&text("unlimited"), "qos.ratelimit").status, Status::Ok);
    // The link may be one of 100 Gbit/s.
    assert_eq!(
        judged(&text("100.0 Gbps"), "qos.ratelimit").status,
        Status::Unknown
    );
}

/// After ethtool's settings.c.
#[test]
fn a_link_below_the_modes_of_its_port_is_slow() {
    let text = |speed: u32| {
        format!(
            "$ ethtool ens3\nSettings for ens3:\n\tSupported link modes:   50000baseCR2/Full\n\t                        200000baseCR4/Full\n\tSupported pause frame use: Symmetric\n\tSpeed: {speed}Mb/s\n$ rdma link\nlink mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ens3\n"
        )
    };
    assert_eq!(judged(&text(50_000), "link.speed").status, Status::Warning);
    assert_eq!(judged(&text(200_000), "link.speed").status, Status::Ok);
}

/// After iproute2's `ip addr` and procps' `sysctl -a`: the kernel takes the higher value of `all` and of the interface (ip-sysctl.rst).
#[test]
fn rails_of_one_subnet_are_judged_by_ip_addr_and_sysctl() {
    let text = |own: u32, second: &str| {
        let mut text = format!(
            "$ ip addr\n5: ens4: <BROADCAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP group default qlen 1000\n    inet 10.9.0.11/23 brd 10.9.1.255 scope global ens4\n6: ens5: <BROADCAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP group default qlen 1000\n    inet {second}/23 brd 10.9.1.255 scope global ens5\n$ rdma link\nlink mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ens4\nlink mlx5_1/1 state ACTIVE physical_state LINK_UP netdev ens5\n$ sysctl -a\n"
        );
        for (scope, value) in [("all", 0), ("ens4", own), ("ens5", own)] {
            let lines = [("arp_ignore", value), ("rp_filter", 2)];
            for (setting, value) in lines {
                writeln!(text, "net.ipv4.conf.{scope}.{setting} = {value}").unwrap();
            }
        }
        text
    };
    // 10.9.0.0/23 goes to 10.9.1.255.
    assert_eq!(
        judged(&text(0, "10.9.1.12"), "routing.rails").status,
        Status::Warning
    );
    assert_eq!(judged(&text(1, "10.9.1.12"), "routing.rails").status, Status::Ok);
    assert_eq!(
        judged(&text(0, "10.9.2.12"), "routing.rails").status,
        Status::NotApplicable
    );
    // `all` and `default` alone: an interface begins with the default, and `all` can be high enough for all of them.
    let alone = |ignore: [u32; 2], filter: [u32; 2]| {
        let text = text(0, "10.9.1.12");
        let (start, _) = text.split_once("net.ipv4").unwrap();
        let mut text = start.to_owned();
        for (scope, at) in [("all", 0), ("default", 1)] {
            let lines = [("arp_ignore", ignore[at]), ("rp_filter", filter[at])];
            for (setting, value) in lines {
                writeln!(text, "net.ipv4.conf.{scope}.{setting} = {value}").unwrap();
            }
        }
        judged(&text, "routing.rails").status
    };
    assert_eq!(alone([0, 0], [2, 2]), Status::Warning);
    assert_eq!(alone([1, 0], [2, 0]), Status::Ok);
    assert_eq!(alone([0, 1], [0, 0]), Status::Ok);
    assert_eq!(alone([1, 1], [0, 1]), Status::Warning);
}

/// After mstflint's mlxlink_commander.cpp and mlxlink_cmd_print.cpp: a link without trouble.
const MLXLINK: &str = "# mlxlink -d mlx5_0 -c -m\n\nOperational Info\n----------------\nState                              : \u{1b}[32mActive\u{1b}[0m\nPhysical state                     : ETH_AN_FSM_ENABLE\nSpeed                              : 200G\nWidth                              : 4x\nFEC                                : Standard RS-FEC (544,514)\nAuto Negotiation                   : ON\n\nSupported Info\n--------------\nEnabled Link Speed (Ext.)          : 0x000017f2 (200G,100G_2X,100G_4X,25G)\nSupported Cable Speed (Ext.)       : 0x000017d0 (200G,100G_2X)\n\nTroubleshooting Info\n--------------------\nStatus Opcode                      : 0\nGroup Opcode                       : N/A\nRecommendation                     : No issue was observed\n\nPhysical Counters and BER Info\n------------------------------\nTime Since Last Clear [Min]        : 348349.5\nEffective Physical Errors          : 0\nEffective Physical BER             : 15E-255\nRaw Physical Errors Per Lane       : 3183333,242074,1,0\nRaw Physical BER                   : 1E-8\nLink Down Counter                  : 3\n";

#[test]
fn links_of_mlxlink_are_judged() {
    let found = judged(MLXLINK, "link.mlxlink");
    assert_eq!(
        (found.status, found.object.as_str()),
        (Status::Ok, "mlx5_0"),
        "{}",
        found.summary
    );
    let seen = &found.seen[0].value;
    assert_eq!(
        seen,
        "Active, 200G 4x, Standard RS-FEC (544,514), raw BER 1E-8, effective BER 15E-255, link downs 3"
    );
    for (right, wrong, expected) in [
        ("No issue was observed", "Bad signal integrity", None),
        (
            ": 0\nGroup",
            ": 15\nGroup",
            Some("status 15, No issue was observed"),
        ),
        (
            "\u{1b}[32mActive\u{1b}[0m",
            "Polling",
            Some("its state is Polling"),
        ),
        ("15E-255", "4E-11", Some("4e-11")),
        ("1E-8", "3E-4", Some("3e-4")),
        ("Standard RS-FEC (544,514)", "No FEC", Some("no error correction")),
        (": 200G\n", ": 100G\n", Some("both allow 200G")),
        // The cable does not allow more.
        ("0x000017d0 (200G,100G_2X)", "0x000017d0 (100G_2X)", None),
    ] {
        let text = MLXLINK.replace(right, wrong);
        assert_ne!(text, MLXLINK, "{wrong}");
        let found = judged(&text, "link.mlxlink");
        match expected {
            Some(expected) => {
                assert_eq!(found.status, Status::Warning, "{wrong}: {}", found.summary);
                assert!(found.summary.contains(expected), "{}", found.summary);
            }
            None => assert_eq!(found.status, Status::Ok, "{wrong}: {}", found.summary),
        }
    }
}

#[test]
fn documents_and_several_links_of_mlxlink() {
    let document = json!({ "status": { "code": 0, "message": "success" }, "result": { "output": {
        "Operational Info": { "State": "Polling", "Speed": "N/A", "Width": "N/A" },
        "Supported Info": { "Enabled Link Speed": { "mask": "0x80", "values": ["NDR", "HDR"] } },
        "Troubleshooting Info": { "Status Opcode": "1024", "Recommendation": "Cable is unplugged" },
    } } });
    let text = serde_json::to_string_pretty(&document).unwrap();
    let host = pasted_host(&text, "mlxlink_mlx5_3").unwrap();
    let found = judge(&host, &Plan::default(), &["link.mlxlink".to_owned()]);
    assert_eq!(
        found[0].outcome.summary,
        "mlx5_3: status 1024, Cable is unplugged; its state is Polling"
    );
    let both = format!("{MLXLINK}# mlxlink -d /dev/mst/mt4129_pciconf1 --json\n{text}\n");
    let host = pasted_host(&both, "out").unwrap();
    let objects: Vec<String> = judge(&host, &Plan::default(), &["link.mlxlink".to_owned()])
        .into_iter()
        .map(|found| format!("{} {}", found.outcome.status.name(), found.outcome.object))
        .collect();
    assert_eq!(objects, ["ok mlx5_0", "warning mt4129_pciconf1"]);
    // `ibstat` and `ethtool` have fields of the same names.
    let text = MLXLINK.replace("State   ", "Stale   ") + "CA 'mlx5_0'\n\tPort 1:\n\t\tState: Down\n";
    assert_eq!(judged(&text, "link.mlxlink").status, Status::Unknown);
}

/// After ethtool's `-i` of mlx5_core and bnxt_en.
#[test]
fn drivers_and_firmware_of_ethtool_alone() {
    let mlx5 = "driver: mlx5_core\nversion: 5.15.0-91-generic\nfirmware-version: 22.39.2048 (MT_0000000359)\nexpansion-rom-version: \nbus-info: 0000:3b:00.0\nsupports-statistics: yes\n";
    for text in [mlx5.to_owned(), format!("$ ethtool -i ens1f0np0\n{mlx5}")] {
        let found = judged(&text, "firmware.same");
        assert_eq!(
            (found.status, found.summary.as_str()),
            (Status::Ok, "0000:3b:00.0: firmware 22.39.2048, driver mlx5_core")
        );
        let devices = judged(&text, "rdma.devices");
        assert_eq!(devices.status, Status::Unknown, "{}", devices.summary);
    }
    // Two equal boards.
    let other = mlx5.replace("3b:00", "5e:00").replace("22.39", "22.36");
    let found = judged(&format!("{mlx5}{other}"), "firmware.same");
    assert_eq!(found.status, Status::Warning, "{}", found.summary);
    let bnxt = "driver: bnxt_en\nversion: 6.8.0\nfirmware-version: 226.0.145.0/pkg 226.1.107.1\nbus-info: 0000:17:00.0\n";
    let found = judged(bnxt, "firmware.same");
    assert_eq!(
        (found.status, found.summary.as_str()),
        (
            Status::Info,
            "0000:17:00.0: firmware 226.0.145.0/pkg 226.1.107.1, driver bnxt_en; its board is not known"
        )
    );
    // The only device of a text is not an adapter of another vendor; adapters without RDMA are not shown.
    let host = pasted_host(&format!("{DEVINFO}{bnxt}"), "out").unwrap();
    assert!(!host.has("sys/class/infiniband/mlx5_2/device/uevent"));
    let igb = bnxt.replace("bnxt_en", "igb");
    assert!(pasted_host(&igb, "out").is_none());
}

/// After MLNX_OFED's show_gids: no state of a port.
#[test]
fn addresses_of_show_gids_alone_are_judged() {
    let table = "DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4  \t\tVER\tDEV\nmlx5_0\t1\t0\tfe80:0000:0000:0000:ba59:9fff:fea1:b2c0\t\t\tv1\tens1\nmlx5_0\t1\t1\tfe80:0000:0000:0000:ba59:9fff:fea1:b2c0\t\t\tv2\tens1\n";
    let routed = "mlx5_0\t1\t3\t0000:0000:0000:0000:0000:ffff:c0a8:0001\t192.168.0.1  \tv2\tens1\n";
    let text = format!("{table}{routed}");
    let choice = judged(&text, "gid.choice");
    assert_eq!(choice.status, Status::Info);
    assert!(
        choice.summary.ends_with("use --gid-index 3"),
        "{}",
        choice.summary
    );
    assert_eq!(
        judged(&text, "gid.rocev2").summary,
        "mlx5_0:1 has RoCE v2 at indexes 1, 3"
    );
    assert_eq!(judged(&text, "port.state").status, Status::Unknown);
    // A port that may have no cable needs no address.
    let alone = judged(table, "gid.rocev2");
    assert_eq!(alone.status, Status::Info, "{}", alone.summary);
    let old = judged(&table.replace("\tv2\t", "\tv1\t"), "gid.rocev2");
    assert_eq!(old.status, Status::Warning, "{}", old.summary);
    let active = format!("{table}mlx5_0 port 1 ==> ens1 (Up)\n");
    assert_eq!(judged(&active, "gid.rocev2").status, Status::Warning);
}

/// After infiniband-diags, src/ibstat.c: a rate without a width.
#[test]
fn rates_of_ibstat_alone_are_shown() {
    let text = "CA 'mlx5_0'\n\tFirmware version: 28.36.1700\n\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\tRate: 400\n\t\tBase lid: 17\n\t\tSM lid: 1\n\t\tLink layer: InfiniBand\n";
    let speed = judged(text, "ib.speed");
    assert_eq!(
        (speed.status, speed.summary.as_str()),
        (
            Status::Info,
            "mlx5_0:1 runs at 400 Gbit/s; its lanes are not known"
        )
    );
    assert!(
        judged(text, "firmware.same")
            .summary
            .contains("firmware 28.36.1700")
    );
    let ethernet = judged(&text.replace("InfiniBand", "Ethernet"), "link.speed");
    assert_eq!(
        (ethernet.status, ethernet.summary.as_str()),
        (
            Status::Info,
            "mlx5_0:1 runs at 400 Gbit/s; the highest speed of its port is not known"
        )
    );
}

/// After MLNX_OFED's cma_roce_tos, which prints the number alone. 106 is DSCP 26 with ECT(0).
#[test]
fn the_default_class_of_rdma_cm_alone_is_judged() {
    for (text, name, object) in [
        ("cma_roce_tos -d mlx5_0 -p 1\n106\n", "out", "mlx5_0:1"),
        ("# cma_roce_tos -d mlx5_0\n106\n", "out", "mlx5_0:1"),
        (
            "n1:~$ sudo cma_roce_tos -d mlx5_3 -p 2 -t 106\n106\n",
            "out",
            "mlx5_3:2",
        ),
        ("106\n", "cma_roce_tos_mlx5_1", "mlx5_1:1"),
        ("106\n", "gpu1-cma_roce_tos", "DEVICE:1"),
    ] {
        let host = pasted_host(text, name).unwrap();
        let found = judge(&host, &Plan::default(), &["roce.tos".to_owned()])
            .remove(0)
            .outcome;
        assert_eq!(
            (found.status, found.object),
            (Status::Ok, format!("rdma_cm {object}")),
            "{text}"
        );
    }
    let found = judged("$ cma_roce_tos -d mlx5_0 -p 1\n0\n", "roce.tos");
    assert_eq!(found.status, Status::Warning);
    let mode = judged("$ cma_roce_mode -d mlx5_0 -p 1\nIB/RoCE v1\n", "gid.cm_mode");
    assert_eq!(mode.status, Status::Warning, "{}", mode.summary);
    // A number is nothing without a name, and an error is no number.
    assert!(pasted_host("106\n", "out").is_none());
    assert!(pasted_host("106\n107\n", "cma_roce_tos").is_none());
    assert!(pasted_host("$ cma_roce_tos -d mlx5_0\ncommand not found\n", "out").is_none());
}

/// After rdma-core, libibverbs/examples/devinfo.c: code 128 is NDR.
#[test]
fn infiniband_of_ibv_devinfo_is_judged() {
    let text = DEVINFO
        .replace("PORT_DOWN (1)", "PORT_ACTIVE (4)")
        .replace("Ethernet", "InfiniBand")
        .replace("sm_lid:\t\t\t0", "sm_lid:\t\t\t1");
    let packets = judged(&text, "ib.packets");
    assert_eq!(packets.status, Status::Info);
    assert!(
        packets.summary.contains("its packets are not RoCE"),
        "{}",
        packets.summary
    );
    let speed = judged(&text, "ib.speed");
    assert_eq!(
        (speed.status, speed.summary.as_str()),
        (Status::Ok, "mlx5_2:1 runs at 400 Gbit/s: 4 lanes of NDR")
    );
}
