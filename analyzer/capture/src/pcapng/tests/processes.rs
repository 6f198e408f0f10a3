//! Processes of frames. The bytes are put together here as Wireshark's `pcapng-wireshark-custom.c` and the output of Darwin's tcpdump have them.

use super::*;

/// Options as bytes, with the code that ends them.
fn options(order: ByteOrder, options: &[(u16, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (code, value) in options.iter().chain([&(0, &[][..])]) {
        bytes.extend(order.u16(*code));
        bytes.extend(order.u16(u16::try_from(value.len()).unwrap()));
        bytes.extend_from_slice(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }
    bytes
}

/// The body of Wireshark's block, whose entry is little-endian in every file.
fn entry(order: ByteOrder, kind: u32, pid: u32, of: &[(u16, &[u8])]) -> Vec<u8> {
    let about = options(ByteOrder::Little, of);
    let mut body = order.u32(32_622).to_vec();
    body.extend(kind.to_le_bytes());
    body.extend((4 + u32::try_from(about.len()).unwrap()).to_le_bytes());
    body.extend(pid.to_le_bytes());
    body.extend(about);
    body
}

/// The body of an Enhanced Packet Block of four bytes, at a time in microseconds.
fn frame(order: ByteOrder, time: u32, of: &[(u16, &[u8])]) -> Vec<u8> {
    let mut body: Vec<u8> = [0, 0, time, 4, 4]
        .into_iter()
        .flat_map(|word| order.u32(word))
        .collect();
    body.extend(*b"data");
    body.extend(options(order, of));
    body
}

/// Process and name of each frame.
fn owners(file: &[u8]) -> Vec<Option<(u32, Option<String>)>> {
    let found = walk(file);
    let owner = |frame: &Frame| {
        let process = found.processes.get(usize::from(frame.process).checked_sub(1)?)?;
        Some((process.pid, process.name.clone()))
    };
    found.frames.iter().map(owner).collect()
}

/// A process with its name; without one where that is empty.
fn owner(pid: u32, name: &str) -> (u32, Option<String>) {
    (pid, (!name.is_empty()).then(|| name.to_owned()))
}

#[test]
fn frames_name_processes() {
    for order in ORDERS {
        let mut writer = writer(order);
        let micro = InterfaceOptions {
            resolution: None,
            ..InterfaceOptions::default()
        };
        writer.interface(&micro).unwrap();
        let of = |pid: u32| [order.u32(pid), order.u32(pid + 1)].concat();
        writer
            .block(
                0x0bad,
                &entry(
                    order,
                    3,
                    500,
                    &[(2, b"all_reduce_perf_of_nccl"), (3, b"/usr/bin/perf")],
                ),
            )
            .unwrap();
        writer
            .block(6, &frame(order, 5, &[(2, &order.u32(2)), (8, &of(500))]))
            .unwrap();
        // No block names this one.
        writer.block(6, &frame(order, 6, &[(8, &of(700))])).unwrap();
        writer.block(6, &frame(order, 7, &[])).unwrap();
        // The number is given again, 20 us after the epoch: a frame before that is not of the new process.
        let start = 20_000_u64.to_le_bytes();
        writer
            .block(0x4000_0bad, &entry(order, 3, 500, &[(9, &start), (2, b"second")]))
            .unwrap();
        writer.block(6, &frame(order, 25, &[(8, &of(500))])).unwrap();
        writer.block(6, &frame(order, 15, &[(8, &of(500))])).unwrap();
        let owners = owners(&writer.finish().unwrap());
        // Names have 15 bytes, as in the kernel.
        let expected = [
            Some(owner(500, "all_reduce_perf")),
            Some(owner(700, "")),
            None,
            Some(owner(500, "second")),
            Some(owner(500, "")),
        ];
        assert_eq!(owners, expected, "{order:?}");
    }
}

#[test]
fn darwin_numbers_its_processes_by_section() {
    for order in ORDERS {
        let mut writer = writer(order);
        writer.interface(&InterfaceOptions::default()).unwrap();
        for (pid, name) in [(501, &b"mDNSResponder"[..]), (1, b"launchd")] {
            let body = [&order.u32(pid)[..], &options(order, &[(2, name)])].concat();
            writer.block(0x8000_0001, &body).unwrap();
        }
        for number in [1, 0, 2] {
            writer
                .block(6, &frame(order, 1, &[(0x8001, &order.u32(number))]))
                .unwrap();
        }
        writer.section(order).unwrap();
        writer.interface(&InterfaceOptions::default()).unwrap();
        writer
            .block(6, &frame(order, 1, &[(0x8001, &order.u32(0))]))
            .unwrap();
        let owners = owners(&writer.finish().unwrap());
        assert_eq!(
            owners,
            [
                Some(owner(1, "launchd")),
                Some(owner(501, "mDNSResponder")),
                None,
                None
            ]
        );
    }
}

#[test]
fn blocks_of_other_shapes_name_nobody() {
    let order = ByteOrder::Little;
    let right = entry(order, 3, 500, &[(2, b"name")]);
    let mut too_long = right.clone();
    // The entry's length.
    too_long[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    let mut of_others = right.clone();
    // The enterprise.
    of_others[..4].copy_from_slice(&[1, 0, 0, 0]);
    let other_entry = entry(order, 4, 500, &[(2, b"name")]);
    for body in [&too_long[..], &of_others, &other_entry, &right[..12], b""] {
        let mut writer = writer(order);
        writer.interface(&InterfaceOptions::default()).unwrap();
        writer.block(0x0bad, body).unwrap();
        writer.block(0x8000_0001, b"").unwrap();
        writer
            .block(6, &frame(order, 1, &[(8, &order.u32(500))]))
            .unwrap();
        writer
            .block(6, &frame(order, 1, &[(0x8001, &order.u32(0))]))
            .unwrap();
        assert_eq!(owners(&writer.finish().unwrap()), [Some(owner(500, "")), None]);
    }
}

#[test]
fn processes_are_bounded() {
    let mut writer = writer(ByteOrder::Little);
    writer.interface(&InterfaceOptions::default()).unwrap();
    for pid in 0..70_000_u32 {
        let body = frame(ByteOrder::Little, 1, &[(8, &pid.to_le_bytes())]);
        writer.block(6, &body).unwrap();
    }
    let found = walk(&writer.finish().unwrap());
    // As many as 16 bits tell apart, less the number for none.
    assert_eq!(found.processes.len(), 65_535);
    assert_eq!(found.frames[65_534].process, 65_535);
    assert_eq!(found.frames[65_535].process, 0);
}

/// A process whose block is repeated, by each of two programs and in each of two sections, is one process.
#[test]
fn a_repeated_process_is_kept_once() {
    let order = ByteOrder::Little;
    let mut writer = writer(order);
    let name = vec![b'A'; 60_000];
    for _ in 0..2 {
        writer.interface(&InterfaceOptions::default()).unwrap();
        for _ in 0..1_000 {
            let body = [&order.u32(7)[..], &options(order, &[(2, &name)])].concat();
            writer.block(0x8000_0001, &body).unwrap();
            writer.block(0x0bad, &entry(order, 3, 7, &[(2, &name)])).unwrap();
        }
        writer
            .block(6, &frame(order, 1, &[(0x8001, &order.u32(999))]))
            .unwrap();
        writer.block(6, &frame(order, 1, &[(8, &order.u32(7))])).unwrap();
        writer.section(order).unwrap();
    }
    let file = writer.finish().unwrap();
    let found = walk(&file);
    assert_eq!(found.processes.len(), 1);
    assert_eq!(found.processes[0].name.as_ref().map(String::capacity), Some(15));
    assert_eq!(owners(&file), vec![Some(owner(7, "AAAAAAAAAAAAAAA")); 4]);
}
