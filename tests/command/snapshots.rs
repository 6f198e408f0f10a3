//! Output for people, on terminals of several kinds, and the JSON document, as snapshots.

use insta::assert_snapshot;

use crate::captures::{Capture, root, samples};
use crate::command::{command, ran};

/// A terminal.
#[derive(Clone, Copy, Debug)]
struct Screen {
    width: &'static str,
    color: bool,
    unicode: bool,
}

const PLAIN: Screen = Screen {
    width: "80",
    color: false,
    unicode: true,
};
const WIDE: Screen = Screen {
    width: "160",
    ..PLAIN
};
const ASCII: Screen = Screen {
    unicode: false,
    ..PLAIN
};
const COLOR: Screen = Screen { color: true, ..PLAIN };
const WIDE_COLOR: Screen = Screen { color: true, ..WIDE };

/// Output of the command on this screen. No line is longer than the screen is wide.
fn shown(screen: Screen, arguments: &[&str]) -> String {
    let mut command = command(&root());
    command.args(arguments).env("COLUMNS", screen.width);
    if screen.color {
        command.env("CLICOLOR_FORCE", "1");
    }
    if !screen.unicode {
        command.env("LC_ALL", "C");
    }
    let text = ran(&mut command).good().stdout;
    let plain = anstream::adapter::strip_str(&text).to_string();
    let width: usize = screen.width.parse().unwrap();
    for line in plain.lines() {
        let long = line.chars().count();
        assert!(long <= width, "{screen:?}: a line of {long} characters: {line}");
        assert_eq!(line.trim_end(), line, "{screen:?}: blanks at the end of a line");
    }
    assert!(screen.unicode || plain.is_ascii(), "{screen:?}: {text}");
    assert_eq!(plain != text, screen.color, "{screen:?}: {text}");
    assert!(text.ends_with('\n'), "{screen:?}");
    text
}

/// Escape sequences as people can read them.
fn readable(text: &str) -> String {
    text.replace('\u{1b}', "<ESC>")
}

#[test]
fn terminal_80() {
    for name in [
        "clean_write_bw",
        "read_bw",
        "rnr",
        "rping",
        "send_bw_ce_synthetic_cnp",
        "write_bw_loss",
        "blackout_600ms",
    ] {
        assert_snapshot!(format!("80_{name}"), shown(PLAIN, &[&Capture::named(name).path]));
    }
}

#[test]
fn terminal_160() {
    for name in ["send_bw_ce_synthetic_cnp", "write_bw_loss", "rping"] {
        assert_snapshot!(format!("160_{name}"), shown(WIDE, &[&Capture::named(name).path]));
    }
}

#[test]
fn terminal_ascii() {
    for name in ["send_bw_ce_synthetic_cnp", "write_bw_loss"] {
        assert_snapshot!(
            format!("ascii_{name}"),
            shown(ASCII, &[&Capture::named(name).path])
        );
    }
}

#[test]
fn terminal_colors() {
    let ce = Capture::named("send_bw_ce_synthetic_cnp").path;
    assert_snapshot!("color_80_ce", readable(&shown(COLOR, &[&ce])));
    assert_snapshot!("color_160_ce", readable(&shown(WIDE_COLOR, &[&ce])));
    let loss = Capture::named("write_bw_loss").path;
    assert_snapshot!("color_80_loss", readable(&shown(COLOR, &[&loss])));
}

#[test]
fn terminal_several_captures() {
    let all: Vec<String> = samples().into_iter().map(|capture| capture.path).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    assert_snapshot!("80_all_samples", shown(PLAIN, &all));
    assert_snapshot!("160_all_samples", shown(WIDE, &all));
    let twins = ["send_bw_ce_gradual", "send_bw_ce_gradual_senderside"].map(|name| Capture::named(name).path);
    assert_snapshot!("80_twins", shown(PLAIN, &[&twins[0], &twins[1]]));
}

#[test]
fn terminal_what_was_left_out() {
    let rping = Capture::named("rping").path;
    assert_snapshot!(
        "80_filtered",
        shown(PLAIN, &[&rping, "--flow", "service rc", "--top", "1"])
    );
    assert_snapshot!(
        "80_only",
        shown(PLAIN, &[&rping, "--only-flow", "service rc", "--top", "1"])
    );
    assert_snapshot!(
        "80_evicted",
        shown(
            PLAIN,
            &[&rping, "--max-flows", "1", "--threads", "1", "--top", "3"]
        )
    );
    assert_snapshot!(
        "80_nothing_left",
        shown(PLAIN, &[&rping, "--only-flow", "10.0.0.1"])
    );
}

#[test]
fn every_capture_fits_every_screen() {
    for capture in crate::captures::all() {
        for width in ["60", "61", "72", "80", "100", "132", "160", "300"] {
            for (color, unicode) in [(false, true), (true, true), (false, false)] {
                let screen = Screen {
                    width,
                    color,
                    unicode,
                };
                let text = shown(screen, &[&capture.path]);
                let plain = anstream::adapter::strip_str(&text).to_string();
                // A word about colours is true only where there are any.
                assert_eq!(plain.contains("yellow: CE"), color, "{}: {plain}", capture.name);
            }
        }
    }
}

#[test]
fn where_the_width_comes_from() {
    let path = Capture::named("rping").path;
    let with = |columns: Option<&str>| {
        let mut command = command(&root());
        command.arg(&path);
        if let Some(columns) = columns {
            command.env("COLUMNS", columns);
        }
        ran(&mut command).good().stdout
    };
    // Without a terminal and without COLUMNS, or with one that is no number of columns: 80.
    let eighty = with(Some("80"));
    for columns in [None, Some(""), Some("0"), Some("wide"), Some("-5")] {
        assert_eq!(with(columns), eighty, "{columns:?}");
    }
    assert_ne!(with(Some("160")), eighty);
    // Nothing is laid out for less than 60.
    assert_eq!(with(Some("10")), with(Some("60")));
}

#[test]
fn no_color_is_stronger() {
    let mut command = command(&root());
    command.arg(Capture::named("rping").path).env("NO_COLOR", "1");
    let text = ran(&mut command).good().stdout;
    assert!(!text.contains('\u{1b}'), "{text}");
}

#[test]
fn json_documents() {
    for name in ["rping", "send_bw_ce_synthetic_cnp", "rnr"] {
        let mut command = command(&root());
        command.args([&Capture::named(name).path, "--format", "json"]);
        let text = ran(&mut command).good().stdout;
        let redacted = |line: &str| {
            let (key, _) = line.split_once(": ").unwrap_or((line, ""));
            let differs = ["\"host\"", "\"version\"", "\"started\"", "\"elapsed_ns\""].contains(&key.trim());
            if differs {
                format!("{key}: [redacted],")
            } else {
                line.to_owned()
            }
        };
        let text: Vec<String> = text.lines().map(redacted).collect();
        assert_snapshot!(format!("json_{name}"), text.join("\n"));
    }
}
