//! The inventory of a fleet: hosts with their addresses, racks, jobs and ranks, from a CSV file, as a view for an SQL engine.
//!
//! The values become literals in SQL of two dialects, so they have to be of letters, digits and `._:@/+-`: nothing needs quoting then.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, bail, ensure};

/// Longest inventory that is read.
const MAX_BYTES: u64 = 16 << 20;
/// Most rows of an inventory.
const MAX_ROWS: usize = 100_000;
/// Longest value.
const MAX_VALUE: usize = 256;
/// Columns that are read; others are ignored.
const COLUMNS: [&str; 5] = ["host", "address", "rack", "job", "rank"];

/// An address of a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in super::super) struct Host {
    name: String,
    address: String,
    rack: Option<String>,
    job: Option<String>,
    rank: Option<u32>,
}

/// Reads an inventory.
///
/// # Errors
/// If it cannot be read, has no columns `host` and `address`, or a value that cannot stand in SQL.
pub(super) fn read(path: &Path) -> anyhow::Result<Vec<Host>> {
    let text = roce_files::read_text(path, MAX_BYTES)?;
    parse(&text).with_context(|| path.display().to_string())
}

/// Reads the text of an inventory.
fn parse(text: &str) -> anyhow::Result<Vec<Host>> {
    let mut lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let (_, header) = lines
        .next()
        .context("it has no header: host,address,rack,job,rank")?;
    let names: Vec<&str> = header.split(',').map(str::trim).collect();
    let places = COLUMNS.map(|column| names.iter().position(|name| *name == column));
    let [Some(_), Some(_), ..] = places else {
        bail!("its first line must name the columns host and address; rack, job and rank may follow");
    };
    let mut hosts = Vec::new();
    let mut seen = HashSet::new();
    for (number, line) in lines {
        let at = || format!("line {}", number + 1);
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        ensure!(
            cells.len() == names.len(),
            "{}: expected {} values",
            at(),
            names.len()
        );
        let [host, address, rack, job, number_in_job] = places.map(|place| {
            let cell = place
                .and_then(|place| cells.get(place))
                .copied()
                .unwrap_or_default();
            (!cell.is_empty()).then(|| cell.to_owned())
        });
        let (Some(host), Some(address)) = (host, address) else {
            bail!("{}: a host needs a name and an address", at());
        };
        for value in [Some(&host), Some(&address), rack.as_ref(), job.as_ref()]
            .into_iter()
            .flatten()
        {
            ensure!(
                is_plain(value),
                "{}: a value has other characters than letters, digits and ._:@/+-, or is too long",
                at()
            );
        }
        let place = match number_in_job.as_deref().map(str::parse::<u32>) {
            None => None,
            Some(Ok(place)) if i32::try_from(place).is_ok() => Some(place),
            Some(_) => bail!("{}: a rank is a number", at()),
        };
        ensure!(
            seen.insert(address.clone()),
            "{}: the address is there twice",
            at()
        );
        ensure!(hosts.len() < MAX_ROWS, "it has more than {MAX_ROWS} rows");
        hosts.push(Host {
            name: host,
            address,
            rack,
            job,
            rank: place,
        });
    }
    Ok(hosts)
}

/// True if a value can stand between quotes in every dialect of SQL.
fn is_plain(value: &str) -> bool {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "._:@/+-".contains(letter);
    value.len() <= MAX_VALUE && value.chars().all(allowed)
}

/// The view `hosts`. Without an inventory it has the addresses at which captures were taken.
pub(super) fn view(hosts: &[Host]) -> String {
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

    #[test]
    fn an_inventory_is_read() {
        let hosts =
            parse("host,address,rack,job,rank\nh1,10.0.0.1,r1,train,0\n\n# a rail\nh1,fd00::1,,,\n").unwrap();
        assert_eq!(hosts.len(), 2);
        assert_eq!(hosts[0].rank, Some(0));
        assert_eq!((hosts[1].rack.as_deref(), hosts[1].rank), (None, None));
        let view = view(&hosts);
        assert!(view.contains("('h1', '10.0.0.1', 'r1', 'train', 0)"), "{view}");
        assert!(
            view.contains("('h1', 'fd00::1', CAST(NULL AS STRING), CAST(NULL AS STRING), CAST(NULL AS INT))"),
            "{view}"
        );
        // Columns in another order, and one that is not known.
        let hosts = parse("rack,zone,address,host\nr9,z,10.0.0.2,h2\n").unwrap();
        assert_eq!(
            (hosts[0].name.as_str(), hosts[0].rack.as_deref()),
            ("h2", Some("r9"))
        );
    }

    #[test]
    fn what_cannot_stand_in_sql_is_refused() {
        for (text, says) in [
            ("", "no header"),
            ("name,address\n", "must name the columns"),
            ("host,address\nh1\n", "line 2: expected 2 values"),
            ("host,address\nh1,\n", "line 2: a host needs"),
            (
                "host,address\nh1') --,10.0.0.1\n",
                "line 2: a value has other characters",
            ),
            ("host,address\nh1\\,10.0.0.1\n", "other characters"),
            ("host,address,rank\nh1,10.0.0.1,x\n", "a rank is a number"),
            (
                "host,address\nh1,10.0.0.1\nh2,10.0.0.1\n",
                "line 3: the address is there twice",
            ),
        ] {
            let error = format!("{:#}", parse(text).unwrap_err());
            assert!(error.contains(says), "{text:?}: {error}");
        }
    }
}
