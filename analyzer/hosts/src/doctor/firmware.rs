//! Checks of firmware: versions and settings.

use std::collections::BTreeMap;

use roce_model::Severity;

use crate::doctor::check::{CERTAIN, Check, CheckRun, Outcome, each};
use crate::doctor::facts::{Facts, RdmaDevice};
use crate::doctor::host::Unknown;

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "firmware.same",
        title: "equal boards have equal firmware",
        read: "fw_ver and board_id of the RDMA devices",
        method: "two versions on one kind of board: warning",
        meaning: "Equal adapters with different firmware behave differently under congestion.",
        symptom: "One of several equal hosts is slower.",
        alternatives: "firmware.settings",
        source: "Linux Documentation/ABI/stable/sysfs-class-infiniband",
        severity: Severity::Warning,
        run: CheckRun::new("firmware", same),
        ..CERTAIN
    },
    Check {
        id: "firmware.least",
        title: "firmware is new enough",
        read: "fw_ver; the versions of --expect-firmware",
        method: "older than stated: warning; this program knows no version of its own",
        meaning: "Faults of firmware are mended by versions that the site knows.",
        symptom: "Depends on the fault.",
        alternatives: "firmware.same",
        source: "the site's own list",
        severity: Severity::Warning,
        run: CheckRun::new("firmware", least),
        ..CERTAIN
    },
    Check {
        id: "firmware.settings",
        title: "settings of the firmware are equal",
        read: "mstconfig -d ADDRESS -e query (as root, where the program is there)",
        method: "a setting differs between adapters of one kind, or its next value from its current one: warning",
        meaning: "Settings such as MAX_ACC_OUT_READ and PCI_WR_ORDERING cost a multiple of the throughput. Advice about their values contradicts itself, so adapters are compared with each other.",
        symptom: "53 instead of 194 GB/s at equal firmware versions.",
        alternatives: "pcie.read_request",
        source: "mstflint, mstconfig(1)",
        severity: Severity::Warning,
        run: CheckRun::new("firmware", settings),
        ..CERTAIN
    },
    Check {
        id: "firmware.hidden",
        title: "advanced settings are visible",
        read: "as firmware.settings",
        method: "MAX_ACC_OUT_READ is absent because ADVANCED_PCI_SETTINGS is off: information",
        meaning: "An absent setting is not an unsupported one.",
        symptom: "mstconfig does not show MAX_ACC_OUT_READ on some adapters.",
        source: "mstflint, mstconfig(1)",
        severity: Severity::Info,
        run: CheckRun::new("firmware", hidden),
        ..CERTAIN
    },
];

fn same(facts: &Facts<'_>) -> Vec<Outcome> {
    // A text has versions without PCI addresses, and without boards.
    let has_version = |device: &&RdmaDevice| {
        let is_known = || facts.host.has(&format!("{}/fw_ver", device.path));
        device.pci.is_some() || facts.host.is_partial && is_known()
    };
    each(
        facts.devices.iter().filter(has_version),
        |device| device.name.clone(),
        |device| {
            let path = format!("{}/fw_ver", device.path);
            let version = facts.host.need(&path)?;
            let driver = device.driver.as_deref().filter(|_| facts.host.is_partial);
            let driver = driver.map_or_else(String::new, |driver| format!(", driver {driver}"));
            let board = format!("{}/board_id", device.path);
            if facts.host.is_partial && !facts.host.has(&board) {
                let said = format!(
                    "{}: firmware {version}{driver}; its board is not known",
                    device.name
                );
                return Ok(Outcome::info(&device.name, said).seen(&path, version));
            }
            facts.host.need(&board)?;
            let mut versions = Vec::new();
            for other in facts.devices.iter().filter(|other| other.board == device.board) {
                versions.push(facts.host.need(&format!("{}/fw_ver", other.path))?);
            }
            versions.sort();
            versions.dedup();
            let name = &device.name;
            let board = device.board.as_deref().unwrap_or_default();
            Ok(if versions.len() > 1 {
                Outcome::warning(
                    name,
                    format!(
                        "{name}: firmware {version}; boards {board} have {}",
                        versions.join(", ")
                    ),
                )
                .expected("one version on equal boards")
                .fix(burn(device))
            } else {
                Outcome::ok(name, format!("{name}: firmware {version}{driver}"))
            }
            .seen(&path, version))
        },
    )
}

