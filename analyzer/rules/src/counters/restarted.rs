//! The finding that a device restarted between two readings, or that counters began again.

use std::collections::BTreeMap;

use roce_model::{Severity, SystemStart};
use roce_spelling::counted;

use super::growth::Growths;
use super::restart::FallenCounters;
use super::sign::{CounterRule, CounterSign, NO_TEXTS, by};

/// Objects that are named one by one; of more, one finding has the sum.
const MAX_OBJECTS: usize = 4;

pub(super) const RULES: &[CounterRule] = &[CounterRule {
    id: "counters.restarted",
    title: "counters count on between two readings",
    meaning: "The host or switch restarted between the readings, a driver was loaded again, or somebody cleared its counters. A value is then no \
              growth over the time between the readings, and pauses have no share of it.",
    method: "another boot id, a shorter uptime, or a boot time that is 60 s later: restarted; growths are those since then, as notes, and where \
             the uptime is known it is their time. Otherwise: a counter fell and did not wrap. Where half of an object's counters above 0 fell, all of it began \
             again and nothing of it is judged; where fewer fell, they alone are left out",
    source: "Linux Documentation/filesystems/proc.rst (uptime, stat btime, sys/kernel/random/boot_id); Cisco NX-OS clear counters",
    next: "Take both readings behind the restart.",
    severity: Severity::Info,
    run: by(restarted),
    ..NO_TEXTS
}];

fn restarted(growths: &Growths<'_>) -> Vec<CounterSign> {
    let restart = growths.restart();
    let mut objects = restart.by_object();
    if let Some((before, now)) = restart.starts() {
        let all = sum(&objects);
        let text = format!(
            "it restarted between the readings ({}): {}",
            signs(before, now),
            fallen(all)
        );
        // An uptime that is little shorter is that of a restart long after, or of the same start before.
        let is_shorter = before
            .uptime
            .zip(now.uptime)
            .is_some_and(|(before, now)| now < before && now > before / 2.0)
            && before
                .boot_id
                .zip(now.boot_id)
                .is_none_or(|(before, now)| before == now);
        let follows = match restart.seconds() {
            Some(_) if is_shorter => {
                "growths are those since the restart, and nothing is known of the time before it; if it did not restart, the \
                 readings are in the wrong order"
            }
            Some(_) => "growths are those since the restart, and nothing is known of the time before it",
            None => "nothing is known of the time between the readings",
        };
        return vec![sign("", &text, follows, all)];
    }
    objects.retain(|_, group| group.fell > 0);
    let cause = "it restarted, its driver was loaded again, somebody cleared them, or the readings are in the wrong order; what they \
                 counted meanwhile is not known";
    if objects.len() > MAX_OBJECTS {
        let fell = sum(&objects);
        let text = format!(
            "between the readings {}, at {} objects",
            fallen(fell),
            objects.len()
        );
        return vec![sign("", &text, cause, fell)];
    }
    let found = objects.into_iter();
    found
        .map(|(object, group)| {
            let text = format!("between the readings {}", fallen(group));
            sign(object, &text, cause, group)
        })
        .collect()
}

/// Counters of all objects.
fn sum(objects: &BTreeMap<&str, FallenCounters>) -> FallenCounters {
    let mut all = FallenCounters::default();
    for group in objects.values() {
        all.add(*group);
    }
    all
}

fn sign(object: &str, text: &str, follows: &str, group: FallenCounters) -> CounterSign {
    let count = |count: usize| u32::try_from(count).map_or(f64::MAX, f64::from);
    CounterSign::untimed(Severity::Info, object, text)
        .and(follows)
        .number("fallen_counters", count(group.fell))
        .number("counters_above_zero", count(group.all))
}

/// Counters that fell, in words.
fn fallen(group: FallenCounters) -> String {
    match (group.fell, group.all) {
        (_, 0) => "no counter was above 0 before".to_owned(),
        (0, 1) => "the only counter above 0 did not fall".to_owned(),
        (0, all) => format!("none of {all} counters above 0 fell"),
        (1, 1) => "the only counter above 0 fell and began again".to_owned(),
        (fell, all) if fell == all => format!("all {all} counters above 0 fell and began again"),
        (fell, all) => format!("{fell} of {all} counters above 0 fell and began again"),
    }
}

/// The signs of a restart, in words.
fn signs(before: SystemStart, now: SystemStart) -> String {
    let mut all = Vec::new();
    if let Some((before, now)) = before.uptime.zip(now.uptime) {
        let (before, now) = (before.round(), now.round());
        all.push(format!(
            "up {} before, {} now",
            counted(before, "second"),
            counted(now, "second")
        ));
    }
    if before
        .boot_id
        .zip(now.boot_id)
        .is_some_and(|(before, now)| before != now)
    {
        all.push("another boot id".to_owned());
    }
    if let Some((before, now)) = before.boot_time.zip(now.boot_time)
        && now > before
    {
        all.push(format!(
            "its start is {} later",
            counted((now - before).round(), "second")
        ));
    }
    all.join(", ")
}
