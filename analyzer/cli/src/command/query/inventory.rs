//! The hosts of an inventory with their addresses, racks, jobs and ranks, as a view for an SQL engine.
//!
//! The values become literals in SQL of two dialects, so they have to be of letters, digits and `._:@/+-`: nothing needs quoting then.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::Path;

use anyhow::{Context as _, ensure};
use roce_switches::inventory::Inventory;

use crate::options::fabric;

/// Addresses of all hosts, at most.
const MAX_ROWS: usize = 100_000;
/// Longest value.
const MAX_VALUE: usize = 256;

/// An address of a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct HostAddress {
    name: String,
    address: String,
    rack: Option<String>,
    job: Option<String>,
    rank: Option<u32>,
}

/// Reads the hosts of an inventory.
///
/// # Errors
/// If it cannot be read, two hosts have one address, or a value cannot stand in SQL.
pub(super) fn read(path: &Path) -> anyhow::Result<Vec<HostAddress>> {
    rows(&fabric::read(path)?).with_context(|| path.display().to_string())
}

/// The addresses of an inventory's hosts.
fn rows(inventory: &Inventory) -> anyhow::Result<Vec<HostAddress>> {
    let mut rows = Vec::new();
    let mut seen = HashSet::new();
    for host in &inventory.hosts {
        let at = || format!("host '{}'", host.name);
        for value in [Some(&host.name), host.rack.as_ref(), host.job.as_ref()]
            .into_iter()
            .flatten()
        {
            ensure!(
                is_plain(value),
                "{}: a value has other characters than letters, digits and ._:@/+-, or is too long",
                at()
            );
        }
        for (interface, address) in &host.addresses {
            // As captures write it.
            let address: IpAddr = address.parse().with_context(at)?;
            let rank = host.rank_of(interface);
            ensure!(
                rank.is_none_or(|rank| i32::try_from(rank).is_ok()),
                "{}: the rank of {interface} is too large",
                at()
            );
            ensure!(seen.insert(address), "{}: {address} is there twice", at());
            ensure!(rows.len() < MAX_ROWS, "it has more than {MAX_ROWS} addresses");
            rows.push(HostAddress {
                name: host.name.clone(),
                address: address.to_string(),
                rack: host.rack.clone(),
                job: host.job.clone(),
                rank,
            });
        }
    }
    Ok(rows)
}

/// True if a value can stand between quotes in every dialect of SQL.
fn is_plain(value: &str) -> bool {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "._:@/+-".contains(letter);
    value.len() <= MAX_VALUE && value.chars().all(allowed)
}

/// The view `hosts`. Without an inventory it has the addresses at which captures were taken.
pub(super) fn view(hosts: &[HostAddress]) -> String {
    if hosts.is_empty() {
        return "CREATE OR REPLACE TEMP VIEW hosts AS\n\
            SELECT min(host) AS host, address, CAST(NULL AS STRING) AS rack, CAST(NULL AS STRING) AS job, CAST(NULL AS INT) AS job_rank\n\
            FROM vantages WHERE vantage = 'near' GROUP BY address;\n"
            .to_owned();
    }
    let text = |value: Option<&String>| {
        value.map_or_else(|| "CAST(NULL AS STRING)".to_owned(), |value| format!("'{value}'"))
    };
    let mut view = "CREATE OR REPLACE TEMP VIEW hosts AS\nSELECT * FROM (VALUES\n".to_owned();
    for (place, row) in hosts.iter().enumerate() {
        let comma = if place == 0 { ' ' } else { ',' };
        let rank = row
            .rank
            .map_or_else(|| "CAST(NULL AS INT)".to_owned(), |rank| rank.to_string());
        let _ = writeln!(
            view,
            "  {comma}({}, {}, {}, {}, {rank})",
            text(Some(&row.name)),
            text(Some(&row.address)),
            text(row.rack.as_ref()),
            text(row.job.as_ref()),
        );
    }
    view + ") AS inventory(host, address, rack, job, job_rank);\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> anyhow::Result<Vec<HostAddress>> {
        rows(&Inventory::parse(text)?)
    }

    #[test]
    fn hosts_of_an_inventory_are_rows_of_a_view() {
        let hosts = parse(
            "[[host]]\nname = \"h1\"\nrack = \"r1\"\njob = \"train\"\naddresses = { eth0 = \"10.0.0.1\", eth1 = \"FD00::1\" }\n\
             rank = { eth0 = 0 }\n[[host]]\nname = \"h2\"\nrank = 7\naddresses = { eth0 = \"10.0.0.2\" }\n[[host]]\nname = \"h3\"\n",
        )
        .unwrap();
        assert_eq!(hosts.len(), 3, "h3 has no address");
        assert_eq!((hosts[2].rack.as_deref(), hosts[2].rank), (None, Some(7)));
        let view = view(&hosts);
        assert!(view.contains("('h1', '10.0.0.1', 'r1', 'train', 0)"), "{view}");
        assert!(
            view.contains("('h1', 'fd00::1', 'r1', 'train', CAST(NULL AS INT))"),
            "{view}"
        );
        assert!(
            view.contains("('h2', '10.0.0.2', CAST(NULL AS STRING), CAST(NULL AS STRING), 7)"),
            "{view}"
        );
    }

    #[test]
    fn what_cannot_stand_in_sql_is_refused() {
        let host = |more: &str| format!("[[host]]\nname = \"h1\"\n{more}\n");
        for (text, says) in [
            (
                host("rack = \"r1') --\""),
                "host 'h1': a value has other characters",
            ),
            (host("job = \"a\\\\b\""), "other characters"),
            (
                host("rank = 3000000000\naddresses = { eth0 = \"10.0.0.1\" }"),
                "too large",
            ),
            (host("rank = \"x\""), "a rank is a whole number"),
            (host("rank = { eth0 = 1 }"), "the rank of eth0 needs its address"),
            (
                host("addresses = { eth0 = \"10.0.0.1\", eth1 = \"10.0.0.1\" }"),
                "10.0.0.1 is there twice",
            ),
        ] {
            let error = format!("{:#}", parse(&text).unwrap_err());
            assert!(error.contains(says), "{text:?}: {error}");
        }
    }
}
