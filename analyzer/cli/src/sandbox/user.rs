//! User as whom a run of root continues, once devices are open: one who owns nothing more than its
//! output.

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use roce_files::{Directory, parent_of};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::process::geteuid;
use rustix::thread::{
    CapabilitySet, CapabilitySets, set_capabilities, set_thread_groups, set_thread_res_gid,
    set_thread_res_uid,
};
use rustix::{process::Gid, process::Uid};

/// The user that owns nothing: the kernel's overflow number, and `nobody` of distributions.
const NOBODY: u32 = 65_534;
const USERS: &str = "/etc/passwd";
/// Longer lists of users are not read.
const MAX_USERS_BYTES: u64 = 1 << 22;

/// A user and a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Identity {
    pub(crate) uid: Uid,
    pub(crate) gid: Gid,
}

impl Identity {
    fn new(uid: u32, gid: u32) -> Self {
        Self {
            uid: Uid::from_raw(uid),
            gid: Gid::from_raw(gid),
        }
    }

    pub(crate) fn is_root(self) -> bool {
        self.uid.is_root()
    }

    /// The user of that name or number.
    ///
    /// # Errors
    /// There is none, or this process may become no other.
    pub(crate) fn named(name: &str) -> anyhow::Result<Self> {
        if !geteuid().is_root() {
            bail!("--user {name}: only root can become another user\nhint: omit it, or start it as root");
        }
        let number = name.parse::<u32>().ok();
        let users = users()?;
        let found = users.lines().find_map(|line| {
            let [user, _, uid, gid, ..] = line.split(':').collect::<Vec<_>>()[..] else {
                return None;
            };
            let (uid, gid) = (uid.parse().ok()?, gid.parse().ok()?);
            (user == name || number == Some(uid)).then(|| Self::new(uid, gid))
        });
        // A number needs no name: containers have such users.
        let alone = number
            .filter(|number| *number < u32::MAX)
            .map(|uid| Self::new(uid, uid));
        found
            .or(alone)
            .ok_or_else(|| anyhow!("--user {name}: {USERS} has no such user"))
    }

    /// User who called sudo.
    fn from_sudo() -> Option<Self> {
        let number = |name| env::var(name).ok()?.parse::<u32>().ok();
        let (uid, gid) = (number("SUDO_UID")?, number("SUDO_GID")?);
        (uid != 0 && uid != u32::MAX && gid != u32::MAX).then(|| Self::new(uid, gid))
    }

    /// True if it can write to all of these without any capability. A thread becomes it, and tries.
    ///
    /// # Errors
    /// When there is no thread for it.
    fn can_write(self, targets: &[PathBuf]) -> anyhow::Result<bool> {
        let tried = || -> rustix::io::Result<bool> {
            set_thread_groups(&[])?;
            set_thread_res_gid(self.gid, self.gid, self.gid)?;
            set_thread_res_uid(self.uid, self.uid, self.uid)?;
            let none = CapabilitySet::empty();
            set_capabilities(
                None,
                CapabilitySets {
                    effective: none,
                    permitted: none,
                    inheritable: none,
                },
            )?;
            Ok(targets.iter().all(|target| {
                let wanted = if target.is_dir() {
                    Access::WRITE_OK | Access::EXEC_OK
                } else {
                    Access::WRITE_OK
                };
                accessat(CWD, target, wanted, AtFlags::EACCESS).is_ok()
            }))
        };
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new()
                .spawn_scoped(scope, tried)
                .context("no thread that tries which user can write")?;
            Ok(thread.join().is_ok_and(|tried| tried.unwrap_or(false)))
        })
    }
}

fn users() -> anyhow::Result<String> {
    use std::io::Read;
    let mut text = String::new();
    let file = fs::File::open(USERS).context(USERS)?;
    file.take(MAX_USERS_BYTES)
        .read_to_string(&mut text)
        .context(USERS)?;
    Ok(text)
}

/// Destinations of a run's output.
pub(crate) struct Outputs<'a> {
    /// The folder of `-o`.
    pub(crate) dir: Option<&'a Path>,
    /// The file of `-w`.
    pub(crate) file: Option<&'a Path>,
    /// True if other files will follow that file.
    pub(crate) rotates: bool,
}

impl Outputs<'_> {
    /// User as whom a run of root continues: `named`, or the caller of sudo, or nobody. If that user
    /// cannot write the outputs, their owner is chosen. A folder that does not exist yet is made, and
    /// given to that user. `None` for a run of another user, which keeps that user.
    ///
    /// # Errors
    /// The folder cannot be made, or a user cannot write the outputs.
    pub(crate) fn identity(&self, named: Option<(&str, Identity)>) -> anyhow::Result<Option<Identity>> {
        if !geteuid().is_root() {
            return Ok(None);
        }
        // The folder is held by a handle: other users may put a link in its place as soon as it has its name.
        let made = self.dir.map(Directory::made).transpose()?.flatten();
        let chosen = self.chosen(named, made.as_ref())?;
        if let Some(made) = made {
            made.keep();
        }
        Ok(Some(chosen))
    }

    fn chosen(&self, named: Option<(&str, Identity)>, made: Option<&Directory>) -> anyhow::Result<Identity> {
        let give = |to: Identity| made.map_or(Ok(()), |made| made.give(to.uid, to.gid));
        let preferred = named.map(|(_, user)| user).or_else(Identity::from_sudo);
        let preferred = preferred.unwrap_or_else(|| Identity::new(NOBODY, NOBODY));
        give(preferred)?;
        let targets = self.targets();
        if preferred.can_write(&targets)? {
            return Ok(preferred);
        }
        if let Some((name, _)) = named {
            let places: Vec<_> = targets
                .iter()
                .map(|target| target.display().to_string())
                .collect();
            bail!(
                "{}: user {name} cannot write there\nhint: give it to that user (chown), or name another by --user",
                places.join(", ")
            );
        }
        // It may be a folder inside of one that only its owner can enter.
        let owners = targets.iter().filter_map(|target| {
            let place = if made.is_some() && self.dir == Some(target) {
                parent_of(target)
            } else {
                target
            };
            let owner = fs::metadata(place).ok()?;
            Some(Identity::new(owner.uid(), owner.gid()))
        });
        let root = Identity::new(0, 0);
        for owner in owners.chain([root]) {
            give(owner)?;
            if owner.can_write(&targets)? {
                return Ok(owner);
            }
        }
        let places: Vec<_> = targets
            .iter()
            .map(|target| target.display().to_string())
            .collect();
        bail!(
            "{}: nobody can write to all of it without root's rights\nhint: give it to one user (chown), or use --no-sandbox",
            places.join(", ")
        )
    }

    /// Files and folders that have to be writable.
    fn targets(&self) -> Vec<PathBuf> {
        let file = self.file.map(|file| {
            if !self.rotates && file.exists() {
                file.to_owned()
            } else {
                parent_of(file).to_owned()
            }
        });
        self.dir.map(Path::to_owned).into_iter().chain(file).collect()
    }

    /// Folders in which files are made while the run goes on.
    pub(crate) fn folders(&self) -> Vec<PathBuf> {
        let rotating = self
            .file
            .filter(|_| self.rotates)
            .map(|file| parent_of(file).to_owned());
        self.dir.map(Path::to_owned).into_iter().chain(rotating).collect()
    }
}
