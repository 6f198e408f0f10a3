//! Plans, patterns, checks, command lines and logs.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use roce_switches::inventory::HostTarget;

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../../../../tests/data/fabric/traffic/", $name))
    };
}

const CROSS: &str = fixture!("cross-2x2.toml");

fn hosts(names: &[&str]) -> Vec<HostTarget> {
    names.iter().map(|name| HostTarget::named(name)).collect()
}

#[test]
fn a_whole_plan() {
    let plan = TrafficPlan::parse(CROSS).unwrap();
    assert_eq!(
        (plan.name.as_str(), plan.tool, plan.tclass),
        ("cross-2x2", Tool::IbWriteBw, Some(106))
    );
    let ends = (&plan.pairs[0].from, &plan.pairs[0].to);
    assert_eq!((ends.0.gid, ends.1.gid), (None, Some(3)));
    // One pair in both directions, two streams each.
    let all: Vec<(String, String, Option<u16>, u64, u32)> = streams(&plan)
        .into_iter()
        .map(|stream| {
            (
                stream.client.to_string(),
                stream.server.to_string(),
                stream.port,
                stream.size,
                stream.qps,
            )
        })
        .collect();
    let stream =
        |from: &str, to: &str, port, size, qps| (from.to_owned(), to.to_owned(), Some(port), size, qps);
    assert_eq!(
        all,
        [
            stream("gpu1:mlx5_0", "gpu5:mlx5_0", 18_515, 65_536, 1),
            stream("gpu1:mlx5_0", "gpu5:mlx5_0", 18_516, 16_384, 4),
            stream("gpu5:mlx5_0", "gpu1:mlx5_0", 18_517, 65_536, 1),
            stream("gpu5:mlx5_0", "gpu1:mlx5_0", 18_518, 16_384, 4),
        ]
    );
    // With fewer ports than streams, each host has its own.
    let few = TrafficPlan::parse(&CROSS.replace("18515-18600", "18515-18516")).unwrap();
    let ports: Vec<_> = streams(&few).iter().map(|stream| stream.port).collect();
    assert_eq!(ports, [Some(18_515), Some(18_516), Some(18_515), Some(18_516)]);
}

#[test]
fn mistakes_name_their_line() {
    let cases = [
        ("toool = \"iperf3\"\n", 1, "toool"),
        ("tool = \"ib_write\"\n", 1, "ib_write"),
        ("tool = \"iperf3\"\nduration = \"500ms\"\n", 2, "whole seconds"),
        ("tool = \"iperf3\"\nports = \"80-90\"\n", 2, "from 1024 on"),
        (
            "tool = \"iperf3\"\nports = \"2000-1999\"\n",
            2,
            "no range of ports",
        ),
        ("tool = \"iperf3\"\npair = []\n", 1, "no [[pair]]"),
        (
            "tool = \"ib_write_bw\"\n\n[[pair]]\nfrom = \"a:d\"\nto = \"b\"\n",
            3,
            "needs the RDMA device",
        ),
        (
            "tool = \"iperf3\"\n[[pair]]\nfrom = \"a\"\nto = \"-b\"\n",
            4,
            "'-b' is no endpoint",
        ),
        (
            "tool = \"iperf3\"\n[[pair]]\nfrom = \"a\"\nto = \"b\"\nstreams = [{ size = 0 }]\n",
            2,
            "1 to 1048576 bytes",
        ),
        (
            "tool = \"ib_send_lat\"\n[[pair]]\nfrom = \"a:d\"\nto = \"b:d\"\nstreams = [{ size = 2, qps = 2 }]\n",
            2,
            "takes 1 to 1",
        ),
        (
            "tool = \"iperf3\"\n[[pair]]\nfrom = \"a\"\nto = { at = \"b\", adress = \"1\" }\n",
            4,
            "adress",
        ),
        (
            "tool = \"iperf3\"\n[[pair]]\nfrom = \"a\"\nto = { at = \"b\", address = \"-oX\" }\n",
            4,
            "no address",
        ),
    ];
    for (text, line, expected) in cases {
        let error = TrafficPlan::parse(text).unwrap_err();
        assert!(error.text.contains(expected), "{text}: {error}");
        assert_eq!(error.line, line, "{text}: {error}");
    }
    let streams = "{ size = 1 },".repeat(MAX_STREAMS + 1);
    let text = format!("tool = \"iperf3\"\n[[pair]]\nfrom = \"a\"\nto = \"b\"\nstreams = [{streams}]\n");
    let error = TrafficPlan::parse(&text).unwrap_err();
    assert!(error.text.contains("more than 1024 streams"), "{error}");
}

