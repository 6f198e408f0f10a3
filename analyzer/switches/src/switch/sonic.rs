//! SONiC: counters and settings out of its databases over ssh, and the tables of its command line in recordings.
//!
//! The names of counters are SAI's, so that they do not depend on the switch's chip. SONiC itself reads ports each second and queues
//! each 10 seconds. The forms are those of sonic-utilities: `sonic-db-dump` (redisdl's JSON) and the expected texts of its tests.
//! A chassis with several chips (databases in namespaces) is not read.

mod counters;
mod database;
mod settings;
mod tables;

pub use counters::{SaiStatistic, sai_statistic};
use roce_model::Counter;

use self::database::Database;
use super::answer::{self, object_of};
use super::text::answer_of;
use crate::device::{Answers, Question, Reading};

/// Names of ports, queues and priority groups.
const MAPS: &str = "sonic-db-dump -n COUNTERS_DB -k 'COUNTERS_*_MAP' -y";
/// Counters of ports, queues and priority groups.
const COUNTERS: &str = "sonic-db-dump -n COUNTERS_DB -k 'COUNTERS:oid:*' -y";
/// States of ports.
const PORTS: &str = "sonic-db-dump -n APPL_DB -k 'PORT_TABLE:*' -y";
/// States of port channels.
const AGGREGATES: &str = "sonic-db-dump -n APPL_DB -k 'LAG_TABLE:*' -y";
/// Start of the commands that read settings.
const CONFIG: &str = "sonic-db-dump -n CONFIG_DB";
/// Settings of queues, without those tables that have passwords.
const SETTINGS: [&str; 9] = [
    "sonic-db-dump -n CONFIG_DB -k 'PORT_QOS_MAP|*' -y",
    "sonic-db-dump -n CONFIG_DB -k 'DSCP_TO_TC_MAP|*' -y",
    "sonic-db-dump -n CONFIG_DB -k 'TC_TO_QUEUE_MAP|*' -y",
    "sonic-db-dump -n CONFIG_DB -k 'MAP_PFC_PRIORITY_TO_QUEUE|*' -y",
    "sonic-db-dump -n CONFIG_DB -k 'QUEUE|*' -y",
    "sonic-db-dump -n CONFIG_DB -k 'SCHEDULER|*' -y",
    "sonic-db-dump -n CONFIG_DB -k 'WRED_PROFILE|*' -y",
    WATCHDOG,
    "sonic-db-dump -n CONFIG_DB -k 'PORT|*' -y",
];
/// Settings of PFC's watchdog.
const WATCHDOG: &str = "sonic-db-dump -n CONFIG_DB -k 'PFC_WD|*' -y";
const UPTIME: &str = "cat /proc/uptime";
const VERSION: &str = "show version";
const LLDP: &str = "show lldp table";
const PFC: &str = "show pfc counters";
const PFC_PRIORITIES: &str = "show pfc priority";
const QUEUES: &str = "show queue counters";
const WRED: &str = "show queue wredcounters";
const STORMS: &str = "pfcwd show stats";
const INTERFACES: &str = "show interfaces counters";
const GROUPS: &str = "show priority-group drop counters";
const PEAKS: &str = "show queue watermark unicast";

/// Commands: one script at the start and once an hour, one at each reading.
pub(super) fn questions(_known: &Answers) -> Vec<Question> {
    let mut slow = vec![VERSION, LLDP, MAPS];
    slow.extend(SETTINGS);
    let each = [UPTIME, PORTS, AGGREGATES, COUNTERS];
    vec![
        Question {
            is_slow: true,
            ..Question::script(&answer::script(&slow))
        },
        Question::script(&answer::script(&each)),
    ]
}

/// Adds what the answers say. Tables of the command line are read for the counters that the database did not give.
pub(super) fn read(answers: &Answers, reading: &mut Reading) {
    if let Some(text) = answers.get(VERSION) {
        tables::version(&answer_of(text, VERSION), reading);
    }
    let uptime = answers.get(UPTIME).and_then(answer::uptime);
    if let Some(seconds) = uptime.or_else(|| answers.get(VERSION).and_then(tables::uptime)) {
        reading.push(Counter::SwitchUptime, "", seconds);
    }
    let config = config(answers, reading);
    settings::read(&config, answers.get(WATCHDOG).is_some(), reading);
    for command in [PORTS, AGGREGATES] {
        if let Some(states) = database(answers, command, reading) {
            settings::states(&states, reading);
        }
    }
    if let Some(counted) = database(answers, COUNTERS, reading) {
        match database(answers, MAPS, reading) {
            Some(maps) => counters::read(&maps, &counted, reading),
            None => reading.problem(
                crate::device::Reason::Parse,
                COUNTERS,
                "the names of ports and queues are not known",
            ),
        }
    }
    for (command, read) in [
        (PFC, tables::pfc as fn(&str, &mut Reading) -> bool),
        (PFC_PRIORITIES, tables::pfc_priorities),
        (QUEUES, tables::queues),
        (WRED, tables::queues),
        (STORMS, tables::storms),
        (GROUPS, tables::by_number),
        (PEAKS, tables::by_number),
        (INTERFACES, tables::interfaces),
    ] {
        if let Some(text) = answers.get(command) {
            answer::read_table(text, command, reading, read);
        }
    }
    if let Some(text) = answers.get(LLDP) {
        tables::neighbors(&answer_of(text, LLDP), reading);
    }
}

/// The settings of all tables that were read.
fn config(answers: &Answers, reading: &mut Reading) -> Database {
    let mut all = Database::default();
    for (rest, text) in answers.starting(CONFIG) {
        let command = format!("{CONFIG}{rest}");
        if let Some(object) = object_of(text, &command, reading) {
            all.extend(Database::new(object));
        }
    }
    all
}

fn database(answers: &Answers, command: &str, reading: &mut Reading) -> Option<Database> {
    let text = answers.get(command)?;
    object_of(text, command, reading).map(Database::new)
}

#[cfg(test)]
mod tests;
