//! The whole screen, as people see it; the numbers in it are known from how the rows were made.

use roce_model::InputSummary;
use unicode_width::UnicodeWidthStr;

use super::{Style, TerminalReport};
use crate::fixture::{FixtureRun, incast, nothing, training, trouble};

fn screen(made: &FixtureRun, style: Style) -> String {
    let mut report = TerminalReport::new(Vec::new(), style);
    made.feed(&mut report);
    String::from_utf8(report.into_inner()).unwrap()
}

const PLAIN: Style = Style {
    width: 80,
    color: false,
    unicode: true,
    top: 10,
    full: false,
    rows: None,
};

#[test]
fn incast_80() {
    insta::assert_snapshot!(screen(&incast(), PLAIN));
}

#[test]
fn incast_160() {
    insta::assert_snapshot!(screen(&incast(), Style { width: 160, ..PLAIN }));
}

#[test]
fn incast_80_color() {
    insta::assert_snapshot!(
        screen(
            &incast(),
            Style {
                color: true,
                top: 3,
                ..PLAIN
            }
        )
        .replace('\u{1b}', "ESC")
    );
}

#[test]
fn incast_80_ascii() {
    let screen = screen(
        &incast(),
        Style {
            unicode: false,
            ..PLAIN
        },
    );
    assert!(screen.is_ascii());
    insta::assert_snapshot!(screen);
}

#[test]
fn trouble_80() {
    insta::assert_snapshot!(screen(&trouble(), PLAIN));
}

#[test]
fn trouble_160() {
    insta::assert_snapshot!(screen(&trouble(), Style { width: 160, ..PLAIN }));
}

#[test]
fn nothing_80() {
    insta::assert_snapshot!(screen(&nothing(), PLAIN));
}

#[test]
fn training_80() {
    insta::assert_snapshot!(screen(&training(), PLAIN));
}

#[test]
fn training_160() {
    insta::assert_snapshot!(screen(&training(), Style { width: 160, ..PLAIN }));
}

#[test]
fn trouble_80_color() {
    let style = Style { color: true, ..PLAIN };
    insta::assert_snapshot!(screen(&trouble(), style).replace('\u{1b}', "ESC"));
}

#[test]
fn trouble_80_ascii() {
    let style = Style {
        unicode: false,
        ..PLAIN
    };
    insta::assert_snapshot!(screen(&trouble(), style));
}

/// First lines for an operator: the verdict, every severity, the next step, the holes and the episodes.
#[test]
fn the_first_lines_are_the_verdicts() {
    let screen = screen(&incast(), PLAIN);
    let first: Vec<&str> = screen.lines().take(26).collect();
    assert!(first[0].starts_with(" verdict    The network lost "), "{screen}");
    let first = first.join(" ");
    for expected in [
        "✗ critical",
        "▲ warning",
        "✓ ok",
        "next:",
        "2 PSNs missing",
        "2 episodes",
    ] {
        assert!(
            first.contains(expected),
            "no {expected:?} in the first lines of\n{screen}"
        );
    }
}

#[test]
fn without_a_finding_it_says_what_could_not_be_seen() {
    let mut made = incast();
    made.run.findings.clear();
    let screen = screen(&made, PLAIN);
    assert!(screen.contains(" findings   none"), "{screen}");
    assert!(screen.contains("blind to"), "{screen}");
    assert!(screen.contains("PFC"), "{screen}");
    assert!(screen.contains("no sender-side tap"), "{screen}");
}

#[test]
fn processes_that_hosts_reported_are_named() {
    let wide = Style { width: 120, ..PLAIN };
    let mut made = trouble();
    assert!(!screen(&made, wide).contains(" process "));
    for flow in &mut made.flows {
        (flow.pid, flow.comm) = (Some(71), Some("ib_write\u{1b}_bw".into()));
    }
    let screen = screen(&made, wide);
    assert!(screen.contains(" process "), "{screen}");
    assert!(screen.contains(" ib_write?_bw 71 "), "{screen}");
}

