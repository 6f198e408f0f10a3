//! A device whose language and transport are made here, and a folder with recorded answers.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Mutex;

use super::*;
use roce_switches::device::file_name;

/// Two commands, one of them slow, and one for each interface that the slow one names.
struct Fake;

impl Language for Fake {
    fn source(&self) -> SampleSource {
        SampleSource::Switch
    }

    fn questions(&self, known: &Answers) -> Vec<Question> {
        let mut all = vec![Question::slow("show interfaces"), Question::each("show drops")];
        let interfaces = known.get("show interfaces").unwrap_or_default();
        all.extend(
            interfaces
                .lines()
                .map(|name| Question::slow(&format!("show policy {name}"))),
        );
        all
    }

    fn read(&self, node: &str, time: Time, answers: &Answers) -> Reading {
        let mut reading = Reading::new(SampleSource::Switch, node, time);
        for (interface, policy) in answers.starting("show policy ") {
            if policy.trim() == "lossless" {
                reading.push(Counter::SwitchQueueNoDrop, interface, 1.0);
            }
        }
        if let Some(drops) = answers
            .get("show drops")
            .and_then(|text| text.trim().parse().ok())
        {
            reading.push(Counter::SwitchMmuDroppedPackets, "", drops);
        }
        reading
    }
}

/// Commands that were given, by a transport that a function answers.
type GivenCommands = Arc<Mutex<Vec<String>>>;

struct ScriptedTransport<F> {
    given: GivenCommands,
    answer: F,
}

impl<F: FnMut(&str) -> Outcome + Send> Transport for ScriptedTransport<F> {
    fn ask(&mut self, questions: &[Question]) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        for question in questions {
            self.given.lock().unwrap().push(question.command.clone());
            let outcome = (self.answer)(&question.command);
            let is_last = matches!(&outcome, Err(unanswered) if unanswered.reason == Reason::Unreachable);
            outcomes.push(outcome);
            if is_last {
                break;
            }
        }
        outcomes
    }
}

fn fake(answer: impl FnMut(&str) -> Outcome + Send + 'static) -> (DeviceReader, GivenCommands) {
    let given = GivenCommands::default();
    let transport = ScriptedTransport {
        given: Arc::clone(&given),
        answer,
    };
    (
        DeviceReader::new("leaf1", Box::new(Fake), Box::new(transport)),
        given,
    )
}

fn values(reading: &Reading) -> Vec<(&'static str, &str, f64)> {
    let samples = reading.samples.iter();
    samples
        .map(|sample| (sample.counter.name(), sample.object.as_ref(), sample.value))
        .collect()
}

fn taken(given: &GivenCommands) -> Vec<String> {
    std::mem::take(&mut given.lock().unwrap())
}

#[test]
fn slow_questions_are_asked_once_an_hour_and_lead_to_others() {
    let (mut reader, given) = fake(|command| match command {
        "show interfaces" => Ok("Ethernet1/1\nEthernet1/2\n".to_owned()),
        "show policy Ethernet1/1" => Ok("lossless\n".to_owned()),
        "show drops" => Ok("7\n".to_owned()),
        _ => Err(UnansweredQuestion::new(Reason::Unsupported, "% Invalid command")),
    });
    let start = Instant::now();
    let all = [
        "show interfaces",
        "show drops",
        "show policy Ethernet1/1",
        "show policy Ethernet1/2",
    ];
    let expected = [
        ("switch_queue_no_drop", "Ethernet1/1", 1.0),
        ("switch_mmu_dropped_packets", "", 7.0),
        ("switch_up", "", 1.0),
    ];
    let first = reader.read_at(start, || Time(5));
    assert_eq!(taken(&given), all);
    assert_eq!(values(&first), expected);
    assert_eq!(reader.errors().collect::<Vec<_>>(), [(Reason::Unsupported, 1)]);
    // 59 min later: what was said then is still good, and what is unknown is still named.
    let later = reader.read_at(start + Duration::from_mins(59), || Time(6));
    assert_eq!(taken(&given), ["show drops"]);
    assert_eq!(values(&later), expected);
    assert_eq!(later.problems.len(), 1);
    assert_eq!(reader.errors().collect::<Vec<_>>(), [(Reason::Unsupported, 1)]);
    // 61 min later.
    reader.read_at(start + Duration::from_mins(61), || Time(7));
    assert_eq!(taken(&given), all);
    assert_eq!(reader.errors().collect::<Vec<_>>(), [(Reason::Unsupported, 2)]);
}

#[test]
fn a_device_that_vanishes_has_no_values_but_down() {
    let mut readings = 0;
    let (mut reader, given) = fake(move |command| {
        if command == "show interfaces" {
            return Ok("Ethernet1/1\n".to_owned());
        }
        readings += 1;
        match readings {
            1 => Ok("7\n".to_owned()),
            2 => Ok("lossless\n".to_owned()),
            3 => Err(UnansweredQuestion::new(Reason::Unreachable, "connection refused")),
            _ => Ok("9\n".to_owned()),
        }
    });
    let now = Instant::now();
    assert_eq!(reader.read_at(now, || Time(5)).samples.len(), 3);
    taken(&given);
    // The kept answer to a slow question is not shown either.
    let down = reader.read_at(now, || Time(6));
    assert_eq!(values(&down), [("switch_up", "", 0.0)]);
    assert_eq!(down.problems[0].text, "connection refused");
    assert_eq!(taken(&given), ["show drops"], "no other command is given");
    assert_eq!(reader.read_at(now, || Time(7)).samples.len(), 3);
}

