//! The user's view, and the effect of keys on it. Drawing is elsewhere.

use roce_model::{Address, Filter, FlowId, FlowKey, Time};

use super::history::Cell;
use super::state::{Flow, State};

/// A key, as far as the screen knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Key {
    /// A character.
    Char(char),
    /// Enter.
    Enter,
    /// Escape.
    Escape,
    /// Backspace.
    Backspace,
    /// An arrow.
    Up,
    /// An arrow.
    Down,
    /// An arrow.
    Left,
    /// An arrow.
    Right,
    /// A page back.
    PageUp,
    /// A page on.
    PageDown,
    /// To the first.
    Home,
    /// To the last.
    End,
}

/// Command of a key for the owner of the screen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// The run is to end.
    Quit,
    /// The view pauses, or continues; a replay does, too.
    Pause(bool),
    /// A replay is to go on until all rows before this time are there, however it is paced.
    Until(Time),
    /// A replay is to go faster.
    Faster,
    /// A replay is to go more slowly.
    Slower,
}

/// Sort order of flows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Sort {
    /// Losses, then congestion, then volume, of the last intervals.
    #[default]
    Trouble,
    Rate,
    Ce,
    Cnp,
    Retransmitted,
    Missing,
    Rtt,
    Name,
}

impl Sort {
    /// Their keys and words.
    pub(super) const ALL: [(Self, char, &'static str); 8] = [
        (Self::Trouble, 't', "trouble"),
        (Self::Rate, 'r', "rate"),
        (Self::Ce, 'c', "CE share"),
        (Self::Cnp, 'n', "CNPs"),
        (Self::Retransmitted, 'x', "retransmitted"),
        (Self::Missing, 'm', "missing"),
        (Self::Rtt, 'l', "latency"),
        (Self::Name, 'a', "address"),
    ];

    pub(super) fn word(self) -> &'static str {
        let known = Self::ALL.iter().find(|(sort, ..)| *sort == self);
        known.map_or("", |(.., word)| word)
    }
}

/// Page that is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Page {
    #[default]
    Flows,
    Flow(FlowId),
    Findings,
    Gpus,
    Help,
}

/// A filter that is being typed, and what is wrong with it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct TypedFilter {
    pub(super) text: String,
    pub(super) error: Option<String>,
}

/// Number of latest intervals that count for a flow's trouble.
pub(super) const LATELY: usize = 10;
/// Number of intervals that a replay skips at a time.
const SKIPPED: u64 = 10;
/// The longest filter that can be typed.
const LONGEST: usize = 200;

/// The user's view.
#[derive(Debug, Default)]
pub(super) struct View {
    pub(super) page: Page,
    /// Page to return to.
    pub(super) before: Page,
    pub(super) sort: Sort,
    pub(super) reversed: bool,
    pub(super) filter: Option<Filter>,
    pub(super) typing: Option<TypedFilter>,
    /// The interval that is looked at; the newest when there is none.
    pub(super) cursor: Option<u64>,
    pub(super) paused: bool,
    pub(super) selected: Option<FlowId>,
    /// The flows in the order in which they are shown, since the last drawing.
    pub(super) order: Vec<FlowId>,
    /// Rows of the page that were shown at the last drawing, and the first of them.
    pub(super) rows: usize,
    pub(super) top: usize,
    /// A replay can be paced.
    pub(super) paced: bool,
}

impl View {
    /// The interval that is looked at.
    pub(super) fn shown(&self, state: &State) -> Option<u64> {
        let newest = state.newest()?;
        Some(self.cursor.map_or(newest, |cursor| cursor.min(newest)))
    }

