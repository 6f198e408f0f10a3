//! Keys: sort, filter, look back, step.

use super::*;

#[test]
fn sorted_by_each_key() {
    let screen = running(false, PLAIN);
    // Losses, then marks, then volume.
    assert_eq!(order(&screen), ["0x13", "0x12", "0x11", "0x21"]);
    for (letter, wanted) in [
        ('r', ["0x11", "0x12", "0x13", "0x21"]),
        ('c', ["0x12", "0x11", "0x21", "0x13"]),
        ('n', ["0x12", "0x11", "0x21", "0x13"]),
        ('x', ["0x13", "0x11", "0x21", "0x12"]),
        ('m', ["0x13", "0x11", "0x21", "0x12"]),
        ('l', ["0x11", "0x21", "0x12", "0x13"]),
        ('a', ["0x11", "0x21", "0x12", "0x13"]),
        ('t', ["0x13", "0x12", "0x11", "0x21"]),
    ] {
        press(&screen, &letter.to_string());
        assert_eq!(order(&screen), wanted, "by {letter}");
        press(&screen, &letter.to_string());
        let mut back = wanted.to_vec();
        back.reverse();
        assert_eq!(order(&screen), back, "by {letter}, reversed");
        press(&screen, &letter.to_string());
    }
    press(&screen, "rr");
    assert!(drawn(&screen, &live(), 80, 24).contains("by rate, reversed"));
}

#[test]
fn filtered_in_the_language_of_flow() {
    let screen = running(false, PLAIN);
    let filter = |text: &str| {
        press(&screen, "/");
        // Earlier characters are removed.
        for _ in 0..200 {
            screen.key(Key::Backspace);
        }
        press(&screen, text);
        screen.key(Key::Enter);
    };
    filter("10.77.0.1 <-> 10.77.0.2");
    assert_eq!(order(&screen), ["0x11", "0x21"]);
    filter("dst 10.77.0.2 and not qpn 0x11");
    assert_eq!(order(&screen), ["0x12"]);
    // Known of three flows, and of none from the tap that does not count.
    filter("dscp 26");
    assert_eq!(order(&screen), ["0x13", "0x11"]);
    filter("src 192.168.0.0/16");
    assert_eq!(order(&screen), [""; 0]);
    assert!(drawn(&screen, &live(), 80, 24).contains("no flow for which this holds: src 192.168.0.0/16"));
    // A mistake is shown in its place, and nothing changes until it is corrected.
    filter("qpn nine");
    let text = drawn(&screen, &live(), 80, 24);
    assert!(
        text.contains("filter: qpn nine_") && text.contains("at 5: 'nine'"),
        "{text}"
    );
    screen.key(Key::Escape);
    assert_eq!(order(&screen), [""; 0]);
    // On the table, Escape takes it away.
    screen.key(Key::Escape);
    assert_eq!(order(&screen).len(), 4);
    // Keys are letters while one types.
    press(&screen, "/q");
    assert!(drawn(&screen, &live(), 80, 24).contains("filter: q_"));
}

/// The first line.
fn shown(screen: &Screen, standing: &RunStanding) -> String {
    let text = drawn(screen, standing, 80, 24);
    line(&text, "roce-analyze")
        .trim_matches('"')
        .trim_end()
        .to_owned()
}

#[test]
fn a_live_view_stands_still_while_the_capture_goes_on() {
    let mut screen = running(false, PLAIN);
    assert!(shown(&screen, &live()).ends_with("18:00:03  running"));
    assert_eq!(screen.key(Key::Char(' ')), Some(Command::Pause(true)));
    screen.progress(&complete(5)).unwrap();
    assert!(shown(&screen, &live()).ends_with("18:00:03  PAUSED  2 intervals back"));
    assert_eq!(screen.key(Key::Right), None);
    assert!(shown(&screen, &live()).ends_with("18:00:04  PAUSED  1 interval back"));
    screen.key(Key::Left);
    screen.key(Key::Left);
    screen.key(Key::Left);
    // There is nothing before the first interval.
    screen.key(Key::Left);
    assert!(shown(&screen, &live()).ends_with("18:00:01  PAUSED  4 intervals back"));
    assert_eq!(screen.key(Key::Char(' ')), Some(Command::Pause(false)));
    assert!(shown(&screen, &live()).ends_with("18:00:05  running"));
    // Looking back pauses, too.
    assert_eq!(screen.key(Key::Left), Some(Command::Pause(true)));
    assert!(shown(&screen, &live()).ends_with("PAUSED  1 interval back"));
    // A replay's keys are of no use to devices.
    for letter in ['+', '-', ']'] {
        assert_eq!(screen.key(Key::Char(letter)), None);
    }
    assert_eq!(screen.key(Key::Char('q')), Some(Command::Quit));
}