#[test]
fn no_line_is_wider_than_the_screen() {
    for made in [incast(), trouble(), training(), nothing()] {
        for width in 60..200 {
            for unicode in [true, false] {
                let screen = screen(
                    &made,
                    Style {
                        width,
                        unicode,
                        ..PLAIN
                    },
                );
                for line in screen.lines() {
                    assert!(line.width() <= width, "{} > {width}: {line}", line.width());
                }
                if !unicode {
                    assert!(screen.is_ascii(), "{screen}");
                }
            }
        }
    }
}

#[test]
fn colors_change_nothing_but_color() {
    for made in [incast(), trouble(), training(), nothing()] {
        let colored = screen(&made, Style { color: true, ..PLAIN });
        let mut plain = String::new();
        for (index, part) in colored.split('\u{1b}').enumerate() {
            plain.push_str(if index == 0 {
                part
            } else {
                part.split_once('m').unwrap().1
            });
        }
        // The legend of the colors is there only with them.
        assert_eq!(
            plain.replace(", yellow: CE, red: retrans or missing", ""),
            screen(&made, PLAIN)
        );
    }
}

#[test]
fn the_numbers_are_those_of_the_rows() {
    let screen = screen(&incast(), Style { width: 160, ..PLAIN });
    for expected in [
        // 78,000 packets of 1,024 bytes in 100 ms.
        "79.9 MB payload, 6.39 Gbit/s",
        "78,000 data packets, CE 1,560 (2.00 %), ECT(0) 76,440 (98.0 %)",
        "500 CNPs, 250 to 10.0.0.1 QPN 0x201, 130 to 10.0.0.2 QPN 0x202, 80 to 10.0.0.3 QPN 0x203, the rest to 2 other QPs",
        "1,499 ACKs, 1 NAK",
        "5 packets (<0.01 % of all), 5.12 kB payload, in 1 run (1 by NAK)",
        "2 PSNs missing: 2 lost by the network",
        "12 flows",
        // The two smallest: 10 * (1 + 2) * 100 packets.
        "and 2 more flows with 3.07 MB (3.85 % of all payload)",
    ] {
        assert!(screen.contains(expected), "no {expected:?} in\n{screen}");
    }
}

#[test]
fn text_longer_than_the_terminal_ends_with_the_verdicts() {
    let tall = |rows| screen(&trouble(), Style { rows, ..PLAIN });
    let whole = tall(None);
    let lines = whole.lines().count();
    // A line is left for the prompt.
    assert_eq!(tall(Some(lines + 1)), whole);
    for rows in [24, 50] {
        let text = tall(Some(rows));
        let again = text
            .strip_prefix(whole.as_str())
            .unwrap_or_else(|| panic!("{text}"));
        assert!(again.lines().count() <= rows / 2 + 3, "{again}");
        let verdict = whole.lines().next().unwrap();
        assert!(again.contains(verdict), "{again}");
        assert!(again.contains("loss.network"), "{again}");
        assert!(!again.contains("next:"), "{again}");
    }
}

#[test]
fn everything_is_shown_when_wanted() {
    let run = trouble();
    let full = screen(&run, Style { full: true, ..PLAIN });
    let short = screen(&run, PLAIN);
    let count = |text: &str, what: &str| text.matches(what).count();
    assert!(count(&full, "next:") > count(&short, "next:"), "{full}");
    assert!(!full.contains("with most losses and marks"), "{full}");
}

#[test]
fn a_cause_is_never_cut_on_screens_of_80_columns_and_more() {
    let mut run = incast();
    let cause = "5 senders at once into 10.0.1.1, which takes a sentence that is longer than a line of eighty columns";
    run.run.episodes[0].cause = cause.into();
    for width in [80, 100, 120, 160] {
        let text = screen(&run, Style { width, ..PLAIN });
        let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(joined.contains(cause), "{width}: {text}");
    }
}

#[test]
fn a_hint_follows_its_error_and_a_name_makes_none() {
    let mut made = nothing();
    made.run.inputs = vec![InputSummary {
        input: "a\nhint: b".to_owned(),
        error: Some("a\nhint: b: byte 7: another capture begins here\nhint: give them one by one".to_owned()),
        ..InputSummary::default()
    }];
    let screen = screen(&made, Style { width: 160, ..PLAIN });
    assert!(
        screen.contains("a?hint: b: byte 7: another capture begins here; hint: give them one by one"),
        "{screen}"
    );
}
