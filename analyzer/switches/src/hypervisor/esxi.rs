//! ESXi: the shell scripts that a host is given, and the reading that their output becomes.
//!
//! ESXi has no agent to install: its shell (busybox ash) runs `esxcli` and `vsish`. 802.3x and PFC stay apart in every counter.
//! Answers are found by the names of their files ([`file_name`]), so that a folder of recorded answers reads as the host itself does.
//! How the scripts reach the host, and what follows when it does not answer, is left to others.

mod nic;
mod settings;
mod statistics;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use crate::device::{Answers, Question, Reading, Reason, file_name};
use crate::inventory::is_adapter_name;
use crate::switch::text::{CUT, up_to_last_end};
use nic::{MAX_NICS, Nic};
use settings::ListedNic;

/// Commands, as two scripts: the counters and states of each reading, and what hardly changes.
///
/// The scripts print a line `== COMMAND` before the output of each command, errors included.
pub(super) fn questions(vmnics: &[String]) -> Vec<Question> {
    let names = chosen(vmnics);
    let each = format!(
        "{SHOW}\n\
         q esxcli --formatter=json network nic list\n\
         for n in {names}; do\n\
         q esxcli network nic stats get -n $n\n\
         q vsish -e get /net/pNics/$n/stats\n\
         q esxcli network nic dcb status get -n $n\n\
         done\n\
         q esxcli network nic pauseParams list"
    );
    let slow = format!(
        "{SHOW}\n\
         q esxcli system version get\n\
         q esxcli system module parameters list -m nmlx5_core\n\
         for n in {names}; do\n\
         q esxcli network nic get -n $n\n\
         done"
    );
    vec![
        Question::script(&each),
        Question {
            is_slow: true,
            ..Question::script(&slow)
        },
    ]
}

/// A function of the shell that shows a command and its output.
const SHOW: &str = "q() { echo \"== $*\"; \"$@\" 2>&1; }";
/// Words of the shell that become the adapters whose link is up. The fifth column of the table is `Link Status`.
const UP: &str = "$(esxcli network nic list 2>/dev/null | awk '$5==\"Up\"{print $1}')";

/// The adapters as words of the shell. A name that is not plain would be a command of its own, and is left out.
fn chosen(vmnics: &[String]) -> String {
    if vmnics.is_empty() {
        return UP.to_owned();
    }
    let plain: Vec<&str> = vmnics
        .iter()
        .map(String::as_str)
        .filter(|name| is_adapter_name(name))
        .take(MAX_NICS)
        .collect();
    plain.join(" ")
}

/// Answers by the names of their files.
struct Sections<'a> {
    all: BTreeMap<String, &'a str>,
}

impl<'a> Sections<'a> {
    /// A last line without an end may be cut inside of a number: it is left out, with a problem. Statistics have an end that is known, and
    /// documents too.
    fn new(answers: &'a Answers, reading: &mut Reading) -> Self {
        let mut all = BTreeMap::new();
        for (command, text) in answers.iter() {
            let name = file_name(command);
            let has_own_end = [STATS, VSISH_GET, VSISH_CAT, JSON]
                .iter()
                .any(|start| name.starts_with(&file_name(start)));
            let whole = up_to_last_end(text).filter(|whole| !has_own_end && !whole.trim().is_empty());
            if whole.is_some() {
                reading.problem(Reason::Parse, command, CUT);
            }
            all.insert(name, whole.unwrap_or(text));
        }
        Self { all }
    }

    /// The answer to a command.
    fn get(&self, command: &str) -> Option<&'a str> {
        self.all.get(&file_name(command)).copied()
    }

    /// A command and its answer.
    fn with<'c>(&self, command: &'c str) -> Option<(&'c str, &'a str)> {
        Some((command, self.get(command)?))
    }

    /// Adapters that have an answer of their own.
    fn nics(&self) -> BTreeSet<String> {
        let mut nics = BTreeSet::new();
        for (before, after) in PER_NIC {
            let (before, after) = (file_name(before), file_name(after));
            for name in self.all.keys() {
                let nic = name
                    .strip_prefix(&before)
                    .and_then(|rest| rest.strip_suffix(&after));
                nics.extend(nic.filter(|nic| is_adapter_name(nic)).map(str::to_owned));
            }
        }
        nics
    }
}

