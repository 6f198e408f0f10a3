//! The check of what an adapter says about its own link: outputs of `mlxlink` in a text.

use roce_model::Severity;
use serde_json::Value;

use crate::doctor::check::{CERTAIN, Check, CheckResult, CheckRun, Outcome, each};
use crate::doctor::facts::{Facts, is_plain};
use crate::doctor::host::Unknown;
use crate::doctor::link::needs_fec;

pub(crate) const CHECKS: &[Check] = &[Check {
    id: "link.mlxlink",
    title: "adapters report no trouble of their link",
    read: "`mlxlink -d DEVICE -c -m`, as text or with --json: state, speed, width, error correction, bit error ratios, cable, status and recommendation",
    method: "a status other than 0, a link that is not active, wrong bits behind error correction above 1e-12 of all, wrong bits before it above 2.4e-4, \
             no error correction at 25 Gbit/s for each lane and more, or a speed below what adapter and cable both allow: warning",
    meaning: "The firmware of an adapter knows why its link does not come up or has errors. Its status names cable, module, settings or the other end.",
    symptom: "A port stays down, or has errors that the counters of the interface do not explain.",
    alternatives: "link.errors",
    source: "NVIDIA MFT, mlxlink utility; IEEE 802.3: 1e-12 is the bit error ratio of a link (clause 91.1), and 2.4e-4 the one that RS(544,514) corrects \
             (clause 121.1.1)",
    severity: Severity::Warning,
    confidence: "certain; likely where the outcome says so",
    run: CheckRun::new("link", reported),
    ..CERTAIN
}];

/// Wrong bits of all behind error correction, at most.
const MAX_RESIDUAL: f64 = 1e-12;
/// Wrong bits of all before error correction, at most.
const MAX_RAW: f64 = 2.4e-4;

/// Speeds of InfiniBand and NVLink, from the slowest.
const GENERATIONS: [&str; 9] = ["SDR", "DDR", "QDR", "FDR10", "FDR", "EDR", "HDR", "NDR", "XDR"];

/// The fields of one output.
struct ReportedLink {
    fields: Value,
}

impl ReportedLink {
    fn text(&self, key: &str) -> Option<&str> {
        self.fields.get(key)?.as_str()
    }

    /// A number: `15E-255`, which is the least that is shown, and `2`.
    fn number(&self, key: &str) -> Option<f64> {
        self.text(key)?
            .parse()
            .ok()
            .filter(|number: &f64| number.is_finite())
    }

    /// Bits in a second on each lane of an Ethernet link.
    fn bps_of_lane(&self) -> Option<u64> {
        let lanes: u64 = self.text("Width")?.trim_end_matches(['x', 'X']).parse().ok()?;
        let gigabits = gigabits(self.text("Speed")?)?;
        gigabits.checked_mul(1_000_000_000)?.checked_div(lanes)
    }

    /// The highest speed that the adapter has enabled and the cable supports, if the link runs below it.
    fn unused_speed(&self) -> Option<String> {
        let speed = rank(self.text("Speed")?)?;
        let [enabled, cable] = ["Enabled Link Speed", "Supported Cable Speed"].map(|key| {
            let list = self.text(key)?;
            // `0x000017f2 (200G,100G_2X)` of a text, `200G,100G_2X` of a document.
            let list = list
                .split_once('(')
                .map_or(list, |(_, list)| list.trim_end_matches(')'));
            let names = list.split(',').map(str::trim);
            names.filter_map(|name| Some((rank(name)?, name))).max()
        });
        let (most, name) = enabled?.min(cable?);
        // Names of two kinds of links are not compared.
        (most.0 == speed.0 && most.1 > speed.1).then(|| name.to_owned())
    }