#[test]
fn checks() {
    let plan = TrafficPlan::parse(CROSS).unwrap();
    let known = hosts(&["gpu1", "gpu5"]);
    let check = |plan: &TrafficPlan, known: &[HostTarget], speeds: &Speeds, is_long| {
        concerns(plan, known, speeds, is_long)
            .into_iter()
            .map(|concern| (concern.gravity, concern.text))
            .collect::<Vec<_>>()
    };
    assert_eq!(check(&plan, &known, &Speeds::new(), false), []);
    let found = check(&plan, &hosts(&["gpu1"]), &Speeds::new(), false);
    assert!(
        found.len() == 1 && found[0].0 == Gravity::Error && found[0].1.contains("no host 'gpu5'"),
        "{found:?}"
    );
    let mut long = plan.clone();
    long.duration = Duration::from_hours(2);
    let found = check(&long, &known, &Speeds::new(), false);
    assert!(found[0].1.contains("7200 s is over an hour"), "{found:?}");
    assert_eq!(check(&long, &known, &Speeds::new(), true), []);
    let mut narrow = plan.clone();
    narrow.ports = PortRange::parse("2000-2000").unwrap();
    let found = check(&narrow, &known, &Speeds::new(), false);
    assert!(
        found[0].1.contains("host 'gpu5' has 2 servers, and ports has 1"),
        "{found:?}"
    );
    // 100 Gb/s into 40 Gb/s.
    let speed = |host: &str, bps: u64| ((host.to_owned(), "mlx5_0".to_owned()), bps);
    let speeds = Speeds::from([speed("gpu1", 100_000_000_000), speed("gpu5", 40_000_000_000)]);
    let found = check(&plan, &known, &speeds, false);
    assert_eq!(found.len(), 1, "the way back is from the slower one: {found:?}");
    assert!(
        found[0]
            .1
            .contains("gpu1:mlx5_0 sends at 100 Gbit/s and gpu5:mlx5_0 receives at 40.0 Gbit/s"),
        "{found:?}"
    );
    let twice = format!("{CROSS}\n[[pair]]\nfrom = \"gpu5:mlx5_0\"\nto = \"gpu1:mlx5_0\"\n");
    let found = check(
        &TrafficPlan::parse(&twice).unwrap(),
        &known,
        &Speeds::new(),
        false,
    );
    assert!(found[0].1.contains("in the plan 2 times"), "{found:?}");
    // Three senders share 100 Gb/s.
    let incast = "tool = \"ib_write_bw\"\n".to_owned()
        + &["b", "c", "d"]
            .map(|host| format!("[[pair]]\nfrom = \"{host}:m\"\nto = \"a:m\"\n"))
            .join("");
    let speeds = Speeds::from([(("a".to_owned(), "m".to_owned()), 100_000_000_000)]);
    let incast = TrafficPlan::parse(&incast).unwrap();
    let found = check(&incast, &hosts(&["a", "b", "c", "d"]), &speeds, false);
    assert!(
        found[0]
            .1
            .contains("receives 3 streams from 3 hosts, which is an incast: each gets at most 33.3 Gbit/s"),
        "{found:?}"
    );
    // A READ's data goes the other way.
    let mut read = incast;
    read.tool = Tool::IbReadBw;
    let loads = loads(&read, &speeds);
    assert_eq!((loads[0].sends, loads[0].receives), (3, 0));
}

