//! Attempts of an attacker: builds with debug assertions make them on request, so that a test sees each
//! refused.

#![expect(unsafe_code, reason = "system calls are made as an attacker makes them")]

use std::fs::{self, File, OpenOptions};
use std::io;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::output::messages;

/// System calls by name. The arguments do no harm where they are allowed: addresses of nothing, processes that do not exist, families of
/// sockets, a page of memory.
const CALLS: [(&str, libc::c_long, [libc::c_long; 4]); 35] = [
    ("ptrace", libc::SYS_ptrace, [16, 0, 0, 0]),
    ("process_vm_readv", libc::SYS_process_vm_readv, [1, 0, 0, 0]),
    ("process_vm_writev", libc::SYS_process_vm_writev, [1, 0, 0, 0]),
    ("execve", libc::SYS_execve, [0, 0, 0, 0]),
    ("execveat", libc::SYS_execveat, [-1, 0, 0, 0]),
    ("mount", libc::SYS_mount, [0, 0, 0, 0]),
    ("fsopen", libc::SYS_fsopen, [0, 0, 0, 0]),
    ("open_tree", libc::SYS_open_tree, [-1, 0, 0, 0]),
    ("move_mount", libc::SYS_move_mount, [-1, 0, -1, 0]),
    ("pivot_root", libc::SYS_pivot_root, [0, 0, 0, 0]),
    ("chroot", libc::SYS_chroot, [0, 0, 0, 0]),
    ("unshare", libc::SYS_unshare, [0, 0, 0, 0]),
    ("setns", libc::SYS_setns, [-1, 0, 0, 0]),
    ("bpf", libc::SYS_bpf, [5, 0, 0, 0]),
    ("setuid", libc::SYS_setuid, [0, 0, 0, 0]),
    ("capset", libc::SYS_capset, [0, 0, 0, 0]),
    ("kill", libc::SYS_kill, [1, 0, 0, 0]),
    ("pidfd_open", libc::SYS_pidfd_open, [1, 0, 0, 0]),
    ("pidfd_getfd", libc::SYS_pidfd_getfd, [-1, 0, 0, 0]),
    ("io_uring_setup", libc::SYS_io_uring_setup, [0, 0, 0, 0]),
    ("perf_event_open", libc::SYS_perf_event_open, [0, 0, 0, 0]),
    ("userfaultfd", libc::SYS_userfaultfd, [0, 0, 0, 0]),
    ("keyctl", libc::SYS_keyctl, [0, 0, 0, 0]),
    ("init_module", libc::SYS_init_module, [0, 0, 0, 0]),
    ("open_by_handle_at", libc::SYS_open_by_handle_at, [-1, 0, 0, 0]),
    ("mknodat", libc::SYS_mknodat, [-1, 0, 0, 0]),
    ("truncate", libc::SYS_truncate, [0, 0, 0, 0]),
    ("setxattr", libc::SYS_setxattr, [0, 0, 0, 0]),
    ("fchownat", libc::SYS_fchownat, [-1, 0, 0, 0]),
    ("fchmodat", libc::SYS_fchmodat, [-1, 0, 0, 0]),
    ("utimensat", libc::SYS_utimensat, [-1, 0, 0, 0]),
    // PROT_READ and PROT_EXEC, MAP_PRIVATE and MAP_ANONYMOUS.
    ("code", libc::SYS_mmap, [0, 4096, 5, 0x22]),
    ("netlink", libc::SYS_socket, [16, 3, 0, 0]),
    ("packet socket", libc::SYS_socket, [17, 3, 0, 0]),
    ("tiocsti", libc::SYS_ioctl, [0, 0x5412, 0, 0]),
];

/// Says on standard error how each attempt ended, where the environment has `ROCE_ANALYZE_ATTEMPTS`. Its value may be the path of a file
/// that the process's own user owns, outside of all folders that the run may write: Landlock alone protects it.
pub(crate) fn report() {
    let Some(own) = std::env::var_os("ROCE_ANALYZE_ATTEMPTS") else {
        return;
    };
    let own = PathBuf::from(own);
    let own = if own.is_absolute() {
        own
    } else {
        "/etc/hostname".into()
    };
    let thread = std::thread::spawn(move || {
        let mut ends = on_files(&own);
        ends.extend([
            ("start a program", Command::new("/bin/true").status().map(drop)),
            ("udp", UdpSocket::bind("127.0.0.1:0").map(drop)),
            ("tcp", TcpListener::bind("127.0.0.1:0").map(drop)),
            // Where it is allowed nobody listens there (RFC 863, discard).
            ("connect", TcpStream::connect("127.0.0.1:9").map(drop)),
            ("unix", UnixStream::connect("/nonexistent/socket").map(drop)),
        ]);
        ends.extend(CALLS.iter().map(|(name, call, [a, b, c, d])| {
            // SAFETY: none of them writes to this process's memory: their addresses are null, or the kernel's choice.
            let result = unsafe { libc::syscall(*call, *a, *b, *c, *d, -1, 0) };
            let end = if result == -1 {
                Err(io::Error::last_os_error())
            } else {
                Ok(())
            };
            (*name, end)
        }));
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

/// Attempts to read and write outside, by all names that a path may have. They leave `own` as it is.
fn on_files(own: &Path) -> Vec<(&'static str, io::Result<()>)> {
    let place = |name: &str| std::env::temp_dir().join(format!("roce-{name}-{}", std::process::id()));
    let made = ["file", "folder", "link", "symbolic"].map(place);
    let [file, folder, link, symbolic] = &made;
    let append = |path: &Path| OpenOptions::new().append(true).open(path).map(drop);
    let permissions = || fs::set_permissions(own, fs::metadata(own)?.permissions());
    let around = Path::new("/proc/self/root").join(own.strip_prefix("/").unwrap_or(own));
    let ends = vec![
        ("read /etc/shadow", File::open("/etc/shadow").map(drop)),
        ("read /etc/passwd", File::open("/etc/passwd").map(drop)),
        ("read its own file", File::open(own).map(drop)),
        ("read around", File::open(&around).map(drop)),
        ("read its parent", File::open("/proc/self/../1/environ").map(drop)),
        ("list /", fs::read_dir("/").map(drop)),
        ("write /etc", append(Path::new("/etc/hostname"))),
        ("write its own file", append(own)),
        ("write around", append(&around)),
        ("write memory", append(Path::new("/proc/self/mem"))),
        ("write /tmp", File::create_new(file).map(drop)),
        ("make a folder", fs::create_dir(folder)),
        ("link", fs::hard_link(own, link)),
        ("symbolic link", symlink("/etc/passwd", symbolic)),
        // Onto itself.
        ("move", fs::rename(own, own)),
        ("mode", permissions()),
    ];
    for path in &made {
        let _ = fs::remove_file(path).or_else(|_| fs::remove_dir(path));
    }
    ends
}
