//! The order in which a run that listens to others gives up its rights: devices and sockets are open; then it goes on as another user without
//! capabilities, opens its output as that user, and confines itself to it.

use std::path::PathBuf;

use anyhow::Context;
use rustix::process::geteuid;
use rustix::thread::CapabilitySet;

use crate::output::messages;
use crate::sandbox::{self, Identity, Needs, Outputs};

/// In front of messages about rights.
const ABOUT: &str = "rights";

/// Confinement that is being prepared.
pub(super) struct Confinement<'a> {
    user: Option<&'a str>,
    no_sandbox: bool,
    named: Option<Identity>,
}

impl<'a> Confinement<'a> {
    /// Rights are low from here on, until `sandbox::raise`. `user` and `no_sandbox` are the options of those names.
    ///
    /// # Errors
    /// There is no such user.
    pub(super) fn begin(user: Option<&'a str>, no_sandbox: bool) -> anyhow::Result<Self> {
        sandbox::lower()?;
        let named = user.map(Identity::named).transpose()?;
        Ok(Self {
            user,
            no_sandbox,
            named,
        })
    }

    /// Devices are open: goes on as another user, with no capabilities but those `needed` at the end.
    ///
    /// # Errors
    /// No user can write the outputs, or the system does not take rights back.
    pub(super) fn give_up(&self, outputs: &Outputs<'_>, needed: CapabilitySet) -> anyhow::Result<()> {
        if self.no_sandbox {
            let root = geteuid().is_root();
            // Root may write into others' folders.
            let writes = root && (outputs.dir.is_some() || outputs.file.is_some());
            let files = if writes {
                CapabilitySet::DAC_OVERRIDE
            } else {
                CapabilitySet::empty()
            };
            sandbox::give_up(None, needed | files)?;
            messages::warn(ABOUT, &unconfined(root, writes));
            return Ok(());
        }
        let named = self.user.zip(self.named);
        let identity = outputs.identity(named)?;
        sandbox::give_up(identity, needed)?;
        if identity.is_some_and(Identity::is_root) && named.is_none() {
            messages::warn(
                ABOUT,
                "continues as root, without capabilities: only root can write the output; --user NAME and a folder of that user avoid it",
            );
        }
        Ok(())
    }

    /// The outputs are open: no other files but those below `read`, and no other system calls, from here on.
    ///
    /// # Errors
    /// The kernel has what it takes, and refuses.
    pub(super) fn confine(
        &self,
        outputs: &Outputs<'_>,
        read: &[PathBuf],
        needs: Needs,
    ) -> anyhow::Result<()> {
        if self.no_sandbox {
            #[cfg(debug_assertions)]
            sandbox::attempt();
            return Ok(());
        }
        let refused = "the run cannot be confined\nhint: --no-sandbox runs without it";
        if !sandbox::confine(&outputs.folders(), read).context(refused)? {
            messages::warn(
                ABOUT,
                "this kernel has no Landlock: the run can open every file that its user may, not only its output",
            );
        }
        if let Err(error) = sandbox::filter(needs) {
            messages::warn(
                ABOUT,
                &format!(
                    "this kernel has no filter for system calls (seccomp): {error}; the run could start programs and open sockets"
                ),
            );
        }
        #[cfg(debug_assertions)]
        sandbox::attempt();
        Ok(())
    }
}

/// Sentence about the rights that an unconfined run gives up.
fn unconfined(root: bool, writes: bool) -> String {
    let user = match (root, writes) {
        (true, true) => "it stays root, and may write every file (CAP_DAC_OVERRIDE)",
        (true, false) => "it stays root, and may read and write root's files",
        (false, _) => "it may open every file that its user may",
    };
    format!(
        "--no-sandbox: {user}, start programs and open sockets; an attacker who takes it over would have these rights"
    )
}
