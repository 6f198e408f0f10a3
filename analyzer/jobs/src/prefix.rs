//! Prefixes that launchers and logs put before the lines of a program: taken away once, for every reader.
//!
//! `srun --label` (`3: `), `mpirun --tag-output` (`[1,3]<stdout>:`) and `--timestamp-output`, torchrun (`[default3]:`, `[rank3]: `), pdsh and
//! clush (`host: `), `kubectl logs --prefix --timestamps` (`[pod/name/container] `), Docker Compose (`worker-1  | `), Ray
//! (`(Worker pid=12, ip=10.0.0.1) `), Hydra (`[3] `), container runtimes (`TIME stdout F `), times of all of these, and the colours of terminals.

use std::borrow::Cow;
use std::collections::BTreeSet;

/// Prefixes one behind the other.
const MAX_PREFIXES: usize = 6;
/// Hosts and pods of a text.
const MAX_NAMES: usize = 4_096;
/// Longest name of a host or pod.
const MAX_NAME: usize = 253;

/// A line without the codes that colour it.
pub(crate) fn without_colours(line: &str) -> Cow<'_, str> {
    if !line.contains('\u{1b}') {
        return Cow::Borrowed(line);
    }
    let mut parts = line.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part
            .find(|glyph: char| glyph.is_ascii_alphabetic())
            .map_or(part.len(), |at| at + 1);
        plain.push_str(part.get(end..).unwrap_or_default());
    }
    Cow::Owned(plain)
}

/// A text whose lines have no prefixes of launchers. Names of hosts are taken away where all lines have one.
pub fn without_prefixes(text: &str) -> Cow<'_, str> {
    let has_any = text
        .lines()
        .any(|line| line.contains('\u{1b}') || after_prefixes(line).len() != line.len());
    let plain = if has_any {
        let lines: Vec<Cow<'_, str>> = text.lines().map(without_colours).collect();
        let bare: Vec<&str> = lines.iter().map(|line| after_prefixes(line)).collect();
        Cow::Owned(bare.join("\n"))
    } else {
        Cow::Borrowed(text)
    };
    if !are_named(&plain) {
        return plain;
    }
    let bare: Vec<&str> = plain
        .lines()
        .map(|line| named(line).map_or(line, |(_, rest)| rest))
        .collect();
    Cow::Owned(bare.join("\n"))
}

/// A line behind the prefixes that tell of themselves what they are.
pub fn after_prefixes(line: &str) -> &str {
    let mut rest = line;
    for _ in 0..MAX_PREFIXES {
        let found = [label, tag, bracketed, container, pod, ray, time, stream]
            .into_iter()
            .find_map(|prefix| prefix(rest));
        match found {
            Some(behind) => rest = behind,
            None => break,
        }
    }
    rest
}

/// True if all lines with text have the name of a host before it, and of fewer hosts than lines.
fn are_named(text: &str) -> bool {
    let mut names = BTreeSet::new();
    let mut lines = 0;
    // Docker Compose ends with `launcher exited with code 0`.
    let is_text = |line: &&str| !line.trim().is_empty() && !line.contains(" exited with code ");
    for line in text.lines().filter(is_text) {
        let Some((name, _)) = named(line) else {
            return false;
        };
        names.insert(name);
        lines += 1;
        if names.len() > MAX_NAMES {
            return false;
        }
    }
    // A table of four lines has more than one with the same name.
    lines > 2 && names.len() * 2 <= lines
}

/// `host: text`, and `host:` before an empty line; `service  | text` of Docker Compose.
fn named(line: &str) -> Option<(&str, &str)> {
    let piped = line
        .split_once(" |")
        .map(|(name, rest)| (name.trim_end(), rest))
        .filter(|(name, _)| !name.is_empty() && !name.contains([' ', ':']));
    let (name, rest) = piped.or_else(|| line.split_once(':'))?;
    let is_name = !name.is_empty()
        && name.len() <= MAX_NAME
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    let rest = rest
        .strip_prefix(' ')
        .or_else(|| rest.is_empty().then_some(rest))?;
    is_name.then_some((name, rest))
}

/// `3: `, as wide as the largest number.
fn label(line: &str) -> Option<&str> {
    let (number, rest) = line.trim_start_matches(' ').split_once(':')?;
    let is_number =
        !number.is_empty() && number.len() <= 6 && number.bytes().all(|byte| byte.is_ascii_digit());
    let rest = rest
        .strip_prefix(' ')
        .or_else(|| rest.is_empty().then_some(rest))?;
    is_number.then_some(rest)
}

