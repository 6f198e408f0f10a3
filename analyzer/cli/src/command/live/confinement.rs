//! The order in which a live run gives up its rights: devices are open; then it goes on as another user without capabilities, opens its
//! output as that user, and confines itself to it.

use anyhow::Context;
use clap::Args;
use rustix::process::geteuid;
use rustix::thread::CapabilitySet;

use crate::output::messages;
use crate::sandbox::{self, Identity, Needs, Outputs};

/// In front of messages about rights.
const ABOUT: &str = "rights";

// User as whom the run continues. (A comment for the compiler would become the help's first line.)
#[derive(Args, Debug)]
pub(super) struct ConfinementArguments {
    /// User that a run started by root continues as, once the devices are open: a name or number [default: the caller of sudo, else nobody; the owner of
    /// DIR or of FILE's folder where only that user can write]
    #[arg(long, value_name = "NAME", conflicts_with = "no_sandbox")]
    user: Option<String>,

    /// Keep the user and the right to open every file, and do not limit system calls; a note lists the rights that are still given up
    #[arg(long)]
    no_sandbox: bool,
}

/// Confinement that is being prepared.
pub(super) struct Confinement<'a> {
    arguments: &'a ConfinementArguments,
    named: Option<Identity>,
}

impl<'a> Confinement<'a> {
    /// Rights are low from here on, until `sandbox::raise`.
    ///
    /// # Errors
    /// There is no such user.
    pub(super) fn begin(arguments: &'a ConfinementArguments) -> anyhow::Result<Self> {
        sandbox::lower()?;
        let named = arguments.user.as_deref().map(Identity::named).transpose()?;
        Ok(Self { arguments, named })
    }

    /// Devices are open: goes on as another user, with no capabilities but those `needed` at the end.
    ///
    /// # Errors
    /// No user can write the outputs, or the system does not take rights back.
    pub(super) fn give_up(&self, outputs: &Outputs<'_>, needed: CapabilitySet) -> anyhow::Result<()> {
        if self.arguments.no_sandbox {
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
        let named = self.arguments.user.as_deref().zip(self.named);
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

    /// The outputs are open: no other files, and no other system calls, from here on.
    ///
    /// # Errors
    /// The kernel has what it takes, and refuses.
    pub(super) fn confine(&self, outputs: &Outputs<'_>, needs: Needs) -> anyhow::Result<()> {
        if self.arguments.no_sandbox {
            #[cfg(debug_assertions)]
            sandbox::attempt();
            return Ok(());
        }
        let refused = "the run cannot be confined\nhint: --no-sandbox runs without it";
        if !sandbox::confine(&outputs.folders()).context(refused)? {
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
        "--no-sandbox: {user}, start programs and open sockets; an attack by packets would have these rights"
    )
}