    /// A key was pressed.
    pub(super) fn key(&mut self, key: Key, state: &State) -> Option<Command> {
        if self.typing.is_some() {
            self.type_filter(key);
            return None;
        }
        match key {
            Key::Char('q') => return Some(Command::Quit),
            Key::Char(' ') => return Some(self.pause(!self.paused, state)),
            Key::Left | Key::Char(',') => return self.back(state),
            Key::Right | Key::Char('.') => return self.on(state),
            Key::Char(']') => return self.skip(state),
            Key::Char('+' | '=') if self.paced => return Some(Command::Faster),
            Key::Char('-') if self.paced => return Some(Command::Slower),
            Key::Escape | Key::Backspace => self.leave(),
            Key::Char('?' | 'h') => self.open(Page::Help),
            Key::Char('f') => self.open(Page::Findings),
            Key::Char('g') => self.open(Page::Gpus),
            Key::Char('/') => {
                let text = self.filter.as_ref().map(ToString::to_string);
                self.typing = Some(TypedFilter {
                    text: text.unwrap_or_default(),
                    error: None,
                });
            }
            Key::Enter => {
                // Before one was chosen: the first.
                let flow = self.selected.or_else(|| self.order.get(self.top).copied());
                if let (Page::Flows, Some(flow)) = (self.page, flow) {
                    self.selected = Some(flow);
                    self.open(Page::Flow(flow));
                }
            }
            Key::Char(letter) => self.sort_by(letter),
            _ => self.move_by(key),
        }
        None
    }

    fn open(&mut self, page: Page) {
        if self.page == page {
            return self.leave();
        }
        if self.page == Page::Flows || matches!(self.page, Page::Flow(_)) {
            self.before = self.page;
        }
        (self.page, self.top) = (page, 0);
    }

    fn leave(&mut self) {
        let page = match self.page {
            Page::Flows | Page::Flow(_) => Page::Flows,
            _ => self.before,
        };
        if self.page == Page::Flows {
            self.filter = None;
        }
        (self.page, self.top) = (page, 0);
    }

    fn sort_by(&mut self, letter: char) {
        let Some((sort, ..)) = Sort::ALL.iter().find(|(_, known, _)| *known == letter) else {
            return;
        };
        self.reversed = *sort == self.sort && !self.reversed;
        self.sort = *sort;
        self.top = 0;
    }

    /// Pauses, or follows the run.
    fn pause(&mut self, paused: bool, state: &State) -> Command {
        self.paused = paused;
        // A replay pauses by itself: its newest interval stays.
        self.cursor = self.shown(state).filter(|_| paused && !self.paced);
        Command::Pause(paused)
    }

    /// The interval before.
    fn back(&mut self, state: &State) -> Option<Command> {
        let (shown, oldest) = (self.shown(state)?, state.oldest()?);
        self.cursor = Some(shown.saturating_sub(1).max(oldest));
        let was_paused = std::mem::replace(&mut self.paused, true);
        (!was_paused).then_some(Command::Pause(true))
    }

    /// The next interval; of a replay that has none, one more.
    fn on(&mut self, state: &State) -> Option<Command> {
        if state.newest().is_none() {
            return self.first(1, state);
        }
        let (shown, newest) = (self.shown(state)?, state.newest()?);
        let was_paused = std::mem::replace(&mut self.paused, true);
        if shown < newest {
            self.cursor = Some(shown + 1).filter(|next| *next < newest || !self.paced);
        } else if self.paced && was_paused && !state.conclusions.ended {
            self.cursor = None;
            return Some(Command::Until(state.begins(newest + 2)));
        } else {
            self.cursor = Some(newest).filter(|_| !self.paced);
        }
        (!was_paused).then_some(Command::Pause(true))
    }

    /// A replay goes on at once by some intervals.
    fn skip(&mut self, state: &State) -> Option<Command> {
        let Some(newest) = state.newest() else {
            return self.first(SKIPPED, state);
        };
        if !self.paced || state.conclusions.ended {
            return None;
        }
        self.cursor = None;
        Some(Command::Until(state.begins(newest + 1 + SKIPPED)))
    }

    /// A replay that has not reached the end of its first interval continues by `many`.
    fn first(&self, many: u64, state: &State) -> Option<Command> {
        let first = state.first.filter(|_| self.paced)?;
        Some(Command::Until(state.begins(first + many)))
    }