/// The command that writes another firmware to a device.
fn burn(device: &RdmaDevice) -> String {
    let address = device.pci.as_deref().unwrap_or("ADDRESS");
    format!("mstflint -d {address} -i IMAGE burn")
}

/// A version's numbers.
fn numbers(version: &str) -> Vec<u64> {
    version.split('.').map_while(|part| part.parse().ok()).collect()
}

fn least(facts: &Facts<'_>) -> Vec<Outcome> {
    let wanted = |device: &RdmaDevice| {
        let board = device.board.as_ref()?;
        let mut all = facts.plan.firmware.iter();
        all.find(|(other, _)| other == board)
            .map(|(_, version)| version.clone())
    };
    let stated = facts
        .devices
        .iter()
        .filter_map(|device| Some((device, wanted(device)?)));
    each(
        stated,
        |(device, _)| device.name.clone(),
        |(device, wanted)| {
            let path = format!("{}/fw_ver", device.path);
            let version = facts.host.need(&path)?;
            let name = &device.name;
            Ok(if numbers(&version) < numbers(wanted) {
                Outcome::warning(name, format!("{name}: firmware {version} is older than {wanted}"))
                    .expected(format!("{wanted} or later"))
                    .fix(burn(device))
            } else {
                Outcome::ok(name, format!("{name}: firmware {version}"))
            }
            .seen(&path, version))
        },
    )
}

/// A setting: its current value and that after the next boot.
#[derive(Clone, PartialEq, Eq, Debug)]
struct FirmwareSetting {
    current: Option<String>,
    next: String,
}

/// The number in `NAME(number)`, else the text.
fn plain(value: &str) -> String {
    let number = value.strip_suffix(')').and_then(|value| value.rsplit_once('('));
    number.map_or(value, |(_, number)| number).to_owned()
}

/// The settings in the text of `mstconfig query`, by their names.
fn mstconfig(text: &str) -> BTreeMap<String, FirmwareSetting> {
    let mut lines = text
        .lines()
        .skip_while(|line| !line.trim_start().starts_with("Configurations:"));
    let columns = lines
        .next()
        .map_or(1, |head| if head.contains("Current") { 3 } else { 1 });
    let mut all = BTreeMap::new();
    for line in lines {
        let words: Vec<&str> = line
            .trim_start()
            .trim_start_matches('*')
            .split_whitespace()
            .collect();
        if words.len() != columns + 1
            || !words[0]
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            continue;
        }
        let setting = FirmwareSetting {
            current: (columns == 3).then(|| plain(words[2])),
            next: plain(words[columns]),
        };
        all.insert(words[0].to_owned(), setting);
    }
    all
}

type Settings = (String, BTreeMap<String, FirmwareSetting>);

fn settings_of(facts: &Facts<'_>, device: &RdmaDevice) -> Result<Settings, Unknown> {
    let pci = device.pci.clone().unwrap_or_default();
    let path = format!("answers/mstconfig.{pci}.txt");
    let text = facts.host.need(&path).map_err(|mut unknown| {
        if unknown.why == "not there" {
            "mstconfig was not run: it needs root and the package mstflint".clone_into(&mut unknown.why);
        }
        unknown
    })?;
    let all = mstconfig(&text);
    if all.is_empty() {
        return Err(Unknown {
            source: format!("mstconfig {pci}"),
            why: "its text is not understood".to_owned(),
        });
    }
    Ok((path, all))
}

/// Physical functions of NVIDIA's adapters.
fn settable<'a>(facts: &'a Facts<'_>) -> impl Iterator<Item = &'a RdmaDevice> {
    facts.devices.iter().filter(|device| {
        device.pci.is_some() && !device.is_virtual && device.driver.as_deref() == Some("mlx5_core")
    })
}

/// Settings that are meant to differ between adapters, or between ports of one.
const OWN: [&str; 3] = ["NUM_OF_VFS", "SRIOV_EN", "LINK_TYPE"];

