//! System calls that a run may make, by a seccomp filter; all others fail with EPERM. The list is what reading, writing, threads,
//! timers and terminals take. Left out are: starting programs, sockets, tracing, mounting, changing the user, loading kernel programs.
//!
//! Landlock limits which files can be opened (`files`); this filter limits what can be done at all, in every thread.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BpfProgram, Error, SeccompAction, SeccompCmpArgLen::Dword, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter_all_threads,
};

/// Needs of a run beside the common calls.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Needs {
    /// Reads maps of the kernel programs.
    pub(crate) maps: bool,
    /// Removes filters at its end, by netlink sockets.
    pub(crate) netlink: bool,
    /// Takes connections on sockets that listen already.
    pub(crate) accept: bool,
    /// Connects to stores, by IP.
    pub(crate) connect: bool,
}

/// Calls that are allowed whatever their arguments. Those that change a file's mode, owner, times or attributes are not among them: Landlock
/// does not refuse them outside of the output's folder (landlock(7), LIMITATIONS).
const ALLOWED: &[c_long] = &[
    // Files, pipes and what is open already.
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_preadv2,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_pwritev2,
    libc::SYS_lseek,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_statfs,
    libc::SYS_fstatfs,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_readlinkat,
    libc::SYS_getdents64,
    libc::SYS_getcwd,
    libc::SYS_mkdirat,
    libc::SYS_unlinkat,
    libc::SYS_renameat2,
    libc::SYS_umask,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fadvise64,
    libc::SYS_readahead,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_sync_file_range,
    libc::SYS_copy_file_range,
    libc::SYS_sendfile,
    libc::SYS_splice,
    libc::SYS_fcntl,
    libc::SYS_flock,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_pipe2,
    libc::SYS_memfd_create,
    // Waiting.
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_eventfd2,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    libc::SYS_timerfd_gettime,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_gettimeofday,
    libc::SYS_restart_syscall,
    // Sockets that are open already, and pairs that lead nowhere else.
    libc::SYS_socketpair,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    libc::SYS_getsockname,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_shutdown,
    // Memory.
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_mincore,
    libc::SYS_msync,
    libc::SYS_mlock,
    libc::SYS_munlock,
    libc::SYS_membarrier,
    // Threads and signals.
    libc::SYS_futex,
    libc::SYS_set_robust_list,
    libc::SYS_get_robust_list,
    libc::SYS_rseq,
    libc::SYS_set_tid_address,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_getparam,
    libc::SYS_sched_getscheduler,
    libc::SYS_getcpu,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigpending,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_rt_sigsuspend,
    libc::SYS_sigaltstack,
    libc::SYS_exit,
    libc::SYS_exit_group,
    // A child that was started before, and has ended.
    libc::SYS_wait4,
    // About the process and the system.
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_gettid,
    libc::SYS_getpgid,
    libc::SYS_getsid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_getresuid,
    libc::SYS_getresgid,
    libc::SYS_getgroups,
    libc::SYS_capget,
    libc::SYS_getrusage,
    libc::SYS_getrandom,
    libc::SYS_uname,
    libc::SYS_sysinfo,
    libc::SYS_times,
];