#[test]
fn command_lines() {
    let line = |text: &str, place: usize, role, gid| {
        let plan = TrafficPlan::parse(text).unwrap();
        let streams = streams(&plan);
        let facts = Facts {
            gid,
            peer: "192.0.2.5",
        };
        words(&plan, &streams[place], role, facts).join(" ")
    };
    // The line of the specification, and -F.
    assert_eq!(
        line(CROSS, 0, Role::Client, Some(3)),
        "ib_write_bw -d mlx5_0 -i 1 -x 3 -p 18515 -s 65536 -q 1 -D 60 -F --report_gbits --tclass=106 192.0.2.5"
    );
    assert_eq!(
        line(CROSS, 1, Role::Server, None),
        "ib_write_bw -d mlx5_0 -i 1 -p 18516 -s 16384 -q 4 -D 60 -F --report_gbits --tclass=106"
    );
    let lat = CROSS
        .replace("ib_write_bw", "ib_read_lat")
        .replace(", qps = 4", "");
    assert_eq!(
        line(&lat, 0, Role::Client, None),
        "ib_read_lat -d mlx5_0 -i 1 -p 18515 -s 65536 -D 60 -F --tclass=106 192.0.2.5"
    );
    let iperf = CROSS.replace("ib_write_bw", "iperf3");
    assert_eq!(line(&iperf, 0, Role::Server, None), "iperf3 -p 18515 -s -1 -J");
    assert_eq!(
        line(&iperf, 1, Role::Client, None),
        "iperf3 -c 192.0.2.5 -p 18516 -t 60 -l 16384 -P 4 -S 106 -J"
    );
    let deep = format!("options = [\"-t\", \"4\"]\n{CROSS}");
    assert!(line(&deep, 0, Role::Client, None).ends_with("--tclass=106 -t 4 192.0.2.5"));
    assert!(line(&deep, 0, Role::Server, None).ends_with("--tclass=106 -t 4"));
    // The plan sets the time and the end of a stream, however the option is written.
    for option in [
        "--run_infinitely",
        "--run_i",
        "-D",
        "-D100",
        "--duration=9",
        "-FD",
        "-p1",
        "--port=3",
    ] {
        let error = TrafficPlan::parse(&format!("options = [\"{option}\"]\n{CROSS}")).unwrap_err();
        assert!(error.text.contains("is not allowed"), "{option}: {error}");
    }
    for tool in Tool::ALL {
        let text = CROSS.replace("ib_write_bw", tool.name()).replace(", qps = 4", "");
        for role in [Role::Server, Role::Client] {
            assert!(!line(&text, 0, role, Some(1)).contains("infinitely"));
        }
    }
}

/// Values at their bounds and beyond: perftest's manual page has messages of up to 2^23 bytes, iperf3's up to 128 connections.
#[test]
fn bounds_of_plans() {
    let plan = |tool: &str, ends: &str| TrafficPlan::parse(&format!("tool = \"{tool}\"\n[[pair]]\n{ends}"));
    let stream = |tool: &str, stream: &str| {
        let ends = format!("from = \"a:d\"\nto = \"b:d\"\nstreams = [{{ {stream} }}]\n");
        plan(tool, &ends).is_ok()
    };
    assert!(stream("ib_write_bw", "size = 8388608") && !stream("ib_write_bw", "size = 8388609"));
    assert!(stream("iperf3", "size = 1, qps = 128") && !stream("iperf3", "size = 1, qps = 129"));
    let from = |end: &str| plan("iperf3", &format!("from = {end}\nto = \"b\"\n")).is_ok();
    assert!(from("\"a:d:255\"") && !from("\"a:d:256\"") && !from("\"a:d:0\""));
    assert!(!from("\"a:-d\"") && !from("\"a:d;x\"") && !from("\"a:d:1:1\""));
    assert!(from("{ at = \"a\", gid = 1023 }") && !from("{ at = \"a\", gid = 1024 }"));
    for option in ["-t5", "--time=5", "-s", "-c", "-p1"] {
        let text =
            format!("options = [\"{option}\"]\ntool = \"iperf3\"\n[[pair]]\nfrom = \"a\"\nto = \"b\"\n");
        assert!(TrafficPlan::parse(&text).is_err(), "{option}");
    }
    // These defaults are in docs/traffic.md.
    let plan = plan("iperf3", "from = \"a\"\nto = \"b\"\n").unwrap();
    assert_eq!(
        (plan.duration, plan.grace),
        (Duration::from_mins(1), Duration::from_secs(15))
    );
    assert_eq!((plan.ports.first, plan.ports.last), (18_515, 18_600));
    let hour = TrafficPlan {
        duration: Duration::from_hours(1),
        ..plan
    };
    assert_eq!(concerns(&hour, &hosts(&["a", "b"]), &Speeds::new(), false), []);
}

