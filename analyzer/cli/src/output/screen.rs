//! The live screen on a terminal: a thread that draws it and reads keys, and the sink that feeds it.
//! `roce-report` makes its contents, and the caller handles its commands.
//!
//! The thread holds the screen only while cells are filled. A terminal that takes long to write to holds up nothing else.

mod keys;
mod tty;

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;
use crossbeam_channel::{Receiver, RecvTimeoutError, bounded};
use roce_model::{
    EventColumns, FlowKey, FlowRow, Progress, RunSummary, SampleColumns, Sink, SinkError, Span,
    TimelineColumns,
};
use roce_report::{Command, RunStanding, Screen};
use rustix::process::{Signal, getpgrp, getpid, kill_process};
use rustix::termios::tcgetpgrp;

use crate::options::format::Format;
use keys::{Keys, PressedKey};
use tty::Tty;
pub(crate) use tty::{hold, leave};

/// Longest time between two drawings.
pub(crate) const FRAME: Duration = Duration::from_millis(100);

/// So soon the rest of a key follows its first byte.
const REST: Duration = Duration::from_millis(20);

/// True if a screen can be opened and is wanted: it needs a terminal whose foreground process this is.
pub(crate) fn is_wanted(no_tui: bool, format: Format) -> bool {
    let (keys, cells) = (std::io::stdin(), std::io::stdout());
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
    !no_tui
        && format == Format::Text
        && !dumb
        && keys.is_terminal()
        && cells.is_terminal()
        && tcgetpgrp(&keys).is_ok_and(|foreground| foreground == getpgrp())
}

/// A run that is shown.
pub(crate) trait ShownRun: Send + Sync {
    /// State of the run for the head of the screen.
    fn standing(&self, screen: &Screen) -> RunStanding;
    /// Obeys a key's command.
    fn command(&self, command: Command);
    /// The whole run is on the screen: returns when that is to be left.
    fn linger(&self);
}

/// An open screen.
pub(crate) struct Stage {
    screen: Screen,
    run: Arc<dyn ShownRun>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// Its other end goes with the thread.
    gone: Receiver<()>,
}

/// A thread that a terminal keeps is not waited for any longer.
const LONGEST: Duration = Duration::from_secs(1);

impl Stage {
    /// Takes the terminal.
    pub(crate) fn open(screen: Screen, run: Arc<dyn ShownRun>) -> anyhow::Result<Self> {
        let tty = Tty::enter().context("the terminal cannot show a screen\nhint: --no-tui prints lines")?;
        let over = Arc::new(AtomicBool::new(false));
        let (alive, gone) = bounded::<()>(0);
        let thread = std::thread::Builder::new().name("screen".to_owned()).spawn({
            let (screen, run, over) = (screen.clone(), Arc::clone(&run), Arc::clone(&over));
            move || {
                let _alive = alive;
                show(&screen, &*run, tty, &over);
            }
        });
        let thread = thread
            .inspect_err(|_| leave())
            .context("no thread for the screen")?;
        Ok(Self {
            screen,
            run,
            over,
            thread: Some(thread),
            gone,
        })
    }

    /// Gives the terminal back.
    fn close(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let ended = self.gone.recv_timeout(LONGEST) == Err(RecvTimeoutError::Disconnected);
        if let Some(thread) = self.thread.take().filter(|_| ended) {
            // A panic of it has been requested.
            let _ = thread.join();
        }
        leave();
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.close();
    }
}

/// Ends the run when the screen ends, even by a panic: without a screen no key could end it.
struct EndsTheRun<'a>(&'a dyn ShownRun);

impl Drop for EndsTheRun<'_> {
    fn drop(&mut self) {
        self.0.command(Command::Quit);
    }
}

/// Panics where the environment requests it, in builds with debug assertions: a test verifies how the terminal is left.
fn panic_if_requested(place: &str) {
    let requested = cfg!(debug_assertions)
        .then(|| std::env::var_os("ROCE_ANALYZE_PANIC"))
        .flatten();
    assert!(
        requested.is_none_or(|requested| requested != place),
        "a panic is requested: {place}"
    );
}

/// Draws and reads keys until it is over.
fn show(screen: &Screen, run: &dyn ShownRun, mut tty: Tty, over: &AtomicBool) {
    let _ends = EndsTheRun(run);
    let mut waiting = Keys::default();
    while !over.load(Ordering::Relaxed) {
        let standing = run.standing(screen);
        match tty.draw(|buffer| screen.draw(buffer, &standing)) {
            Ok(true) => {}
            // It was left, by a panic elsewhere, or because the process ends; or there is no terminal any more.
            Ok(false) | Err(_) => return,
        }
        panic_if_requested("screen");
        let mut patience = FRAME;
        loop {
            // An error means that the terminal is gone.
            let Ok(typed) = tty::read(patience) else { return };
            let keys = match typed.as_slice() {
                [] => waiting.end(),
                bytes => waiting.add(bytes),
            };
            for key in keys {
                pressed(key, screen, run, &mut tty);
            }
            if !waiting.wait() {
                break;
            }
            patience = REST;
        }
    }
}

fn pressed(key: PressedKey, screen: &Screen, run: &dyn ShownRun, tty: &mut Tty) {
    let key = match key {
        PressedKey::Key(key) => key,
        // To everybody else it is what it always was.
        PressedKey::Interrupt => {
            let _ = kill_process(getpid(), Signal::INT);
            return;
        }
        PressedKey::Suspend => return tty.suspend(),
        PressedKey::Redraw => return tty.redraw(),
    };
    if let Some(command) = screen.key(key) {
        run.command(command);
    }
}

/// Everything goes to the screen; at the end that is left, so that what follows is printed where it was.
impl Sink for Stage {
    fn begin(&mut self, bin: Span) -> Result<(), SinkError> {
        self.screen.begin(bin)
    }

    fn flows_opened(&mut self, keys: &[FlowKey]) -> Result<(), SinkError> {
        self.screen.flows_opened(keys)
    }

    fn progress(&mut self, progress: &Progress<'_>) -> Result<(), SinkError> {
        panic_if_requested("analysis");
        self.screen.progress(progress)
    }

    fn timeline(&mut self, rows: &TimelineColumns) -> Result<(), SinkError> {
        self.screen.timeline(rows)
    }

    fn events(&mut self, rows: &EventColumns) -> Result<(), SinkError> {
        self.screen.events(rows)
    }

    fn samples(&mut self, rows: &SampleColumns) -> Result<(), SinkError> {
        self.screen.samples(rows)
    }

    fn flows_closed(&mut self, rows: &[FlowRow]) -> Result<(), SinkError> {
        self.screen.flows_closed(rows)
    }

    fn finish(&mut self, run: &RunSummary) -> Result<(), SinkError> {
        self.screen.finish(run)?;
        self.run.linger();
        self.close();
        Ok(())
    }
}