/// Names of older calls, which only this processor has.
#[cfg(target_arch = "x86_64")]
const OLDER: &[c_long] = &[
    libc::SYS_open,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_access,
    libc::SYS_readlink,
    libc::SYS_getdents,
    libc::SYS_mkdir,
    libc::SYS_rmdir,
    libc::SYS_unlink,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_dup2,
    libc::SYS_pipe,
    libc::SYS_poll,
    libc::SYS_select,
    libc::SYS_epoll_create,
    libc::SYS_epoll_wait,
    libc::SYS_eventfd,
    libc::SYS_time,
    libc::SYS_getpgrp,
    libc::SYS_arch_prctl,
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[c_long] = &[];

/// Commands of `bpf` that read maps (Linux include/uapi/linux/bpf.h): BPF_MAP_LOOKUP_ELEM and BPF_MAP_GET_NEXT_KEY.
const MAP_COMMANDS: [u64; 2] = [1, 4];
/// Names of threads and of memory (Linux include/uapi/linux/prctl.h): PR_SET_NAME, PR_GET_NAME, PR_SET_VMA.
const PROCESS_COMMANDS: [u64; 3] = [15, 16, 0x5356_4d41];
/// Requests that put characters into a terminal as if they were typed (Linux include/uapi/asm-generic/ioctls.h): TIOCSTI, TIOCLINUX.
const TYPING: [u64; 2] = [0x5412, 0x541c];

/// Installs the filter in all threads, for good. No process that it starts could have more rights, either.
///
/// # Errors
/// The kernel has no such filters, or the processor is one for which none is made.
pub(crate) fn filter(needs: Needs) -> Result<(), Error> {
    // The C library starts threads by clone3, whose arguments no filter sees. When it is not there, by clone.
    let one = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let missing = SeccompAction::Errno(libc::ENOSYS.cast_unsigned());
    let no_clone3 = program(one, SeccompAction::Allow, missing)?;
    let refused = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    let common = program(rules(needs)?, refused, SeccompAction::Allow)?;
    // The list does not contain what installs the second one.
    apply_filter_all_threads(&no_clone3)?;
    apply_filter_all_threads(&common)
}

/// Calls that a process may not make which starts others of this program: sockets, what takes over other processes or the system, and what
/// changes files without opening them, which Landlock does not refuse.
const REFUSED: &[c_long] = &[
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_io_uring_setup,
    libc::SYS_mount,
    libc::SYS_move_mount,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_keyctl,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_kexec_load,
    libc::SYS_chroot,
    libc::SYS_userfaultfd,
    libc::SYS_pidfd_getfd,
    libc::SYS_open_by_handle_at,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
];

/// fchmodat2, of Linux 6.6 (include/uapi/asm-generic/unistd.h): the C library's own header may be older.
const FCHMODAT2: c_long = 452;

/// Refuses sockets, and what takes over other processes, in all threads and all processes that are started from now on.
///
/// # Errors
/// The kernel has no such filters, or the processor is one for which none is made.
pub(super) fn no_sockets() -> Result<(), Error> {
    let refused = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    let error = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    apply_filter_all_threads(&program(refused, SeccompAction::Allow, error)?)
}

type Rules = BTreeMap<c_long, Vec<SeccompRule>>;

fn program(rules: Rules, otherwise: SeccompAction, matched: SeccompAction) -> Result<BpfProgram, Error> {
    let processor = TargetArch::try_from(std::env::consts::ARCH)?;
    Ok(SeccompFilter::new(rules, otherwise, matched, processor)?.try_into()?)
}

fn rules(needs: Needs) -> Result<Rules, Error> {
    let mut rules: Rules = ALLOWED
        .iter()
        .chain(OLDER)
        .map(|call| (*call, Vec::new()))
        .collect();
    rules.insert(libc::SYS_clone3, Vec::new());
    // Threads, and no processes.
    let thread = u64::from(libc::CLONE_THREAD.cast_unsigned());
    rules.insert(
        libc::SYS_clone,
        vec![rule(&[(0, SeccompCmpOp::MaskedEq(thread), thread)])?],
    );
    // Memory is data or code, never what was written and then runs.
    let code = u64::from(libc::PROT_EXEC.cast_unsigned());
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        rules.insert(call, vec![rule(&[(2, SeccompCmpOp::MaskedEq(code), 0)])?]);
    }
    let own = u64::from(std::process::id());
    for call in [libc::SYS_kill, libc::SYS_tgkill] {
        rules.insert(call, vec![rule(&[(0, SeccompCmpOp::Eq, own)])?]);
    }
    // Limits are read (the first argument of its own process is 0), not set.
    rules.insert(
        libc::SYS_prlimit64,
        vec![rule(&[(0, SeccompCmpOp::Eq, 0), (2, SeccompCmpOp::Eq, 0)])?],
    );
    let not_typing = TYPING.map(|request| (1, SeccompCmpOp::Ne, request));
    rules.insert(libc::SYS_ioctl, vec![rule(&not_typing)?]);
    rules.insert(libc::SYS_prctl, one_of(&PROCESS_COMMANDS)?);
    if needs.maps {
        rules.insert(libc::SYS_bpf, one_of(&MAP_COMMANDS)?);
    }
    if needs.netlink {
        // The C library finds an interface's number by a socket of the host's own, to which nothing is connected.
        let families = [libc::AF_NETLINK, libc::AF_UNIX].map(|family| u64::from(family.cast_unsigned()));
        rules.insert(libc::SYS_socket, one_of(&families)?);
        rules.insert(libc::SYS_bind, Vec::new());
    }
    if needs.accept {
        rules.insert(libc::SYS_accept4, Vec::new());
    }
    if needs.connect {
        let families = [libc::AF_INET, libc::AF_INET6].map(|family| u64::from(family.cast_unsigned()));
        rules.insert(libc::SYS_socket, one_of(&families)?);
        rules.insert(libc::SYS_connect, Vec::new());
        rules.insert(libc::SYS_getpeername, Vec::new());
        // Two questions about a name at once.
        rules.insert(libc::SYS_sendmmsg, Vec::new());
    }
    Ok(rules)
}