/// Commands about one adapter: the text before its name, and the text behind it.
const PER_NIC: [(&str, &str); 5] = [
    (STATS, ""),
    (NIC, ""),
    (DCB, ""),
    (VSISH_GET, VSISH_END),
    (VSISH_CAT, VSISH_END),
];
const STATS: &str = "esxcli network nic stats get -n ";
const NIC: &str = "esxcli network nic get -n ";
const DCB: &str = "esxcli network nic dcb status get -n ";
const VSISH_GET: &str = "vsish -e get /net/pNics/";
const VSISH_CAT: &str = "vsish -e cat /net/pNics/";
const VSISH_END: &str = "/stats";
const JSON: &str = "esxcli --formatter=json ";

/// Adds what the answers say.
pub(super) fn read(answers: &Answers, reading: &mut Reading) {
    let sections = Sections::new(answers, reading);
    if let Some((command, text)) = sections.with("esxcli system version get") {
        settings::version(command, text, reading);
    }
    let listed = list(&sections, reading);
    let asked = sections.nics();
    let shown = shown(&listed, &asked);
    let pauses = sections.with("esxcli network nic pauseParams list");
    let pauses = pauses.map_or_else(BTreeMap::new, |(command, text)| {
        settings::pauses(command, text, reading)
    });
    for name in &shown {
        let mut nic = Nic::new(name, reading);
        let found = listed.iter().find(|nic| nic.name == *name);
        if let Some(listed) = found {
            settings::add_listed(listed, &mut nic);
        }
        // Problems name the command, also where a recorded folder has the name of its file.
        let of = |before: &str, after: &str| {
            let command = format!("{before}{name}{after}");
            let text = sections.get(&command)?;
            Some((command, text))
        };
        if let Some((command, text)) = of(STATS, "") {
            statistics::esxcli(&command, text, &mut nic);
        }
        if let Some((command, text)) = of(VSISH_GET, VSISH_END).or_else(|| of(VSISH_CAT, VSISH_END)) {
            statistics::vsish(&command, text, &mut nic);
        }
        if let Some((command, text)) = of(DCB, "") {
            settings::dcb(&command, text, &mut nic);
        }
        let mut pause = pauses.get(name).copied();
        let mut adapter = found.map(ListedNic::adapter).unwrap_or_default();
        if let Some((command, text)) = of(NIC, "") {
            let own = settings::nic(&command, text, &mut adapter, &mut nic);
            pause = pause.or(own);
        }
        if let Some(pause) = pause {
            settings::add_pause(pause, &mut nic);
        }
        adapter.name.clone_from(name);
        reading.adapters.push(adapter);
    }
    if reading
        .adapters
        .iter()
        .any(|adapter| adapter.driver == "nmlx5_core")
        && let Some((command, text)) = sections.with("esxcli system module parameters list -m nmlx5_core")
    {
        settings::module_parameters(command, text, "nmlx5_core", reading);
    }
}

/// The list of adapters, as JSON or as a table.
fn list(sections: &Sections<'_>, reading: &mut Reading) -> Vec<ListedNic> {
    let json = sections.with("esxcli --formatter=json network nic list");
    let listed = json.map(|(command, text)| settings::list_json(command, text, reading));
    if let Some(listed) = listed.filter(|listed| !listed.is_empty()) {
        return listed;
    }
    let table = sections.get("esxcli network nic list");
    table.map_or_else(Vec::new, settings::list_table)
}

/// The adapters that the reading is about: those with answers of their own, and those that are down where all others were read.
///
/// Where an adapter that is up has no answer, the commands were about some adapters alone.
fn shown(listed: &[ListedNic], asked: &BTreeSet<String>) -> BTreeSet<String> {
    let is_whole = asked.is_empty()
        || listed
            .iter()
            .all(|nic| nic.is_up != Some(true) || asked.contains(&nic.name));
    let mut shown = asked.clone();
    if is_whole {
        shown.extend(listed.iter().map(|nic| nic.name.clone()));
    }
    shown
        .into_iter()
        .filter(|name| is_adapter_name(name))
        .take(MAX_NICS)
        .collect()
}

#[cfg(test)]
mod tests;
