//! Documents that somebody made to do harm, or that broke on their way.

use proptest::prelude::*;

use super::*;

fn pickle(body: &[u8]) -> Result<FlightRecorder, DocumentError> {
    flight_recorder(&[b"\x80\x02".as_slice(), body].concat(), "f")
}

#[test]
fn a_pickle_calls_nothing() {
    // `pickle.dumps` of an object with `__reduce__ = (os.system, ("true",))` writes so in protocols 2 and 4.
    let two = pickle(b"cposix\nsystem\nq\x00X\x04\x00\x00\x00trueq\x01\x85q\x02Rq\x03.").unwrap_err();
    assert_eq!(two.place, DocumentPlace::Byte(2));
    assert_eq!(
        two.reason,
        "the name posix.system; expected data alone, and none of it is called"
    );
    let four =
        pickle(b"\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c\x04true\x94\x85\x94R\x94.").unwrap_err();
    assert!(four.reason.contains("posix.system"), "{four}");
    // Opcodes that make objects in other ways: NEWOBJ, BUILD, INST, OBJ, PERSID, BINPERSID, EXT1.
    for opcode in [0x81, b'b', b'i', b'o', b'P', b'Q', 0x82] {
        let error = pickle(&[b'N', b'N', opcode, b'\n', b'\n', b'.']).unwrap_err();
        assert!(error.reason.contains("expected one that builds data"), "{error}");
    }
}

#[test]
fn lists_of_pytorchs_own_pickler_are_known() {
    // `Pickler::pushDict` of pytorch with tags: the dictionary and its type are the arguments of restore_type_tag.
    let body = b"ctorch.jit._pickle\nrestore_type_tag\n}(X\x07\x00\x00\x00versionX\x03\x00\x00\x002.4X\x07\x00\x00\x00entries\
        ctorch.jit._pickle\nrestore_type_tag\n](eX\x04\x00\x00\x00List\x86RuX\x04\x00\x00\x00Dict\x86R.";
    let found = pickle(body).unwrap();
    assert_eq!((found.version.as_str(), found.entries.len()), ("2.4", 0));
}

#[test]
fn a_pickle_that_holds_itself_ends() {
    // entries = [entries]: the list is remembered and appended to itself.
    let body = b"}(X\x07\x00\x00\x00versionK\x01X\x07\x00\x00\x00entries]q\x00h\x00au.";
    assert!(pickle(body).is_err());
    // Ten lists, each with ten times the one before: 10^10 values in 200 bytes.
    let mut body = b"}(X\x07\x00\x00\x00versionK\x01X\x07\x00\x00\x00entries]q\x00".to_vec();
    for level in 1..=10 {
        body.extend([b']', b'q', level, b'(']);
        body.extend([b'h', level - 1].repeat(10));
        body.push(b'e');
    }
    body.extend(b"u.");
    assert!(pickle(&body).is_err());
    // A dictionary that names one large list for each of many entries is looked at a bounded number of times.
    let mut body =
        b"}(X\x07\x00\x00\x00versionK\x01X\x07\x00\x00\x00entries](}(X\x05\x00\x00\x00state".to_vec();
    body.extend(b"X\x07\x00\x00\x00startedX\x0d\x00\x00\x00process_group](");
    body.extend(b"N".repeat(100_000));
    body.extend(b"euq\x00");
    body.extend(b"h\x00".repeat(100_000));
    body.extend(b"eu.");
    let error = pickle(&body).unwrap_err();
    assert!(error.reason.contains("too often"), "{error}");
}

#[test]
fn a_pickle_claims_no_memory() {
    // 2^63 bytes of text, 4 GB of a number, a place of the memo beyond all values.
    for body in [
        b"\x8d\xff\xff\xff\xff\xff\xff\xff\x7f".as_slice(),
        b"\x8b\xff\xff\xff\xff",
        b"Nr\xff\xff\xff\xff.",
        b"\x80\x09N.",
        b"(((((((((t.",
        b".",
        b"]u.",
        b"}K\x01a.",
        b"}(K\x01u.",
        b"Nh\x00.",
        b"",
    ] {
        let error = pickle(body).unwrap_err();
        assert!(error.reason.contains("expected"), "{error}");
    }
}

#[test]
fn long_lines_and_deep_json_end() {
    let long = "{\"header\": \"".to_owned() + &"x".repeat(2 << 20);
    assert!(inspector(long.as_bytes()).unwrap_err().reason.contains("longer"));
    let deep = format!("{{\"communicators\": {}", "[".repeat(100_000));
    assert!(ras(deep.as_bytes(), "f").is_err());
    let deep = format!("{{\"version\": 1, \"x\": {}", "[".repeat(100_000));
    assert!(flight_recorder(deep.as_bytes(), "f").is_err());
}

#[test]
fn names_steer_no_terminal() {
    let line = "{\"header\":{\"id\":\"1\",\"rank\":0,\"n_ranks\":1},\"metadata\":{\"hostname\":\"a\\u001b[31m\"},\
        \"coll_perf\":{\"coll\":\"x\\u202e\",\"coll_sn\":1,\"coll_msg_size_bytes\":1,\"coll_exec_time_us\":1}}";
    let found = inspector(line.as_bytes()).unwrap();
    assert_eq!(found.processes[0].hostname.as_deref(), Some("a?[31m"));
    assert_eq!(found.records[0].operation, "x?");
}

fn read_all(bytes: &[u8]) {
    let _ = kind_of(bytes);
    let _ = inspector(bytes);
    let _ = inspector_metrics(bytes, "f");
    let _ = ras(bytes, "f");
    let _ = flight_recorder(bytes, "f");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_bytes_are_read_to_an_end(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        read_all(&bytes);
        read_all(&[b"\x80\x02".as_slice(), &bytes].concat());
    }

    #[test]
    fn samples_with_changed_bytes_are_read_to_an_end(
        which in 0..6_usize,
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..6),
        end in any::<proptest::sample::Index>(),
    ) {
        let samples = [
            sample!("h1-pid4101.log"),
            sample!("nccl_trace_rank_2"),
            sample!("nccl_trace_rank_2.protocol4"),
            sample!("nccl_trace_rank_2.json"),
            sample!("ras_missing.json"),
            sample!("ras_monitor.json"),
        ];
        let mut bytes = samples[which].to_vec();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let end = end.index(bytes.len());
        read_all(&bytes);
        read_all(&bytes[..end]);
    }
}

#[test]
fn a_list_is_no_dump() {
    // `[1]`, `[[]]` and `["x"]` as pickles of protocol 4 (PEP 3154), and as JSON.
    for body in [&b"]K\x01a."[..], b"]]a.", b"]\x8c\x01xa."] {
        let pickle = [b"\x80\x04", body].concat();
        let error = flight_recorder(&pickle, "nccl_trace_rank_0").unwrap_err();
        assert!(error.to_string().contains("expected a dump"), "{error}");
    }
    for json in ["[1]", "[[]]", "[\"x\", 0]"] {
        assert!(
            flight_recorder(json.as_bytes(), "nccl_trace_rank_0").is_err(),
            "{json}"
        );
    }
}
