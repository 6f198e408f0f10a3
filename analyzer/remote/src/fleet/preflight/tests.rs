use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use proptest::prelude::*;
use roce_switches::inventory::SshSettings;

use super::*;

fn facts(lines: &[&str]) -> Facts {
    let mut facts = Facts::default();
    for line in lines {
        facts.take(line);
    }
    facts
}

/// A host as it answers over ssh; the first line is a greeting of its login shell.
const HOST: [&str; 14] = [
    "Welcome to gpu1 = the first",
    "release=6.1.0-18-amd64",
    "machine=x86_64",
    "hostname=gpu1",
    "net=net:[4026531840]",
    "uid=0",
    // All capabilities of Linux 6.1: bits 0 to 40.
    "rights=000001ffffffffff",
    "tool=timeout",
    "program=1 0 0.1.0 /usr/bin/roce-analyze",
    "tcpdump=0 /usr/bin/tcpdump",
    "interface=ens1f0np0 up 100000",
    "interface=ens1f1np1 down -1",
    "rdma=mlx5_0 1 ens1f0np0",
    "free=1024",
];

#[test]
fn answers_are_taken_field_by_field() {
    let facts = facts(&HOST);
    assert_eq!(facts.hostname.as_deref(), Some("gpu1"));
    assert_eq!(facts.net.as_deref(), Some("4026531840"));
    // df counts in units of 1,024 bytes.
    assert_eq!(facts.free_bytes, Some(1_048_576));
    assert_eq!(facts.chosen(&[]).unwrap(), ["ens1f0np0"]);
    assert_eq!(facts.speed_mbps(&["ens1f0np0".to_owned()]), Some(100_000));
    assert_eq!(facts.speed_mbps(&["ens1f1np1".to_owned()]), None);
    let missing = facts.chosen(&["eth7".to_owned()]).unwrap_err();
    assert!(missing.starts_with("there is no interface 'eth7'"), "{missing}");
    // A tcpdump whose libpcap has RDMA support captures from the device itself.
    let device = ["mlx5_0".to_owned(), "mlx5_0:1".to_owned()];
    assert_eq!(facts.chosen(&device).unwrap(), device);
    assert!(facts.chosen(&["mlx5_1".to_owned()]).is_err());
}

#[test]
fn the_first_way_that_works_is_taken() {
    let with = |changed: &[(usize, &'static str)]| {
        let mut lines = HOST;
        for (at, line) in changed {
            lines[*at] = line;
        }
        facts(&lines)
    };
    let live = How::Live {
        program: "/usr/bin/roce-analyze".to_owned(),
    };
    assert_eq!(with(&[]).choose("0.1.0", By::Any), Ok(live.clone()));
    assert_eq!(with(&[]).choose("0.1.0", By::Tcpdump), Ok(How::Tcpdump));
    assert_eq!(with(&[]).choose("0.2.0", By::Any), Ok(How::Tcpdump));
    // Bit 13 is CAP_NET_RAW; without it the file's own rights count.
    let no_right = (6, "rights=0000000000000000");
    let refused = with(&[no_right]).choose("0.1.0", By::Any).unwrap_err();
    assert!(matches!(refused, Unable::NoRight { .. }), "{refused}");
    let own = (8, "program=1 1 0.1.0 /usr/bin/roce-analyze");
    assert_eq!(with(&[no_right, own]).choose("0.1.0", By::Any), Ok(live));
    // A build without live captures, and no tcpdump.
    let unable = with(&[(8, "program=0 0 0.1.0 /usr/bin/roce-analyze"), (9, "")]);
    let none = unable.choose("0.1.0", By::Any).unwrap_err();
    assert!(none.to_string().contains("(roce-analyze 0.1.0 is)"), "{none}");
}

#[test]
fn names_that_a_script_could_misread_are_no_names() {
    let facts = facts(&[
        "interface=a;reboot up 1",
        "interface=-x up 1",
        "interface=../x up 1",
        "base=/tmp/$(reboot)",
        "program=1 0 0.1.0 /bin/x;y",
        "net=net:[../../x]",
    ]);
    assert_eq!((facts.interfaces, facts.programs), (Vec::new(), Vec::new()));
    assert_eq!((facts.base, facts.net), (None, None));
}

#[test]
fn this_machine_answers() {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().join("fleet");
    let machine = Machine::new("here", "local", None, &Arc::new(SshSettings::default()));
    let question = Question {
        base: base.to_str().unwrap(),
        ..Question::default()
    };
    let (facts, offset) = ask(&machine, question, Duration::from_secs(20)).unwrap();
    let uname = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(facts.release.as_deref(), Some(uname.trim()));
    assert_eq!(facts.base.as_deref(), base.to_str());
    assert!(
        facts.interfaces.iter().any(|found| found.name == "lo"),
        "{facts:?}"
    );
    // One clock: the offset is within its own bound, and a microsecond of rounding.
    let offset = offset.unwrap();
    assert!(offset.ahead_ns.abs() <= offset.bound_ns + 1_000, "{offset:?}");
    assert!(offset.bound_ns < 10_000_000_000, "{offset:?}");

    // A folder that others can enter is not used.
    std::fs::set_permissions(&base, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (facts, _) = ask(&machine, question, Duration::from_secs(20)).unwrap();
    assert_eq!(facts.base, None);
    assert!(facts.problem.unwrap().contains("mode 700"));
}

proptest! {
    /// Any answer gives bounded facts: at most [`MAX_ENTRIES`] of each, and only plain paths.
    #[test]
    fn any_answer_is_tolerated(lines in proptest::collection::vec(
        "(base|free|program|interface|rdma|net|rights|tool|tcpdump|uid|end|x)=[ -~\u{0}-\u{20}]{0,40}|\\PC{0,60}", 0..60,
    )) {
        let mut facts = Facts::default();
        for line in &lines {
            facts.take(line);
        }
        prop_assert!(facts.base.is_none_or(|base| is_plain_path(&base)));
        prop_assert!(facts.interfaces.iter().all(|found| is_plain(&found.name)));
        prop_assert!(facts.programs.len() + facts.rdma.len() + facts.tools.len() <= lines.len());
        let _ = facts.sync;
    }
}