#[test]
fn words_of_other_ends() {
    let words_of = |text: &str, role| {
        let plan = TrafficPlan::parse(text).unwrap();
        let facts = Facts {
            gid: None,
            peer: "192.0.2.5",
        };
        words(&plan, &streams(&plan)[0], role, facts).join(" ")
    };
    // The second port of a device.
    let second = CROSS.replace("gpu1:mlx5_0", "gpu1:mlx5_0:2");
    assert!(words_of(&second, Role::Client).starts_with("ib_write_bw -d mlx5_0 -i 2 -p "));
    // iperf3(1): -B binds to an address. Its options are the client's.
    let iperf = "tool = \"iperf3\"\noptions = [\"-w\", \"1M\"]\n[[pair]]\nfrom = { at = \"a\", address = \"192.0.2.1\" }\nto = \"b\"\n";
    assert_eq!(
        words_of(iperf, Role::Client),
        "iperf3 -c 192.0.2.5 -p 18515 -t 60 -l 65536 -P 1 -B 192.0.2.1 -J -w 1M"
    );
    assert_eq!(words_of(iperf, Role::Server), "iperf3 -p 18515 -s -1 -J");
    // As many ports as streams: each has its own, also on two hosts, which may be one network.
    let plan = TrafficPlan::parse(&CROSS.replace("18515-18600", "18515-18518")).unwrap();
    let ports: Vec<_> = streams(&plan).iter().filter_map(|stream| stream.port).collect();
    assert_eq!(ports, [18_515, 18_516, 18_517, 18_518]);
}

#[test]
fn incasts_are_of_several_hosts_and_of_bandwidth() {
    let to_one = |tool: &str, from: &[&str]| {
        let pairs: Vec<String> = from
            .iter()
            .map(|end| format!("[[pair]]\nfrom = \"{end}\"\nto = \"a:m\"\n"))
            .collect();
        let pairs = pairs.concat();
        let plan = TrafficPlan::parse(&format!("tool = \"{tool}\"\n{pairs}")).unwrap();
        let found = concerns(&plan, &hosts(&["a", "b", "c"]), &Speeds::new(), false);
        found.into_iter().map(|concern| concern.text).collect::<Vec<_>>()
    };
    assert!(to_one("ib_send_bw", &["b:m", "c:m"])[0].contains("2 streams from 2 hosts, which is an incast"));
    // A latency test leaves the link idle; two devices are one host.
    assert_eq!(to_one("ib_send_lat", &["b:m", "c:m"]), [] as [&str; 0]);
    assert_eq!(to_one("ib_send_bw", &["b:m", "b:n"]), [] as [&str; 0]);
    assert!(to_one("ib_send_bw", &["a:n"])[0].contains("a:n and a:m are one host"));
}

#[test]
fn states_of_logs() {
    assert_eq!(log_state(""), LogState::Empty);
    assert_eq!(log_state(fixture!("waiting.txt")), LogState::Waiting);
    assert_eq!(log_state(fixture!("served.txt")), LogState::Begun);
    assert_eq!(log_state(fixture!("table.txt")), LogState::Table);
    assert_eq!(
        log_state(fixture!("unconnected.txt")),
        LogState::CouldNotConnect("Couldn't connect to 192.0.2.5:18515".to_owned())
    );
    assert_eq!(
        log_state(fixture!("queue_pair.txt")),
        LogState::FailedQueuePair("Failed to modify QP 292 to RTR".to_owned())
    );
    assert_eq!(
        log_state(fixture!("completion.txt")),
        LogState::CompletionError(
            "Completion with error at client: Failed status 12: wr_id 0 syndrom 0x81".to_owned()
        )
    );
    let refused = log_state(fixture!("iperf3_refused.json"));
    assert!(
        matches!(&refused, LogState::CouldNotConnect(line) if line.contains("Connection refused")),
        "{refused:?}"
    );
    // A client of iperf3 3.12 whose server was ended: its exit code is 0, and it has sums. `status` sees the end of a long document.
    let terminated = fixture!("iperf3_terminated.json");
    let failed = LogState::Failed("iperf3 says: the server has terminated".to_owned());
    assert_eq!(log_state(terminated), failed);
    assert_eq!(log_state(&terminated[terminated.len() - 600..]), failed);
    assert_eq!(log_state("\"error\": \"x\"\n"), LogState::Begun);
    // GNU coreutils, where the tool is absent.
    let absent = "timeout: failed to run command 'ib_write_bw': No such file or directory\n";
    assert_eq!(log_state(absent), LogState::Failed(absent.trim().to_owned()));
    assert_eq!(
        log_state(" IB device mlx5_9 not found\n"),
        LogState::Failed("IB device mlx5_9 not found".to_owned())
    );
    // A table that was cut is none.
    let table = fixture!("table.txt");
    assert_eq!(log_state(table.split("92.50").next().unwrap()), LogState::Begun);
}

