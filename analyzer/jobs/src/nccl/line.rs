//! One line of NCCL's log: who wrote it, and its text.
//!
//! NCCL writes `host:pid:tid [device] NCCL INFO text`, and warnings with the place in its source before `NCCL WARN` (`src/debug.cc`). Since
//! 2.26 a time may come first (`NCCL_DEBUG_TIMESTAMP_FORMAT`). Launchers and clusters put names of their own before that. RCCL writes the
//! same.

/// Bytes of a line that are read: NCCL's own buffer has 1,024; the trees of 64 channels take 4,000 in later versions.
pub(super) const MAX_LINE_BYTES: usize = 64 << 10;

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Info,
    Warn,
}

/// A line of NCCL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NcclLine<'a> {
    /// The host, without what launchers put before it, and the process on it. `None`: the line does not say who wrote it.
    pub(super) process: Option<(&'a str, u32)>,
    /// The current CUDA device of the thread that wrote it.
    pub(super) device: Option<u32>,
    pub(super) level: Level,
    pub(super) text: &'a str,
}

/// Reads a line; `None`: it is not NCCL's.
pub(super) fn parse(line: &str) -> Option<NcclLine<'_>> {
    let at = line.find("NCCL ")?;
    let (head, rest) = line.split_at(at);
    let rest = rest.get("NCCL ".len()..)?;
    let (level, text) = if let Some(text) = rest.strip_prefix("INFO ") {
        (Level::Info, text)
    } else {
        (Level::Warn, rest.strip_prefix("WARN ")?)
    };
    let mut process = None;
    let mut device = None;
    for word in head.split_whitespace() {
        if let Some(found) = who(word) {
            (process, device) = (Some(found), None);
        } else if process.is_some() && device.is_none() {
            device = word
                .strip_prefix('[')
                .and_then(|word| word.strip_suffix(']'))
                .and_then(|number| number.parse().ok());
        }
    }
    Some(NcclLine {
        process,
        device,
        level,
        text: text.trim(),
    })
}

/// `host:pid:tid`.
fn who(word: &str) -> Option<(&str, u32)> {
    let mut parts = word.rsplitn(3, ':');
    let (thread, process, host) = (parts.next()?, parts.next()?, parts.next()?);
    thread.parse::<u32>().ok()?;
    let process = process.parse().ok()?;
    // Launchers write `[1,0]<stdout>:host`.
    let host = host.rsplit([':', '>', '|', ']', '=']).next()?;
    (!host.is_empty()).then_some((host, process))
}

/// The value behind `name`, up to white space, a comma or a closing parenthesis.
pub(super) fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(name)?;
    let value = rest.split([' ', '\t', ',', ')']).next()?;
    (!value.is_empty()).then_some(value)
}

/// The number behind `name`.
pub(super) fn number<T: core::str::FromStr>(text: &str, name: &str) -> Option<T> {
    let value = field(text, name)?;
    let digits = value.find(|glyph: char| !glyph.is_ascii_digit());
    value.get(..digits.unwrap_or(value.len()))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_of_lines() {
        let plain = parse("gpu1:41211:41300 [3] NCCL INFO Using network IB").unwrap();
        assert_eq!(
            (plain.process, plain.device, plain.level, plain.text),
            (Some(("gpu1", 41211)), Some(3), Level::Info, "Using network IB")
        );
        // With a time and a place in the source (NCCL's user guide, "Logging"), behind mpirun's and Kubernetes' names.
        let warning = "[1,3]<stderr>:[2026-05-05 06:16:47] node-01:189884:189885 [3] transport/net_ib.cc:154 NCCL WARN NET/IB : a";
        let warning = parse(warning).unwrap();
        assert_eq!(
            (warning.process, warning.device, warning.level, warning.text),
            (Some(("node-01", 189_884)), Some(3), Level::Warn, "NET/IB : a")
        );
        let launched = parse("worker-0 | [1,0]<stdout>:n1:12:13 [0] NCCL INFO b").unwrap();
        assert_eq!((launched.process, launched.device), (Some(("n1", 12)), Some(0)));
        let bare = parse("NCCL INFO NCCL version 2.21.5+cuda12.4").unwrap();
        assert_eq!((bare.process, bare.text), (None, "NCCL version 2.21.5+cuda12.4"));
        for other in [
            "",
            "NCCL",
            "NCCL version 2.8.4+cuda11.0",
            "h:1:2 [0] NCCL TRACE x",
            "NCCL INFO",
        ] {
            assert_eq!(parse(other), None, "{other}");
        }
    }

    #[test]
    fn values_end_where_they_end() {
        let text = "wr_id=0x1f, qp_num=279) len 12, error 12,";
        assert_eq!(number(text, "qp_num="), Some(279));
        assert_eq!(number(text, "error "), Some(12));
        assert_eq!(number::<u32>(text, "comm="), None);
        assert_eq!(number::<u8>("qpn 279", "qpn "), None, "it does not fit");
    }
}
