//! The terminal while the screen has it: raw, on the alternate screen, without a cursor. Any end of the
//! process, and a panic in any thread, restores it first. Messages for standard error wait until then.

use std::io::{self, BufWriter, Stdout, Write, stdout};
use std::sync::{Mutex, MutexGuard, Once, PoisonError, TryLockError};
use std::time::Duration;

use ratatui_core::backend::Backend;
use ratatui_core::buffer::Buffer;
use ratatui_core::terminal::Terminal;
use ratatui_crossterm::CrosstermBackend;
use ratatui_crossterm::crossterm::cursor::{Hide, Show};
use ratatui_crossterm::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui_crossterm::crossterm::{execute, queue};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Signal, getpid, kill_process};

/// Messages to print once the terminal is restored; none while the screen does not have it. Locked while
/// anything is written to it.
static OURS: Mutex<Option<Vec<String>>> = Mutex::new(None);

/// A whole screen is written at once.
const BUFFER: usize = 1 << 16;
/// Bytes that are read at a time.
const TYPED: usize = 256;
/// A process that stops itself does so within this time.
const STOPPED: Duration = Duration::from_millis(50);
/// Number of tries in which the end of the process waits for a drawing to finish.
const PATIENCE: u32 = 200;

fn ours() -> MutexGuard<'static, Option<Vec<String>>> {
    OURS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The terminal.
pub(super) struct Tty {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
}

impl Tty {
    /// Takes it.
    pub(super) fn enter() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let report = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                leave();
                report(panic);
            }));
        });
        let mut ours = ours();
        take()?;
        *ours = Some(Vec::new());
        drop(ours);
        let terminal = Terminal::new(CrosstermBackend::new(BufWriter::with_capacity(BUFFER, stdout())))
            .inspect_err(|_| leave())?;
        Ok(Self { terminal })
    }

    /// Draws what `fill` puts into the cells; whether the terminal is still ours. It is held while it is written to, not while cells are
    /// filled.
    pub(super) fn draw(&mut self, fill: impl FnOnce(&mut Buffer)) -> io::Result<bool> {
        if ours().is_none() {
            return Ok(false);
        }
        self.terminal.autoresize()?;
        fill(self.terminal.current_buffer_mut());
        let ours = ours();
        if ours.is_none() {
            return Ok(false);
        }
        self.terminal.flush()?;
        self.terminal.swap_buffers();
        Backend::flush(self.terminal.backend_mut())?;
        Ok(true)
    }

    /// All cells are written again the next time.
    pub(super) fn redraw(&mut self) {
        // If it cannot be cleared, the next drawing fails with the error.
        let _ = self.terminal.clear();
    }

    /// Gives the terminal back and stops, as a shell expects; takes it again when the process goes on.
    pub(super) fn suspend(&mut self) {
        let ours = ours();
        if ours.is_none() {
            return;
        }
        give_back();
        let _ = kill_process(getpid(), Signal::TSTP);
        // Another thread may get the signal: this one must not continue before all of them have stopped.
        std::thread::sleep(STOPPED);
        let _ = take();
        drop(ours);
        self.redraw();
    }
}

/// Typed bytes, once there are any, or nothing after this time.
///
/// # Errors
/// When the terminal is gone.
pub(super) fn read(time: Duration) -> io::Result<Vec<u8>> {
    let keys = io::stdin();
    let mut waiting = [PollFd::new(&keys, PollFlags::IN)];
    let timeout = Timespec::try_from(time).map_err(io::Error::other)?;
    match poll(&mut waiting, Some(&timeout)) {
        // A change of the size interrupts it: then it is drawn again.
        Ok(0) | Err(Errno::INTR) => return Ok(Vec::new()),
        polled => polled?,
    };
    let [waited] = &waiting;
    if !waited.revents().contains(PollFlags::IN) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut typed = vec![0; TYPED];
    let length = match rustix::io::read(&keys, typed.as_mut_slice()) {
        Err(Errno::INTR | Errno::AGAIN) => return Ok(Vec::new()),
        read => read?,
    };
    if length == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    typed.truncate(length);
    Ok(typed)
}

fn take() -> io::Result<()> {
    enable_raw_mode()?;
    execute!(stdout(), EnterAlternateScreen, Hide).inspect_err(|_| {
        // The first error is the one returned.
        let _ = disable_raw_mode();
    })
}

/// Nobody is left to tell that it does not work.
fn give_back() {
    let mut out = stdout();
    let _ = queue!(out, LeaveAlternateScreen, Show);
    let _ = out.flush();
    let _ = disable_raw_mode();
}

/// Gives the terminal back, if it was taken, and tells what has waited for that.
pub(crate) fn leave() {
    for _ in 0..PATIENCE {
        let mut ours = match OURS.try_lock() {
            Ok(ours) => ours,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
        };
        if let Some(messages) = ours.take() {
            give_back();
            for text in messages {
                let _ = writeln!(anstream::stderr(), "{text}");
            }
        }
        return;
    }
    // The terminal accepts nothing more: the steps that write nothing are still taken.
    let _ = disable_raw_mode();
}

/// Keeps a line for standard error until the terminal is given back; `false` where nobody has that.
pub(crate) fn hold(text: &str) -> bool {
    match &mut *ours() {
        Some(messages) => {
            messages.push(text.to_owned());
            true
        }
        None => false,
    }
}
