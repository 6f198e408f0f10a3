//! Attempts of an attacker: builds with debug assertions make them on request, so that a test sees each
//! refused.

#![expect(unsafe_code, reason = "system calls are made as an attacker makes them")]

use std::fs::{File, OpenOptions};
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::process::Command;

use crate::output::messages;

/// System calls by name. The arguments do no harm where they are allowed: addresses of nothing, processes that do not exist.
const CALLS: [(&str, libc::c_long, [libc::c_long; 4]); 11] = [
    ("ptrace", libc::SYS_ptrace, [16, 0, 0, 0]),
    ("process_vm_readv", libc::SYS_process_vm_readv, [1, 0, 0, 0]),
    ("execve", libc::SYS_execve, [0, 0, 0, 0]),
    ("mount", libc::SYS_mount, [0, 0, 0, 0]),
    ("unshare", libc::SYS_unshare, [0, 0, 0, 0]),
    ("bpf", libc::SYS_bpf, [5, 0, 0, 0]),
    ("setuid", libc::SYS_setuid, [0, 0, 0, 0]),
    ("kill", libc::SYS_kill, [1, 0, 0, 0]),
    ("io_uring_setup", libc::SYS_io_uring_setup, [0, 0, 0, 0]),
    ("perf_event_open", libc::SYS_perf_event_open, [0, 0, 0, 0]),
    ("tiocsti", libc::SYS_ioctl, [0, 0x5412, 0, 0]),
];

/// Says on standard error how each attempt ended, where the environment has `ROCE_ANALYZE_ATTEMPTS`.
pub(crate) fn report() {
    if std::env::var_os("ROCE_ANALYZE_ATTEMPTS").is_none() {
        return;
    }
    let thread = std::thread::spawn(|| {
        let place = std::env::temp_dir().join(format!("roce-attempt-{}", std::process::id()));
        let mut ends = vec![
            ("read /etc/shadow", File::open("/etc/shadow").map(drop)),
            ("read /etc/passwd", File::open("/etc/passwd").map(drop)),
            (
                "write /etc",
                OpenOptions::new().append(true).open("/etc/hostname").map(drop),
            ),
            ("write /tmp", File::create_new(&place).map(drop)),
            ("start a program", Command::new("/bin/true").status().map(drop)),
            ("udp", UdpSocket::bind("127.0.0.1:0").map(drop)),
            ("tcp", TcpListener::bind("127.0.0.1:0").map(drop)),
        ];
        ends.extend(CALLS.iter().map(|(name, call, [a, b, c, d])| {
            // SAFETY: none of them writes to this process's memory: their addresses are null.
            let result = unsafe { libc::syscall(*call, *a, *b, *c, *d, 0) };
            let end = if result == -1 {
                Err(io::Error::last_os_error())
            } else {
                Ok(())
            };
            (*name, end)
        }));
        let _ = std::fs::remove_file(&place);
        for (name, end) in ends {
            let text = match end {
                // EPERM, EACCES.
                Err(error) if matches!(error.raw_os_error(), Some(1 | 13)) => "refused".to_owned(),
                Err(error) => format!("possible ({error})"),
                Ok(()) => "possible".to_owned(),
            };
            messages::warn("attempt", &format!("{name}: {text}"));
        }
    });
    // A panic in it has been reported.
    let _ = thread.join();
}