/// All of the conditions: an argument's number, how it is compared, and with what.
fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, Error> {
    let conditions = conditions
        .iter()
        .map(|(argument, how, value)| SeccompCondition::new(*argument, Dword, how.clone(), *value));
    Ok(SeccompRule::new(conditions.collect::<Result<_, _>>()?)?)
}

/// The first argument is one of these.
fn one_of(values: &[u64]) -> Result<Vec<SeccompRule>, Error> {
    let rules = values.iter().map(|value| rule(&[(0, SeccompCmpOp::Eq, *value)]));
    rules.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_could_take_over_a_host_are_in_no_filter() {
        let most = rules(Needs {
            maps: true,
            netlink: true,
            accept: true,
            connect: false,
        })
        .unwrap();
        for call in [
            libc::SYS_execve,
            libc::SYS_execveat,
            libc::SYS_ptrace,
            libc::SYS_process_vm_readv,
            libc::SYS_process_vm_writev,
            libc::SYS_connect,
            libc::SYS_listen,
            libc::SYS_mount,
            libc::SYS_move_mount,
            libc::SYS_unshare,
            libc::SYS_setns,
            libc::SYS_setresuid,
            libc::SYS_capset,
            libc::SYS_perf_event_open,
            libc::SYS_io_uring_setup,
            libc::SYS_init_module,
            libc::SYS_kexec_load,
            libc::SYS_keyctl,
            libc::SYS_mknodat,
            libc::SYS_chroot,
            libc::SYS_pidfd_open,
            libc::SYS_pidfd_getfd,
            libc::SYS_open_by_handle_at,
            libc::SYS_userfaultfd,
            libc::SYS_linkat,
            libc::SYS_symlinkat,
            libc::SYS_fchmod,
            libc::SYS_fchmodat,
            FCHMODAT2,
            libc::SYS_fchownat,
            libc::SYS_utimensat,
            libc::SYS_setxattr,
        ] {
            assert!(!most.contains_key(&call), "{call}");
        }
        let connecting = rules(Needs {
            connect: true,
            ..Needs::default()
        })
        .unwrap();
        for call in [
            libc::SYS_execve,
            libc::SYS_bind,
            libc::SYS_listen,
            libc::SYS_accept4,
            libc::SYS_bpf,
        ] {
            assert!(!connecting.contains_key(&call), "{call}");
        }
        let least = rules(Needs::default()).unwrap();
        for call in [libc::SYS_bpf, libc::SYS_socket, libc::SYS_bind, libc::SYS_accept4] {
            assert!(!least.contains_key(&call), "{call}");
        }
    }

    #[test]
    fn the_filters_compile() {
        let needs = Needs {
            maps: true,
            netlink: true,
            accept: true,
            connect: true,
        };
        let rules = rules(needs).unwrap();
        assert!(program(rules, SeccompAction::Allow, SeccompAction::Trap).is_ok());
    }
}