#[test]
fn a_replay_steps_by_whole_intervals() {
    let screen = running(true, PLAIN);
    assert!(shown(&screen, &replayed()).ends_with("+3 s of 8 s  1x"));
    assert_eq!(screen.key(Key::Char('+')), Some(Command::Faster));
    assert_eq!(screen.key(Key::Char('-')), Some(Command::Slower));
    assert_eq!(screen.key(Key::Char(' ')), Some(Command::Pause(true)));
    // The newest is of the third second: one more is complete at the end of the fourth.
    let second = |end: u64| Time(START + end * Span::SECOND.0);
    assert_eq!(screen.key(Key::Right), Some(Command::Until(second(4))));
    assert_eq!(screen.key(Key::Char(']')), Some(Command::Until(second(13))));
    assert_eq!(screen.key(Key::Left), None);
    assert!(shown(&screen, &replayed()).ends_with("+2 s of 8 s  PAUSED  1 interval back"));
    assert_eq!(screen.key(Key::Right), None, "there is one to look at");
    assert!(shown(&screen, &replayed()).ends_with("+3 s of 8 s  PAUSED"));
}

#[test]
fn what_a_replay_has_not_come_to_is_not_shown() {
    let mut about = about(true);
    about.lead = Span(Span::SECOND.0);
    let mut screen = Screen::new(about, PLAIN);
    screen.begin(BIN).unwrap();
    screen.flows_opened(&keys()).unwrap();
    for bin in 0..35 {
        screen.timeline(&rows(bin)).unwrap();
    }
    let snapshot = snapshot();
    let conclusions = Progress {
        snapshot: Some(&snapshot),
        ..complete(3)
    };
    screen.progress(&conclusions).unwrap();
    let at = |milliseconds: u64| RunStanding {
        position: Some(Time(START + milliseconds * 1_000_000)),
        ..replayed()
    };
    // Before the end of the first interval a step goes there.
    assert!(shown(&screen, &at(10)).ends_with("1x"));
    let second = |end: u64| Some(Command::Until(Time(START + end * Span::SECOND.0)));
    assert_eq!(
        (screen.key(Key::Right), screen.key(Key::Char(']'))),
        (second(1), second(10))
    );
    assert!(shown(&screen, &at(1_900)).ends_with("+1 s of 8 s  1x"));
    let text = drawn(&screen, &at(1_900), 80, 24);
    assert!(text.contains("no findings yet") && !text.contains("last ecn"));
    // An episode that is over is shown: the episode ended after 2.9 s.
    assert!(drawn(&screen, &at(2_900), 80, 24).contains("last ecn at +0 s for 2.90 s"));
    // All that was known when three seconds were complete, and by at most a second more.
    assert!(!drawn(&screen, &at(3_999), 80, 24).contains("loss.network"));
    assert!(drawn(&screen, &at(4_000), 80, 24).contains("loss.network"));
    // The whole result, when it has come to the end.
    let run = RunSummary {
        span: replayed().span,
        ..RunSummary::default()
    };
    screen.finish(&run).unwrap();
    assert!(!drawn(&screen, &at(7_999), 80, 24).contains("ended"));
    let end = drawn(&screen, &at(8_000), 80, 24);
    assert!(
        end.contains("+8 s of 8 s  ended") && end.contains("no finding"),
        "{end}"
    );
    screen.key(Key::Char(' '));
    assert_eq!(screen.key(Key::Right), None, "nothing follows");
}