/// `[1,3]<stdout>:`, `[prterun-n1-412@1,3]<stderr>: `, with a time before it.
fn tag(line: &str) -> Option<&str> {
    let at = ["<stdout>", "<stderr>", "<stddiag>"]
        .iter()
        .find_map(|name| Some((line.find(name)?, name.len())))?;
    let before = line.get(..at.0)?;
    let rest = line.get(at.0 + at.1..)?;
    // Some versions write a blank in place of the colon.
    let rest = rest
        .strip_prefix(':')
        .or_else(|| rest.starts_with(' ').then_some(rest))?;
    let is_tag = before.is_empty() || before.ends_with(']') && before.contains('[') || before.len() == 24;
    (is_tag && before.len() <= MAX_NAME).then(|| rest.strip_prefix(' ').unwrap_or(rest))
}

/// `[rank3]:`, `[default3]:`, `[host:3]:`, `[3] `, `[pod/name/container] `, and times in brackets.
fn bracketed(line: &str) -> Option<&str> {
    let (name, rest) = line.strip_prefix('[')?.split_once(']')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_rank = ["rank", "default", "trainer", ""]
        .iter()
        .any(|word| name.strip_prefix(word).is_some_and(digits));
    let is_host_and_rank = name
        .rsplit_once(':')
        .is_some_and(|(host, rank)| digits(rank) && !host.contains([' ', ':']) && rest.starts_with(':'));
    if is_rank || is_host_and_rank {
        if let Some(rest) = rest.strip_prefix(':') {
            return Some(rest.strip_prefix(' ').unwrap_or(rest));
        }
        let rest = rest.strip_prefix(' ')?;
        // `[5] 0.00-1.00 sec` is a stream of iperf.
        let is_stream = rest
            .trim_start()
            .starts_with(|glyph: char| glyph.is_ascii_digit())
            && rest.contains(" sec")
            || rest.trim_start().starts_with("local ");
        return (!is_stream).then_some(rest);
    }
    let rest = rest.strip_prefix(' ')?;
    (name.starts_with("pod/") || is_time(name)).then_some(rest)
}

/// `worker-1  | text` of Docker Compose.
fn container(line: &str) -> Option<&str> {
    let (name, rest) = line.split_once(" | ")?;
    let name = name.trim_end();
    let is_name = name.ends_with(|glyph: char| glyph.is_ascii_digit())
        && name.contains('-')
        && name.starts_with(|glyph: char| glyph.is_ascii_alphabetic())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    is_name.then_some(rest)
}

/// `pod/NAME CONTAINER text` of stern.
fn pod(line: &str) -> Option<&str> {
    let mut parts = line.strip_prefix("pod/")?.splitn(3, ' ');
    let is_name = |name: &str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte))
    };
    let (name, container) = (parts.next()?, parts.next()?);
    (is_name(name) && is_name(container)).then(|| parts.next().unwrap_or_default())
}

/// `stdout F text` of Kubernetes' container runtimes (CRI), behind the time; `P` is of a part of a line.
fn stream(line: &str) -> Option<&str> {
    ["stdout F ", "stderr F ", "stdout P ", "stderr P "]
        .into_iter()
        .find_map(|tag| line.strip_prefix(tag))
}

/// `(Worker pid=12, ip=10.0.0.1) text` of Ray.
fn ray(line: &str) -> Option<&str> {
    let (about, rest) = line.strip_prefix('(')?.split_once(')')?;
    about
        .contains("pid=")
        .then(|| rest.strip_prefix(' ').unwrap_or(rest))
}

/// A time: `2026-11-25T18:00:01.123Z `, `2026-11-25 18:00:01,123 `, `Nov 25 18:00:01 host program[12]: `, `<4>`.
fn time(line: &str) -> Option<&str> {
    if let Some((level, rest)) = line.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
        return (level.len() == 1 && level.bytes().all(|byte| byte.is_ascii_digit())).then_some(rest);
    }
    let (first, rest) = line.split_once(' ')?;
    if is_date(first) {
        if first.len() > 10 {
            return Some(rest);
        }
        let (second, rest) = rest.split_once(' ')?;
        return is_clock(second).then_some(rest);
    }
    // syslog: month, day, time, host, program.
    let is_month = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec"
        .split(' ')
        .any(|month| month == first);
    let (day, rest) = rest.trim_start().split_once(' ').filter(|_| is_month)?;
    day.parse::<u8>().ok()?;
    let (clock, rest) = rest.split_once(' ')?;
    let (_, rest) = rest.split_once(' ').filter(|_| is_clock(clock))?;
    let (program, behind) = rest.split_once(": ")?;
    Some(if program.contains(' ') { rest } else { behind })
}