#[test]
fn a_command_without_an_answer_leaves_its_values_out() {
    let mut times = 0;
    let (mut reader, _) = fake(move |command| {
        times += 1;
        match command {
            "show interfaces" => Ok(String::new()),
            _ if times == 2 => Ok("7\n".to_owned()),
            _ => Err(UnansweredQuestion::new(Reason::Timeout, "no answer within 10 s")),
        }
    });
    let now = Instant::now();
    assert_eq!(reader.read_at(now, || Time(5)).samples.len(), 2);
    // Neither the value of the reading before nor 0.
    let second = reader.read_at(now, || Time(6));
    assert_eq!(values(&second), [("switch_up", "", 0.0)], "nothing was answered");
    assert_eq!(second.problems[0].reason, Reason::Timeout);
}

#[test]
fn values_have_the_time_in_the_middle_of_the_asking() {
    let (mut reader, _) = fake(|_| Ok("7\n".to_owned()));
    let times = Mutex::new([Time(1_000), Time(3_000)].into_iter());
    let reading = reader.read_at(Instant::now(), || times.lock().unwrap().next().unwrap());
    assert_eq!(reading.time, Time(2_000));
    assert!(reading.samples.iter().all(|sample| sample.time == Time(2_000)));
}

#[test]
fn a_recorded_folder_answers_as_the_device_did() {
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::below(&folder.path().join("raw"), false).unwrap();
    let (mut reader, _) = fake(|command| match command {
        "show interfaces" => Ok("Ethernet1/1\nEthernet1/2\nusername a password canary\n".to_owned()),
        "show policy Ethernet1/1" => Ok("lossless\n".to_owned()),
        "show drops" => Ok("7".to_owned()),
        _ => Err(UnansweredQuestion {
            answer: Some("% Invalid command at '^' marker.\n".to_owned()),
            ..UnansweredQuestion::new(Reason::Unsupported, "% Invalid command")
        }),
    });
    reader.record_to(recorder.of("leaf1").unwrap());
    let live = reader.read_at(Instant::now(), || Time(5));
    assert!(reader.take_record_error().is_none());
    let node = folder.path().join("raw/leaf1");
    let text = std::fs::read_to_string(node.join("show_interfaces.txt")).unwrap();
    assert_eq!(text, "Ethernet1/1\nEthernet1/2\n(left out)\n");
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&node.join("show_interfaces.txt")), 0o600);
    let mut replay = DeviceReader::new("leaf1", Box::new(Fake), Box::new(Files::new(node)));
    let again = replay.read_at(Instant::now(), || Time(5));
    assert_eq!(values(&again), values(&live));
    // The third "interface" is the line that was left out.
    let reasons = |reading: &Reading| {
        let commands = reading.problems.iter();
        let all: Vec<_> = commands.map(|problem| problem.command.clone()).collect();
        all
    };
    assert!(reasons(&live).contains(&"show policy Ethernet1/2".to_owned()));
    assert!(reasons(&again).contains(&"show policy Ethernet1/2".to_owned()));
    let missing = folder.path().join("nothing");
    let mut missing = DeviceReader::new("leaf1", Box::new(Fake), Box::new(Files::new(missing)));
    assert_eq!(
        values(&missing.read_at(Instant::now(), || Time(5))),
        [("switch_up", "", 0.0)]
    );
}

#[test]
fn nothing_leads_out_of_a_recorded_folder() {
    let folder = tempfile::tempdir().unwrap();
    let recorded = folder.path().join("recorded");
    std::fs::create_dir(&recorded).unwrap();
    std::fs::write(folder.path().join("secret"), "canary").unwrap();
    std::fs::write(recorded.join("inside"), "an answer").unwrap();
    for (name, target) in [
        ("show_a.txt", "../secret"),
        ("show_b.txt", "/proc/self/environ"),
        ("show_c.txt", "inside"),
    ] {
        std::os::unix::fs::symlink(target, recorded.join(name)).unwrap();
    }
    let asked = |question| Files::new(recorded.clone()).ask(&[question]).remove(0);
    for command in ["show a", "show b"] {
        assert!(asked(Question::each(command)).is_err(), "{command}");
    }
    assert_eq!(asked(Question::each("show c")).unwrap(), "an answer");
    let script = asked(Question::script("show a")).unwrap();
    assert!(
        script.contains("an answer") && !script.contains("canary"),
        "{script}"
    );
    let further: Vec<_> = Files::new(recorded.clone())
        .further()
        .unwrap()
        .iter()
        .map(|(_, text)| text.to_owned())
        .collect();
    assert!(!further.concat().contains("canary"), "{further:?}");
}

