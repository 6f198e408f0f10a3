//! Input of a drawing: whose run it is, how the capture stands, and the rows of the selected interval.

use roce_model::{Period, Span, Time};

use super::super::ink;
use super::super::live::CaptureCounts;
use super::super::style::Style;
use super::state::State;

/// Whose run is shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct About {
    /// The input: devices, or the name of a capture.
    pub what: String,
    /// It is a replay, which can be paced.
    pub paced: bool,
    /// Width of an interval; whole bins are taken.
    pub interval: Span,
    /// By so much the rows of a replay come before they are shown, at most.
    pub lead: Span,
    /// The process behind a flow can be known: the host's events are followed.
    pub has_host: bool,
}

/// State at the time of drawing besides the rows.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RunStanding {
    /// Counts of a live capture.
    pub counted: Option<CaptureCounts>,
    /// The first and last time of a replay, where they are known.
    pub span: Option<Period>,
    /// Position of a replay: nothing later is shown, though it may be there.
    pub position: Option<Time>,
    /// Speed of a replay.
    pub speed: Option<String>,
    /// The run is about to end.
    pub stopping: bool,
}

/// Input of a drawing.
pub(super) struct ShownScreen<'a> {
    pub(super) about: &'a About,
    pub(super) style: Style,
    pub(super) state: &'a State,
    /// The interval that is looked at; none before one is complete.
    pub(super) interval: Option<u64>,
    pub(super) standing: &'a RunStanding,
}

impl ShownScreen<'_> {
    /// Width of an interval.
    pub(super) fn width(&self) -> Span {
        Span(self.state.width)
    }

    /// From when to when the captures that are replayed reach, where that is known.
    pub(super) fn replayed(&self) -> Option<Period> {
        self.standing.span.filter(|_| self.about.paced)
    }

    /// The address of a flow, or its id, as short as there is room.
    pub(super) fn name(&self, flow: roce_model::FlowId, room: usize) -> String {
        let unicode = self.style.unicode;
        let short = |text: String, room| ink::shorten(&ink::clean(&text), room, unicode);
        let Some(key) = self.state.key(flow) else {
            return short(flow.to_string(), room);
        };
        let qpn = format!(" {:#x}", key.destination_qpn.value());
        // Both addresses get half of the room; the half that one does not need goes to the other.
        let (source, destination) = (key.source.to_string(), key.destination.to_string());
        let left = room.saturating_sub(qpn.len() + 3);
        let of_source = left.saturating_sub(destination.len().min(left.div_ceil(2)));
        let source = short(source, of_source.max(4));
        let destination = short(destination, left.saturating_sub(source.chars().count()).max(4));
        format!("{source} > {destination}{qpn}")
    }
}