#[test]
fn patterns() {
    let ends = |count: usize| -> Vec<Endpoint> {
        (0..count)
            .map(|host| Endpoint::parse(&format!("h{host}:mlx5_0")).unwrap())
            .collect()
    };
    let none = |count: usize| vec![None; count];
    let pairs = |pattern: &str, count: usize| {
        let pattern: Pattern = pattern.parse().unwrap();
        pattern.pairs(&ends(count), &none(count))
    };
    assert_eq!(pairs("pairs", 4).unwrap(), [(0, 1), (2, 3)]);
    assert_eq!(pairs("ring", 3).unwrap(), [(0, 1), (1, 2), (2, 0)]);
    assert_eq!(pairs("incast=2:1", 4).unwrap(), [(1, 0), (2, 0)]);
    assert_eq!(pairs("incast 2:1", 4).unwrap(), [(1, 0), (2, 0)]);
    assert_eq!(pairs("incast", 4).unwrap().len(), 3);
    assert_eq!(pairs("all-to-all", 4).unwrap().len(), 12);
    for (pattern, count) in [
        ("pairs", 3),
        ("ring", 1),
        ("incast=4:1", 4),
        ("all-to-all", 40),
        ("ring", 2_000),
        ("cross-rack", 4),
    ] {
        assert!(pairs(pattern, count).is_err(), "{pattern} {count}");
    }
    let racks: Vec<Option<String>> = ["a", "a", "b", "b"].map(|rack| Some(rack.to_owned())).to_vec();
    assert_eq!(
        Pattern::CrossRack.pairs(&ends(4), &racks).unwrap(),
        [(0, 2), (2, 0), (1, 3), (3, 1)]
    );
    for name in [
        "pairs",
        "ring",
        "incast",
        "incast=3:1",
        "all-to-all",
        "cross-rack",
    ] {
        assert_eq!(name.parse::<Pattern>().unwrap().to_string(), name);
    }
    for wrong in ["", "incast=0:1", "incast=2:2", "mesh"] {
        assert!(wrong.parse::<Pattern>().is_err(), "{wrong}");
    }
}

proptest! {
    /// Each server's port has one client, and no two hosts are the same pair twice; the written plan has the same streams.
    #[test]
    fn patterns_give_each_server_one_client(count in 2usize..24, racks in 2usize..5, which in 0usize..6) {
        let patterns = ["pairs", "ring", "incast", "incast=1:1", "all-to-all", "cross-rack"];
        let pattern: Pattern = patterns[which].parse().unwrap();
        let ends: Vec<Endpoint> = (0..count).map(|host| Endpoint::parse(&format!("h{host}:mlx5_0")).unwrap()).collect();
        let racks: Vec<Option<String>> = (0..count).map(|host| Some(format!("r{}", host % racks))).collect();
        let Ok(pairs) = pattern.pairs(&ends, &racks) else {
            prop_assert!(pattern == Pattern::Pairs && count % 2 == 1);
            return Ok(());
        };
        let once: BTreeSet<_> = pairs.iter().collect();
        prop_assert_eq!(once.len(), pairs.len());
        let mut plan = TrafficPlan::parse(CROSS).unwrap();
        plan.name = "a \"name\" \\ of è".to_owned();
        let text = written(&plan, &ends, &pairs);
        let again = TrafficPlan::parse(&text).unwrap();
        prop_assert_eq!(&again.name, &plan.name);
        prop_assert_eq!((again.duration, again.tclass), (Duration::from_mins(1), Some(106)));
        prop_assert!(again.pairs.iter().all(|pair| pair.streams == plan.pairs[0].streams));
        let all = streams(&again);
        prop_assert_eq!(all.len(), 2 * pairs.len());
        let ports: BTreeSet<_> = all.iter().map(|stream| (stream.server.host.clone(), stream.port.unwrap())).collect();
        prop_assert_eq!(ports.len(), all.len());
        prop_assert!(all.iter().all(|stream| stream.client.host != stream.server.host));
    }

    /// No text makes a parser panic.
    #[test]
    fn any_text_is_read(text in "[ -~\n\t]{0,200}") {
        let _ = TrafficPlan::parse(&text);
        let _ = log_state(&text);
    }
}
