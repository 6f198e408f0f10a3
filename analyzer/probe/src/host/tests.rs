use super::*;

fn set(root: &Path, path: &str, value: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, value).unwrap();
}

/// A host with one adapter, as sysfs and ethtool show it.
fn host() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, value) in [
        ("hw_counters/duplicate_request", "3\n"),
        ("ports/1/counters/port_xmit_data", "1000\n"),
        ("ports/1/counters/VL15_dropped", "N/A (no PMA)\n"),
        ("ports/1/hw_counters/out_of_sequence", "7\n"),
        ("ports/1/hw_counters/lifespan", "10\n"),
        ("ports/1/gid_attrs/ndevs/0", "ens1f0np0\n"),
        ("ports/1/gid_attrs/ndevs/1", "ens1f0np0\n"),
        ("ports/1/gid_attrs/ndevs/2", "vlan100\n"),
    ] {
        set(
            folder.path(),
            &format!("sys/class/infiniband/mlx5_0/{path}"),
            value,
        );
    }
    set(
        folder.path(),
        "sys/class/net/vlan100/uevent",
        "DEVTYPE=vlan\nINTERFACE=vlan100\n",
    );
    set(
        folder.path(),
        "sys/class/net/vlan100/lower_ens1f0np0/operstate",
        "up\n",
    );
    folder
}

fn statistics(root: &Path, text: &str) {
    set(root, "commands/ethtool_-S_ens1f0np0.txt", text);
}

/// Object, counter, priority, details and value of every sample.
fn read_all(reader: &mut HostReader) -> Vec<(String, Counter, Option<u8>, String, f64)> {
    let mut samples = Vec::new();
    reader.read(Time(1), &mut samples);
    assert!(
        samples
            .iter()
            .all(|sample| &*sample.node == "a" && sample.time == Time(1))
    );
    let rows = samples.into_iter().map(|sample| {
        let details = sample.details.join(",");
        (
            sample.object.to_string(),
            sample.counter,
            sample.priority,
            details,
            sample.value,
        )
    });
    rows.collect()
}

#[test]
fn devices_ports_and_interfaces_are_read() {
    let folder = host();
    statistics(
        folder.path(),
        "NIC statistics:\n  rx_prio3_pause: 41210\n  rx_prio3_pause_duration: 12034511\n",
    );
    let mut reader = HostReader::recorded(folder.path(), "a").unwrap();
    let plain = String::new();
    assert_eq!(
        read_all(&mut reader),
        [
            (
                "mlx5_0".into(),
                Counter::PortDuplicateRequests,
                None,
                plain.clone(),
                3.0
            ),
            // 1,000 words of four bytes.
            (
                "mlx5_0:1".into(),
                Counter::PortTransmittedBytes,
                None,
                plain.clone(),
                4_000.0
            ),
            (
                "mlx5_0:1".into(),
                Counter::PortOutOfSequencePackets,
                None,
                plain.clone(),
                7.0
            ),
            (
                "ens1f0np0".into(),
                Counter::PfcReceivedFrames,
                Some(3),
                plain.clone(),
                41_210.0
            ),
            (
                "ens1f0np0".into(),
                Counter::PfcReceivePausedSeconds,
                Some(3),
                plain,
                12.034_511
            ),
        ]
    );
    assert_eq!(reader.lifespan(), Some(Duration::from_millis(10)));
}

#[test]
fn global_pause_shows_under_no_name_of_pfc() {
    let folder = host();
    // Numbers of a link with 802.3x pause and without PFC: frames are twice the transitions.
    statistics(
        folder.path(),
        "rx_pause_ctrl_phy: 133704835\nrx_global_pause: 133704872\nrx_global_pause_duration: 9120077311\nrx_global_pause_transition: 66852436\n",
    );
    let mut reader = HostReader::recorded(folder.path(), "a").unwrap();
    let rows = read_all(&mut reader);
    let value = |counter| rows.iter().find(|row| row.1 == counter).map(|row| row.4);
    assert_eq!(value(Counter::PauseReceivedFrames), Some(133_704_872.0));
    assert_eq!(value(Counter::PauseReceivePausedSeconds), Some(9_120.077_311));
    assert_eq!(value(Counter::PauseControlReceivedFrames), Some(133_704_835.0));
    assert!(!rows.iter().any(|row| row.1.name().starts_with("pfc_")));
}

#[test]
fn a_virtual_function_gets_a_note() {
    let folder = host();
    set(
        folder.path(),
        "sys/class/infiniband/mlx5_0/device/physfn/vendor",
        "0x15b3\n",
    );
    let mut reader = HostReader::recorded(folder.path(), "a").unwrap();
    read_all(&mut reader);
    assert_eq!(reader.notes().count(), 1);
    assert!(
        reader
            .notes()
            .next()
            .unwrap()
            .contains("mlx5_0 is a virtual function")
    );
}

#[test]
fn what_is_gone_is_absent() {
    let folder = host();
    let mut reader = HostReader::recorded(folder.path(), "a").unwrap();
    assert_eq!(read_all(&mut reader).len(), 3);
    std::fs::remove_dir_all(folder.path().join("sys")).unwrap();
    assert!(read_all(&mut reader).is_empty());
}

/// A recording whose links lead to files outside, to a FIFO and to a device has none of their numbers, and nothing is waited for.
#[test]
fn nothing_outside_of_a_recording_is_read() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    set(folder.path(), "number", "123456\n");
    set(
        folder.path(),
        "outside/ports/1/counters/port_rcv_data",
        "123456\n",
    );
    let host = folder.path().join("host");
    let counters = host.join("sys/class/infiniband/mlx5_0/ports/1/counters");
    set(&counters, "port_xmit_data", "1000\n");
    symlink("port_xmit_data", counters.join("port_xmit_packets")).unwrap();
    symlink(folder.path().join("number"), counters.join("port_rcv_data")).unwrap();
    symlink("/dev/zero", counters.join("port_rcv_packets")).unwrap();
    symlink("../../../../../../../../number", counters.join("port_rcv_errors")).unwrap();
    let fifo = counters.join("port_xmit_discards");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    symlink(
        folder.path().join("outside"),
        host.join("sys/class/infiniband/mlx5_1"),
    )
    .unwrap();
    let mut reader = HostReader::recorded(&host, "a").unwrap();
    let mut samples = Vec::new();
    reader.read(Time(0), &mut samples);
    // Counters of data are in words of four bytes; the link within the folder is followed.
    let values: Vec<f64> = samples.iter().map(|sample| sample.value).collect();
    assert_eq!(values, [4_000.0, 1_000.0]);
}