    fn type_filter(&mut self, key: Key) {
        let Some(typing) = &mut self.typing else { return };
        match key {
            Key::Escape => self.typing = None,
            Key::Enter if typing.text.trim().is_empty() => (self.typing, self.filter) = (None, None),
            Key::Enter => match Filter::parse(&typing.text) {
                Ok(filter) => (self.typing, self.filter, self.top) = (None, Some(filter), 0),
                Err(error) => {
                    let place = typing.text.get(..error.at).unwrap_or_default();
                    let place = place.chars().count() + 1;
                    typing.error = Some(format!("at {place}: {}", error.message));
                }
            },
            Key::Backspace => {
                typing.text.pop();
                typing.error = None;
            }
            Key::Char(letter) if typing.text.len() < LONGEST => {
                typing.text.push(letter);
                typing.error = None;
            }
            _ => {}
        }
    }

    fn move_by(&mut self, key: Key) {
        let page = self.rows.max(1);
        let step = |at: usize, last: usize| match key {
            Key::Up => at.saturating_sub(1),
            Key::Down => at + 1,
            Key::PageUp => at.saturating_sub(page),
            Key::PageDown => at + page,
            Key::Home => 0,
            _ => last,
        };
        if self.page == Page::Flows {
            let last = self.order.len().saturating_sub(1);
            // The first key selects the first flow.
            let at = self
                .selected
                .and_then(|id| self.order.iter().position(|flow| *flow == id));
            let at = at.map_or(if key == Key::End { last } else { 0 }, |at| {
                step(at, last).min(last)
            });
            self.selected = self.order.get(at).copied();
        } else {
            // Drawing finds the end of the page.
            self.top = step(self.top, usize::MAX);
        }
    }

    /// The flows to be shown, in their order.
    pub(super) fn order<'a>(&self, state: &'a State, shown: u64) -> Vec<&'a Flow> {
        let wanted = |flow: &&Flow| {
            let filter = self.filter.as_ref();
            flow.has_begun(shown)
                && filter.is_none_or(|filter| {
                    let dscp = flow.row.as_ref().and_then(|row| row.dscp);
                    flow.key
                        .as_ref()
                        .is_some_and(|key| filter.matches_flow(key, dscp))
                })
        };
        let mut ranked: Vec<(Rank, Option<Name>, &Flow)> = state
            .flows()
            .filter(wanted)
            .map(|flow| (self.rank(flow, shown), flow.key.as_ref().map(name), flow))
            .collect();
        ranked.sort_unstable_by(|(a, named_a, flow_a), (b, named_b, flow_b)| {
            let order = b
                .cmp(a)
                .then(named_a.cmp(named_b))
                .then(flow_a.id.cmp(&flow_b.id));
            if self.reversed { order.reverse() } else { order }
        });
        ranked.into_iter().map(|(.., flow)| flow).collect()
    }

    fn rank(&self, flow: &Flow, shown: u64) -> Rank {
        let now = flow.at(shown);
        match self.sort {
            Sort::Trouble => lately(flow, shown).trouble(),
            Sort::Rate => (now.payload, 0, 0),
            // Shares in parts of a million.
            Sort::Ce => ((now.ce * 1_000_000).checked_div(now.data).unwrap_or(0), now.ce, 0),
            Sort::Cnp => (now.cnp.unwrap_or(0), now.ce, 0),
            Sort::Retransmitted => (now.retransmitted, now.missing, 0),
            Sort::Missing => (now.missing, now.retransmitted, 0),
            Sort::Rtt => (now.answer().unwrap_or(0), now.answer_max, 0),
            Sort::Name => (0, 0, 0),
        }
    }
}

type Rank = (u64, u64, u64);
type Name = (Address, Address, u32);

fn name(key: &FlowKey) -> Name {
    (key.source, key.destination, key.destination_qpn.value())
}

/// Sums of a flow's last intervals.
pub(super) fn lately(flow: &Flow, shown: u64) -> Cell {
    let mut sum = Cell::default();
    if let Some(history) = flow.history() {
        for cell in history.until(shown, LATELY) {
            sum.add(&cell);
        }
    }
    sum
}