    /// Troubles, each with true if it is sure.
    fn problems(&self) -> Vec<(String, bool)> {
        let mut all = Vec::new();
        let status = self.number("Status Opcode").filter(|status| *status != 0.0);
        if let Some(status) = status {
            let why = self.text("Recommendation").unwrap_or("without a recommendation");
            all.push((format!("status {status}, {}", why.trim_end_matches('.')), true));
        }
        if let Some(state) = self.text("State").filter(|state| !is_up(state)) {
            all.push((format!("its state is {state}"), true));
        }
        // Links that retransmit by themselves (PLR) show the ratio behind that as the one of symbols.
        let residual = ["Symbol BER", "Effective Physical BER"]
            .into_iter()
            .find_map(|key| Some((key, self.number(key)?)));
        if let Some((key, ratio)) = residual.filter(|(_, ratio)| *ratio > MAX_RESIDUAL) {
            all.push((
                format!("{key} {ratio:e}: error correction leaves wrong bits"),
                false,
            ));
        }
        if let Some(ratio) = self.number("Raw Physical BER").filter(|ratio| *ratio > MAX_RAW) {
            all.push((
                format!("Raw Physical BER {ratio:e}: more than error correction can mend"),
                false,
            ));
        }
        if let Some(lane) = self.bps_of_lane()
            && needs_fec(lane)
            && self.text("FEC").is_some_and(|fec| fec.starts_with("No"))
        {
            all.push(("no error correction at its speed".to_owned(), true));
        }
        if let Some(most) = self.unused_speed() {
            all.push((format!("adapter and cable both allow {most}"), false));
        }
        all
    }

    /// State, speed, error ratios and cable in words.
    fn shown(&self) -> String {
        let words = |keys: &[&str]| {
            let words: Vec<&str> = keys.iter().filter_map(|key| self.text(key)).collect();
            words.join(" ")
        };
        let mut all = vec![words(&["State"]), words(&["Speed", "Width"]), words(&["FEC"])];
        for (name, key) in [
            ("raw BER", "Raw Physical BER"),
            ("effective BER", "Effective Physical BER"),
            ("symbol BER", "Symbol BER"),
            ("link downs", "Link Down Counter"),
        ] {
            all.extend(self.text(key).map(|value| format!("{name} {value}")));
        }
        all.push(words(&["Cable Type", "Vendor Name", "Vendor Part Number"]));
        all.retain(|part| !part.is_empty());
        all.join(", ")
    }
}

/// True of a state that carries traffic; `Physical LinkUp` is that of InfiniBand before its subnet manager.
fn is_up(state: &str) -> bool {
    ["Active", "Physical LinkUp"].contains(&state)
}

/// Gbit/s of an Ethernet speed: 100 of `100G_2X`, 25 of `25GbE`.
fn gigabits(name: &str) -> Option<u64> {
    let (number, rest) = name.split_once('G')?;
    let is_speed = rest.is_empty() || rest.starts_with(['_', 'b']);
    is_speed.then(|| number.parse().ok()).flatten()
}

/// The kind of a speed, and its place among those of its kind.
fn rank(name: &str) -> Option<(bool, u64)> {
    if let Some(gigabits) = gigabits(name) {
        return Some((true, gigabits));
    }
    let name = name.rsplit('-').next()?;
    let place = GENERATIONS.iter().position(|known| *known == name)?;
    Some((false, u64::try_from(place).ok()?))
}

fn reported(facts: &Facts<'_>) -> Vec<Outcome> {
    let names = facts.host.names("answers").into_iter();
    let names = names
        .filter_map(|file| Some(file.strip_prefix("mlxlink.")?.strip_suffix(".json")?.to_owned()))
        .filter(|name| is_plain(name));
    each(names, Clone::clone, |name| -> CheckResult {
        let path = format!("answers/mlxlink.{name}.json");
        let link = ReportedLink {
            fields: facts.host.json(&path)?,
        };
        let shown = link.shown();
        let problems = link.problems();
        if problems.is_empty() {
            if link.text("State").is_none() {
                return Err(Unknown {
                    source: format!("mlxlink -d {name}"),
                    why: "the text does not have the state of the link".to_owned(),
                });
            }
            return Ok(
                Outcome::ok(name, format!("{name}: the adapter reports no trouble")).seen(&path, shown),
            );
        }
        let texts: Vec<&str> = problems.iter().map(|(text, _)| text.as_str()).collect();
        let outcome = Outcome::warning(name, format!("{name}: {}", texts.join("; "))).seen(&path, shown);
        let is_sure = problems.iter().any(|(_, is_sure)| *is_sure);
        Ok(if is_sure { outcome } else { outcome.likely() })
    })
}