#[test]
fn a_script_is_answered_by_files_of_its_commands() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("dump_-k__A___.json", "{}");
    write("dump_-k__A___.txt", "replaced");
    write("b.txt", "\n== three\n3\n== four\n4");
    write("other_file.txt", "5");
    write("c.log", "no answer\n");
    let script = Question::script("echo; echo \"== dump -k 'A|*'\"; dump -k 'A|*' 2>&1\nq two\n");
    let mut files = Files::new(folder.path().to_path_buf());
    let outcomes = files.ask(std::slice::from_ref(&script));
    let mut answers = Answers::default();
    answers.add(&script, outcomes[0].as_ref().unwrap());
    let all: Vec<_> = answers.iter().collect();
    assert_eq!(
        all,
        [
            ("c", "no answer\n"),
            ("dump -k 'A|*'", "{}\n"),
            ("four", "4\n"),
            ("other_file", "5\n"),
            ("three", "3\n")
        ]
    );
    assert_eq!(answers.get("other file"), Some("5\n"));
}

#[test]
fn a_script_is_recorded_by_its_commands() {
    let folder = tempfile::tempdir().unwrap();
    let long = "x".repeat(200);
    let mut recorder = Recorder::below(folder.path(), false).unwrap();
    let text = format!("== show a\n1\n== {long}1\n{{}}\n== {long}2\n2\n");
    recorder.write(&Question::script("q"), &text).unwrap();
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(read("show_a.txt"), "1\n");
    let short = file_name(&long);
    assert_eq!(read(&format!("{short}.json")), "{}\n");
    assert_eq!(
        read(&format!("{short}-2.txt")),
        "2\n",
        "the end of a long command is not in its name"
    );
}

#[test]
fn texts_answer_where_there_is_no_document() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("show_version.txt"), "NXOS: version 9.3(9)\n").unwrap();
    let mut files = Files::new(folder.path().to_path_buf());
    let outcomes = files.ask(&[
        Question::each("show version | json"),
        Question::each("show clock | json"),
    ]);
    assert_eq!(outcomes[0].as_deref(), Ok("NXOS: version 9.3(9)\n"));
    assert_eq!(outcomes[1].as_ref().unwrap_err().reason, Reason::Unsupported);
}

#[test]
fn this_machine_is_a_device_too() {
    let ssh = Arc::new(SshSettings {
        timeout: Duration::from_millis(300),
        ..SshSettings::default()
    });
    let mut here = Machine::new("here", "local", None, &ssh);
    let questions = [
        Question::each("echo one"),
        Question::each("surely-no-such-command"),
        Question::each("echo '% Invalid command at marker'; exit 1"),
        Question::script("echo '== a'; echo 1; false"),
        Question::each("sleep 60"),
        Question::each("sleep 60"),
        Question::each("echo never"),
    ];
    let outcomes = here.ask(&questions);
    let shown: Vec<Result<&str, Reason>> = outcomes
        .iter()
        .map(|outcome| outcome.as_deref().map_err(|unanswered| unanswered.reason))
        .collect();
    assert_eq!(
        shown,
        [
            Ok("one\n"),
            Err(Reason::Unsupported),
            Err(Reason::Unsupported),
            Ok("== a\n1\n"),
            Err(Reason::Timeout),
            Err(Reason::Timeout)
        ],
        "behind two commands that take too long nothing is asked"
    );
}

#[test]
fn a_device_that_says_nothing_that_is_understood_is_not_up() {
    let noise: String = (0..5_000_000_u32)
        .map(|at| char::from(b' ' + (at.wrapping_mul(2_654_435_761) >> 24) as u8 % 95))
        .collect();
    let languages: [fn() -> Box<dyn Language>; 5] = [
        || Box::new(SwitchKind::Nexus),
        || Box::new(SwitchKind::Sonic),
        || Box::new(SwitchKind::Eos),
        || Box::new(SwitchKind::Cumulus),
        || {
            Box::new(Hypervisor {
                kind: HypervisorKind::Esxi,
                vmnics: vec!["vmnic5".to_owned()],
            })
        },
    ];
    for text in ["", "\n", "{}", noise.as_str()] {
        for language in languages {
            let transport = ScriptedTransport {
                given: GivenCommands::default(),
                answer: {
                    let text = text.to_owned();
                    move |_: &str| Ok(text.clone())
                },
            };
            let mut reader = DeviceReader::new("leaf1", language(), Box::new(transport));
            let reading = reader.read_at(Instant::now(), || Time(5));
            let shown: String = text.chars().take(10).collect();
            assert_eq!(reading.understood(), 0, "{shown}: {:?}", values(&reading));
            assert_eq!(values(&reading).len(), 1, "{shown}");
            assert!(reading.samples[0].value == 0.0, "{shown}: it is not up");
            let said = &reading.problems[0].text;
            assert_eq!(said, "it answered, and nothing of it was understood", "{shown}");
            assert!(reader.errors().any(|(reason, _)| reason == Reason::Parse));
        }
    }
}
