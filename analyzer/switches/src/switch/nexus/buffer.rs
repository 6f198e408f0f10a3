//! `show hardware internal buffer info pkt-stats`: cells of the shared buffer, by the chip's instance and pool group.

use std::borrow::Cow;

use roce_model::Counter;

use super::answer::Body;
use super::json::{count, modules, number, table, text};
use super::sink::{NumberPlace, Sink};

/// Pools, with the end of their keys, in the order of the text's columns. Those of the CPU and of SPAN behind them are left out.
const POOLS: [(&str, &str); 2] = [("drop", "drop_pg"), ("no_drop", "no_drop_pg")];

/// Longest name of an instance, in characters.
const MAX_INSTANCE: usize = 32;

pub(super) fn read(body: &Body, _command: &str, sink: &mut Sink<'_>) -> bool {
    match body {
        Body::Json(documents) => {
            let mut is_known = false;
            for module in documents.iter().flat_map(modules) {
                let number = text(module, &["module"]).or_else(|| text(module, &["module_number"]));
                let number = number.filter(|number| is_number(number));
                for row in table(module, "instance") {
                    is_known = true;
                    let Some(instance) = text(row, &["instance"]).filter(|instance| is_number(instance))
                    else {
                        continue;
                    };
                    let instance = name(number.as_deref(), &instance);
                    for (pool, key) in POOLS {
                        let used = count(row, &[&format!("total_instant_usage_{key}")]);
                        put(&instance, pool, Counter::SwitchBufferCells, used, sink);
                        let peak = count(row, &[&format!("max_cell_usage_{key}")]);
                        put(&instance, pool, Counter::SwitchBufferPeakCells, peak, sink);
                    }
                }
            }
            is_known
        }
        Body::Text(text) => read_text(text, sink),
    }
}

/// True of the number of a module or an instance; `N/A` is none.
fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// The name of an instance: with its module, where the switch has more than the first.
fn name(module: Option<&str>, instance: &str) -> String {
    let name = match module {
        Some(module) if module != "1" => format!("{module}/{instance}"),
        _ => instance.to_owned(),
    };
    name.chars().take(MAX_INSTANCE).collect()
}

fn put(instance: &str, pool: &'static str, counter: Counter, value: Option<u64>, sink: &mut Sink<'_>) {
    let details: [Cow<'static, str>; 2] = [instance.to_owned().into(), pool.into()];
    sink.put(NumberPlace::SWITCH, counter, &details, value);
}

fn read_text(text: &str, sink: &mut Sink<'_>) -> bool {
    let mut is_known = false;
    let mut module: Option<&str> = None;
    let mut instance: Option<String> = None;
    let mut has_peak = false;
    for line in text.lines() {
        let line = line.trim();
        let lower = line.to_ascii_lowercase();
        let words: Vec<&str> = line
            .split(|glyph: char| glyph.is_whitespace() || glyph == ':')
            .collect();
        if lower.starts_with("slot ") || lower.starts_with("module ") {
            module = line.split_whitespace().nth(1).filter(|number| is_number(number));
            instance = None;
        } else if lower.starts_with("instance") {
            is_known = true;
            let number = words.iter().skip(1).find(|word| !word.is_empty());
            instance = number
                .filter(|number| is_number(number))
                .map(|number| name(module, number));
            has_peak = false;
        } else {
            let counter = if lower.starts_with("total instant usage") {
                // The first row of an instance. Behind a peak, it is the next instance's, whose heading is missing.
                if has_peak {
                    instance = None;
                }
                Counter::SwitchBufferCells
            } else if lower.starts_with("peak/max cells used") || lower.starts_with("max cell usage") {
                has_peak = true;
                Counter::SwitchBufferPeakCells
            } else {
                continue;
            };
            let Some(instance) = &instance else {
                continue;
            };
            let is_value = |word: &&str| number(word).is_some() || matches!(*word, "N/A" | "--" | "-");
            let values = words.iter().copied().filter(is_value);
            for ((pool, _), value) in POOLS.iter().zip(values) {
                put(instance, pool, counter, number(value), sink);
            }
        }
    }
    is_known
}