fn settings(facts: &Facts<'_>) -> Vec<Outcome> {
    each(
        settable(facts),
        |device| device.name.clone(),
        |device| {
            let (path, own) = settings_of(facts, device)?;
            let name = &device.name;
            let waiting: Vec<&str> = own
                .iter()
                .filter(|(_, setting)| {
                    setting
                        .current
                        .as_ref()
                        .is_some_and(|current| *current != setting.next)
                })
                .map(|(name, _)| name.as_str())
                .collect();
            let mut differ: Vec<String> = Vec::new();
            let alike = settable(facts).filter(|other| {
                other.name != device.name && other.board.is_some() && other.board == device.board
            });
            for other in alike {
                // A twin that cannot be read is not known to be equal.
                let (_, theirs) = settings_of(facts, other)?;
                for (setting, value) in &own {
                    let now = value.current.as_ref().unwrap_or(&value.next);
                    let there = theirs
                        .get(setting)
                        .map(|value| value.current.as_ref().unwrap_or(&value.next));
                    if let Some(there) = there.filter(|there| *there != now)
                        && !OWN.iter().any(|name| setting.starts_with(name))
                    {
                        differ.push(format!("{setting} {now}, on {} {there}", other.name));
                    }
                }
            }
            differ.sort();
            differ.dedup();
            Ok(if !differ.is_empty() {
                Outcome::warning(name, format!("{name}: settings differ: {}", differ.join("; ")))
                    .seen(&path, differ.join("; "))
                    .expected("equal settings on equal adapters")
                    .advice("which value is right is the site's decision; mstconfig sets it, and a cold reset makes it current")
            } else if !waiting.is_empty() {
                Outcome::warning(
                    name,
                    format!("{name}: settings wait for a reboot: {}", waiting.join(", ")),
                )
                .seen(&path, waiting.join(", "))
                .expected("current and next value are equal")
                .advice("a reboot, or mstfwreset")
            } else {
                Outcome::ok(
                    name,
                    format!("{name}: {} settings, none waits for a reboot", own.len()),
                )
                .seen(&path, format!("{} settings", own.len()))
            })
        },
    )
}

fn hidden(facts: &Facts<'_>) -> Vec<Outcome> {
    let mut all = Vec::new();
    for device in settable(facts) {
        let Ok((path, own)) = settings_of(facts, device) else {
            continue;
        };
        let is_off = own
            .get("ADVANCED_PCI_SETTINGS")
            .is_some_and(|setting| setting.current.as_ref().unwrap_or(&setting.next) == "0");
        if is_off && !own.contains_key("MAX_ACC_OUT_READ") {
            all.push(
                Outcome::info(
                    &device.name,
                    format!(
                        "{}: MAX_ACC_OUT_READ is hidden, because ADVANCED_PCI_SETTINGS is off",
                        device.name
                    ),
                )
                .seen(&path, "ADVANCED_PCI_SETTINGS 0"),
            );
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_come_in_one_or_three_columns() {
        let three = "\
Configurations:                                      Default         Current         Next Boot
        SRIOV_EN                                    False(0)        True(1)         True(1)
*       MAX_ACC_OUT_READ                            0               0               128
The '*' shows parameters with next value different from default/current value.
";
        let all = mstconfig(three);
        assert_eq!(all.len(), 2);
        assert_eq!(
            all["MAX_ACC_OUT_READ"],
            FirmwareSetting {
                current: Some("0".into()),
                next: "128".into()
            }
        );
        assert_eq!(all["SRIOV_EN"].current.as_deref(), Some("1"));
        let one = "Configurations:                              Next Boot\n        CNP_DSCP_P1      48\n";
        assert_eq!(
            mstconfig(one)["CNP_DSCP_P1"],
            FirmwareSetting {
                current: None,
                next: "48".into()
            }
        );
        assert!(mstconfig("").is_empty() && mstconfig("Configurations:\n*\n* *\n").is_empty());
    }

    #[test]
    fn versions_are_compared_by_numbers() {
        assert!(numbers("22.9.1000") < numbers("22.39"));
        assert!(numbers("22.39.1002") >= numbers("22.39"));
    }
}
