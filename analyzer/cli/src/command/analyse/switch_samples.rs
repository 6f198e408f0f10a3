//! Captures without RoCE that have sFlow's datagrams: a note names the command that reads those.

use std::path::{Path, PathBuf};

use roce_capture::{Options, Reader};
use roce_model::text::shell_word;
use roce_model::{RunSummary, Sink, SinkError};
use roce_sflow::{PORT, Payload};

use crate::output::messages;

/// Frames of a capture that are looked at.
const MAX_FRAMES: usize = 1_000;
/// Captures that are looked at.
const MAX_CAPTURES: usize = 16;

/// Says so at the end of a run without RoCE.
pub(super) struct SwitchSamples {
    captures: Vec<PathBuf>,
}

impl SwitchSamples {
    /// Looks at these captures, if there is a reason.
    pub(super) fn new(captures: &[PathBuf]) -> Self {
        let captures = captures.iter().take(MAX_CAPTURES).cloned().collect();
        Self { captures }
    }
}

impl Sink for SwitchSamples {
    fn finish(&mut self, run: &RunSummary) -> Result<(), SinkError> {
        let totals = &run.totals;
        if totals.roce_packets > 0 || totals.uet_packets > 0 || totals.filtered > 0 || totals.frames == 0 {
            return Ok(());
        }
        if let Some(path) = self.captures.iter().find(|path| has_samples(path)) {
            let name = path.display().to_string();
            messages::note(
                &name,
                &format!(
                    "no RoCE packet, but sFlow's samples of packets\nhint: roce-analyze fabric sflow {}",
                    shell_word(&name)
                ),
            );
        }
        Ok(())
    }
}

/// True if most of the first frames of a capture are datagrams of sFlow. A capture that can be read only once has none.
fn has_samples(path: &Path) -> bool {
    if path == Path::new("-") || !roce_capture::is_whole(path) {
        return false;
    }
    let Ok(mut reader) = Reader::open(path, &Options::default()) else {
        return false;
    };
    let (mut looked_at, mut found) = (0, 0);
    while looked_at < MAX_FRAMES
        && let Ok(Some(batch)) = reader.next_batch()
    {
        for frame in batch.frames().iter().take(MAX_FRAMES - looked_at) {
            looked_at += 1;
            let interface = reader.interfaces().get(frame.interface as usize);
            let payload =
                interface.and_then(|interface| Payload::find(interface.link, batch.bytes(frame), PORT));
            found += usize::from(payload.is_some_and(|payload| payload.bytes.starts_with(&[0, 0, 0, 5])));
        }
    }
    found > 0 && found * 2 >= looked_at
}