/// True for a time in brackets: seconds since the start, a date and a time, or `Wed Nov 25 18:00:01 2026`.
fn is_time(text: &str) -> bool {
    let text = text.trim();
    let is_seconds = text.contains('.') && text.parse::<f64>().is_ok();
    let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
    is_seconds
        || words.first().is_some_and(|word| is_date(word))
        || words.len() == 5 && words.get(3).is_some_and(|word| is_clock(word))
}

/// `2026-11-25`, alone or with a time behind `T`.
fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let form = bytes.len() >= 10
        && bytes[..10].iter().enumerate().all(|(at, byte)| match at {
            4 | 7 => *byte == b'-' || *byte == b'/',
            _ => byte.is_ascii_digit(),
        });
    form && (bytes.len() == 10 || bytes.get(10) == Some(&b'T'))
}

/// `18:00:01`, with a fraction or without.
fn is_clock(text: &str) -> bool {
    let mut parts = text.split([':', '.', ',']);
    let two = |part: Option<&str>| {
        part.is_some_and(|part| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    two(parts.next())
        && two(parts.next())
        && parts
            .next()
            .is_some_and(|part| part.starts_with(|glyph: char| glyph.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_of_launchers_and_logs() {
        let line = "#       size         count      type";
        for prefix in [
            "0: ",
            "  3: ",
            "[1,0]<stdout>:",
            "[prterun-n1-412@1,0]<stderr>: ",
            "Wed Nov 25 18:00:01 2026[1,0]<stdout>:",
            "[default0]:",
            "[rank3]: ",
            "[gpu-node-7:3]:",
            "[0]:",
            "[12] ",
            "[pod/nccl-test-launcher-x7k/launcher] ",
            "[pod/w-0/main] 2026-11-25T18:00:01.123456789Z ",
            "2026-11-25T18:00:01.123456789Z ",
            "2026-11-25 18:00:01,123 ",
            "[2026-11-25 18:00:01] ",
            "Nov 25 18:00:01 n17 slurmstepd[412]: ",
            "worker-1  | ",
            "[1,0]<stdout> ",
            "pod/nccl-test-launcher-abc12 nccl ",
            "(Worker pid=412, ip=10.1.0.4) ",
        ] {
            assert_eq!(after_prefixes(&format!("{prefix}{line}")), line, "{prefix}");
        }
        assert_eq!(
            after_prefixes("Nov 25 18:00:01 n17 kernel: [12345.678901] nvme nvme0: x"),
            "nvme nvme0: x"
        );
        assert_eq!(after_prefixes("[Wed Nov 25 18:00:01 2026] nvme"), "nvme");
    }

    #[test]
    fn lines_of_programs_are_whole() {
        for line in [
            "[  5]   0.00-1.00   sec  1.10 GBytes  9.42 Gbits/sec    0    1.2 MBytes",
            "[5] 0.00-1.00 sec 1.10 GBytes 9.42 Gbits/sec",
            "[  3] local 10.1.0.4 port 5001 connected with 10.1.0.6 port 43100",
            " Mtu             : 4096[B]",
            "  1073741824     268435456     float     sum      -1    26217",
            "h1:100:120 [3] NCCL INFO Using network IB",
            "[node1:37049:0:37049] ib_mlx5_log.c:177  Transport",
            "[bench] op=all_reduce world=8",
            "",
        ] {
            assert_eq!(after_prefixes(line), line);
            assert_eq!(without_prefixes(line), line);
        }
    }

    #[test]
    fn names_of_hosts_before_all_lines() {
        let text = "n1: # nThread 1\nn1: #\nn2: # a\nn1:\nn2:   8 2";
        assert_eq!(without_prefixes(text), "# nThread 1\n#\n# a\n\n  8 2");
        // The lines of a program that have names of their own.
        let text = "Average: 1\nMedian: 2\nLargest: 3\n";
        assert_eq!(without_prefixes(text), text);
        assert_eq!(without_prefixes("\u{1b}[36mn1\u{1b}[0m: a\n0: b"), "n1: a\nb");
    }

    #[test]
    fn names_of_services_before_all_lines() {
        let text = "launcher  | # nThread 1\nlauncher  |\nlauncher  | #  size  count\nlauncher  |   8  2\nlauncher exited with code 0\n";
        assert_eq!(
            without_prefixes(text),
            "# nThread 1\n\n#  size  count\n  8  2\nlauncher exited with code 0"
        );
        let table =
            "iteration 1 | loss 2\niteration 2 | loss 2\niteration 3 | loss 2\niteration 4 | loss 2\n";
        assert_eq!(without_prefixes(table), table);
    }
}
