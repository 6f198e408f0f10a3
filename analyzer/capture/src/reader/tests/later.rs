//! Frames that are made later are those that are made at once.

use super::*;

/// All that a reader tells of a file, with the bytes of each frame and note.
fn described(file: &[u8], block_bytes: usize, later: bool) -> (String, usize) {
    let options = Options {
        block_bytes,
        read_ahead: true,
        ..Options::default()
    };
    let mut text = Vec::new();
    let mut made_later = 0;
    let mut reader = match Reader::from_read("memory", Box::new(Cursor::new(file.to_vec())), &options) {
        Ok(reader) => reader,
        Err(error) => return (error.to_string(), 0),
    };
    if later {
        reader.make_frames_later();
    }
    loop {
        match reader.next_batch() {
            Ok(Some(batch)) => {
                made_later += usize::from(batch.frames.is_later());
                text.push(format!("{} {:?}", batch.frame_count(), batch.frames.ends()));
                assert_eq!(batch.frame_count(), batch.frames().len());
                for frame in batch.frames() {
                    text.push(format!("{frame:?} {:?}", batch.bytes(frame)));
                }
                for note in batch.notes() {
                    text.push(format!("{} {:?}", note.before, batch.note(note)));
                }
                text.push(format!("{:?}", batch.lost()));
                reader.recycle(batch);
            }
            Ok(None) => break,
            Err(error) => {
                text.push(error.to_string());
                break;
            }
        }
    }
    text.push(format!("{:?} {:?}", reader.summary(), reader.interfaces()));
    (text.join("\n"), made_later)
}

fn assert_alike(file: &[u8]) -> usize {
    let (at_once, none) = described(file, 4096, false);
    let (later, made_later) = described(file, 4096, true);
    assert_eq!(none, 0);
    assert_eq!(later, at_once);
    made_later
}

/// A section with plain packets, and three with options, one of which tells a loss.
fn section(order: ByteOrder) -> Vec<u8> {
    let mut writer = PcapngWriter::new(Vec::new(), order).unwrap();
    let interface = writer.interface(&InterfaceOptions::default()).unwrap();
    for number in 0..300_u64 {
        let packet = Packet {
            interface,
            ticks: 1_000_000 + number * 1_000,
            original: 99,
            data: &[7; 60],
            flags: (number == 100).then_some(1),
            dropped: (number == 150).then_some(3),
            comment: (number == 250).then_some("odd"),
        };
        writer.packet(&packet).unwrap();
    }
    writer.finish().unwrap()
}

#[test]
fn samples_are_read_alike() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../captures");
    let mut made_later = 0;
    for folder in [folder.to_owned(), format!("{folder}/demos")] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path
                .extension()
                .is_some_and(|ext| ext == "pcap" || ext == "pcapng")
            {
                let file = std::fs::read(&path).unwrap();
                made_later += assert_alike(&file[..file.len().min(1 << 18)]);
            }
        }
    }
    assert!(made_later > 100, "{made_later}");
}

#[test]
fn sections_losses_and_damage_are_read_alike() {
    let both = [section(ByteOrder::Little), section(ByteOrder::Big)].concat();
    assert!(assert_alike(&both) > 0);
    let pcap = pcap(200);
    assert!(assert_alike(&pcap) > 0);
    for file in [both, pcap] {
        for at in (0..file.len()).step_by(97) {
            assert_alike(&file[..at]);
            let mut damaged = file.clone();
            damaged[at] ^= 0xff;
            assert_alike(&damaged);
        }
    }
}

#[test]
fn one_file_is_read_so_and_several_are_not() {
    let open = |count: usize| {
        let options = Options {
            read_ahead: true,
            ..Options::default()
        };
        let readers = (0..count)
            .map(|_| Reader::from_read("memory", Box::new(Cursor::new(pcap(100))), &options).unwrap());
        let mut merge = crate::merge::Merge::new(readers.collect());
        merge.next_run().unwrap().batch.frames.is_later()
    };
    assert_eq!([open(1), open(2)], [true, false]);
}
