//! Settings of a run: the command line over the configuration file over the defaults, and their echo in
//! the results.

use std::path::Path;
use std::sync::Arc;

use anyhow::{anyhow, bail};
use roce_flow::Options;
use roce_model::{Expectation, JobLog, Span, Wiring};
use roce_pipeline::{Plan, path_key, span};
use roce_report::JsonFlows;
use roce_verdict::{LoggedStep, ThresholdValue, Thresholds};
use roce_wire::AssignedNumbers;

use crate::options::arguments::{RunOptions, Shape};
use crate::options::config::{Config, ThresholdSetting, WrittenValue};
use crate::options::duration::Moment;
use crate::options::expect;
use crate::options::fabric;
use crate::options::fail_on::FailOn;
use crate::options::merged::MergedDocuments;
use crate::options::nccl;
use crate::options::tap_at;
use crate::options::training::{self, LoggedTimes, Pattern};

/// The name under which the width of a bin is echoed.
const BIN: &str = "bin_ns";
/// More threads do not help: one reads for all of them.
const MAX_THREADS: u32 = 8;

/// Everything that shapes a run but its inputs.
pub(crate) struct RunSettings {
    /// Options of all layers.
    pub(crate) shape: Shape,
    /// Width of a bin, which may follow from the captures.
    pub(crate) bin: Span,
    pub(crate) threads: u32,
    /// Flows in the terminal's table.
    pub(crate) top: usize,
    pub(crate) fail_on: FailOn,
    /// Rows of flows in JSON.
    pub(crate) json_flows: JsonFlows,
    pub(crate) thresholds: Thresholds,
    logged: Vec<LoggedTimes>,
    /// Cables and addresses of the inventory.
    wiring: Arc<Wiring>,
    /// Classes and path MTU that the options expect, else the inventory.
    expectation: Expectation,
    /// The job's own log.
    job: Arc<JobLog>,
    /// Message about that log.
    pub(crate) about_log: Option<nccl::About>,
    /// Captures that could not be looked at for the width of a bin, each with a warning.
    pub(crate) failed_looks: Vec<(String, String)>,
    /// Documents of the job.
    pub(crate) merged: MergedDocuments,
    /// Text of the configuration file, if there is one.
    #[cfg_attr(not(feature = "live"), expect(dead_code, reason = "live runs record it"))]
    pub(crate) config_text: Option<String>,
    /// The options that shape the results: name and value.
    pub(crate) echo: Vec<(String, String)>,
}

impl RunSettings {
    /// Merges all sources of settings; the training log is read here.
    ///
    /// # Errors
    /// When the configuration or the training log cannot be read.
    pub(crate) fn from_arguments(arguments: &RunOptions) -> anyhow::Result<Self> {
        let (config, thresholds) = configuration(&arguments.shape)?;
        let shape = arguments.shape.over(config.shape)?;
        let logged = match &shape.training_log {
            Some(path) => {
                let pattern = match &shape.training_log_pattern {
                    Some(pattern) => pattern.clone(),
                    None => Pattern::built_in().map_err(|error| anyhow!(error))?,
                };
                training::read(path, &pattern)?
            }
            None => Vec::new(),
        };
        let inventory = arguments.fabric.as_deref().map(fabric::read).transpose()?;
        let planned = inventory.as_ref().map(|inventory| inventory.cluster.stated);
        let merged = MergedDocuments::read(&arguments.merge, arguments.max_input)?;
        let logs = [arguments.nccl_log.as_slice(), &merged.logs].concat();
        let (mut job, about_log) = nccl::read_job(&logs)?;
        merged.add_to(&mut job);
        let mut settings = Self {
            bin: shape.bin.unwrap_or(span::WIDEST),
            threads: shape.threads.unwrap_or_else(default_threads),
            top: shape.top.unwrap_or(10),
            fail_on: shape.fail_on.clone().unwrap_or_default(),
            json_flows: shape.json_flows.unwrap_or_default(),
            thresholds,
            logged,
            wiring: Arc::new(inventory.map(|inventory| inventory.wiring()).unwrap_or_default()),
            expectation: expect::all(&shape.expect).over(planned.unwrap_or_default()),
            job: Arc::new(job),
            merged,
            about_log,
            failed_looks: Vec::new(),
            config_text: shape.config.is_some().then_some(config.text),
            shape,
            echo: Vec::new(),
        };
        settings.echo = settings.said(arguments);
        Ok(settings)
    }

    /// Settings for captures: with `fits_bin` the width of a bin follows from them, if no option gives
    /// it.
    ///
    /// # Errors
    /// As above.
    pub(crate) fn from_captures(arguments: &RunOptions, fits_bin: bool) -> anyhow::Result<Self> {
        let mut settings = Self::from_arguments(arguments)?;
        if settings.shape.tap_at.is_some() && arguments.captures.len() > 1 {
            bail!(
                "--tap-at says where the only capture was made; the places of several are found from the packets that they share"
            );
        }
        if fits_bin && settings.shape.bin.is_none() {
            settings.bin = span::bin(&arguments.captures, &mut |path, text| {
                settings
                    .failed_looks
                    .push((path.display().to_string(), text.to_owned()));
            });
            let said = settings.echo.iter_mut().find(|(name, _)| name == BIN);
            if let Some((_, value)) = said {
                *value = settings.bin.0.to_string();
            }
        }
        Ok(settings)
    }

    /// Plan for the frames of one input.
    pub(crate) fn plan(&self) -> Plan {
        let options = self.options();
        let mut plan = Plan::new(options);
        plan.threads = self.threads;
        plan.settings.training_log = self.logged.iter().copied().map(LoggedStep::from).collect();
        plan.settings.thresholds = self.thresholds.clone();
        plan.settings.shown.clone_from(&self.shape.flow);
        plan.settings.wiring = Arc::clone(&self.wiring);
        plan.settings.expectation = self.expectation;
        plan.settings.sampled = self.shape.sampled;
        plan.settings.job = Arc::clone(&self.job);
        plan.filter.clone_from(&self.shape.only_flow);
        plan.processes = self.shape.processes.processes();
        plan.lags.clone_from(&self.shape.lag);
        let default = AssignedNumbers::default();
        plan.assigned = AssignedNumbers {
            mrc_port: self.shape.mrc_port.unwrap_or(default.mrc_port),
            csig: self.shape.csig_type.map_or(default.csig, |types| types.compact),
            wide_csig: self.shape.csig_type.and_then(|types| types.wide),
        };
        plan
    }

    /// Plan for the stream of devices. Its hashes begin with `seed`; metrics need more measures.
    #[cfg(feature = "live")]
    pub(crate) fn live_plan(&self, seed: u64, has_metrics: bool) -> Plan {
        let mut plan = self.plan();
        plan.options.seed = seed;
        (plan.options.measures, plan.settings.steps_in_snapshots) = (has_metrics, has_metrics);
        plan
    }

    /// Options of the analysis.
    fn options(&self) -> Options {
        let shape = &self.shape;
        let default = Options::default();
        Options {
            bin: self.bin,
            max_flows: shape.max_flows.unwrap_or(default.max_flows),
            link_rate: shape.link_rate.map(|rate| rate.0),
            tap_at: shape.tap_at,
            dcqcn: shape
                .dcqcn
                .as_ref()
                .map_or(default.dcqcn, |reaction| reaction.parameters),
            dcqcn_stated: shape.dcqcn.is_some(),
            priority_of_dscp: shape.dscp_map.unwrap_or_default().0,
            seed: default.seed,
            measures: false,
        }
    }

    /// The options that shape the results, those that were not given left out but for the bin and the flows.
    fn said(&self, arguments: &RunOptions) -> Vec<(String, String)> {
        let shape = &self.shape;
        let max_flows = self.options().max_flows;
        let mut said = vec![
            (BIN.to_owned(), self.bin.0.to_string()),
            ("max_flows".to_owned(), max_flows.to_string()),
        ];
        let mut add = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                said.push((name.to_owned(), value));
            }
        };
        add("flow", shape.flow.as_ref().map(ToString::to_string));
        add("only_flow", shape.only_flow.as_ref().map(ToString::to_string));
        for (option, value) in shape.processes.said() {
            add(option, Some(value));
        }
        for members in &shape.lag {
            let members: Vec<String> = members.iter().map(|member| path_key(Path::new(member))).collect();
            add("lag", Some(members.join(",")));
        }
        add("align", arguments.no_align.then(|| "off".to_owned()));
        let moment = |moment: Option<Moment>| moment.map(|moment| moment.to_string());
        add("max_input", arguments.max_input.map(|bytes| bytes.to_string()));
        add("from", moment(arguments.from));
        add("to", moment(arguments.to));
        add("tap_at", shape.tap_at.map(tap_at::text));
        add("sampled", shape.sampled.map(|thinning| thinning.to_string()));
        add("mrc_port", shape.mrc_port.map(|port| port.to_string()));
        add("csig_type", shape.csig_type.map(|types| types.to_string()));
        add("link_rate_bps", shape.link_rate.map(|rate| rate.to_string()));
        let map = shape.dscp_map.unwrap_or_default().to_string();
        add("dscp_map", (!map.is_empty()).then_some(map));
        add(
            "expect",
            (!self.expectation.is_empty()).then(|| self.expectation.to_string()),
        );
        add("dcqcn", shape.dcqcn.as_ref().map(ToString::to_string));
        add("training_log", shape.training_log.as_deref().map(path_key));
        let pattern = shape.training_log_pattern.as_ref();
        add(
            "training_log_pattern",
            pattern.map(|pattern| pattern.as_str().to_owned()),
        );
        add("fabric", arguments.fabric.as_deref().map(path_key));
        let logs: Vec<String> = arguments.nccl_log.iter().map(|path| path_key(path)).collect();
        add("nccl_log", (!logs.is_empty()).then(|| logs.join(",")));
        for file in &arguments.merge {
            add("merge", Some(path_key(Path::new(file))));
        }
        add("config", arguments.shape.config.as_deref().map(path_key));
        for threshold in Thresholds::ALL {
            let value = threshold.get(&self.thresholds);
            let name = format!("threshold.{}", threshold.name);
            add(&name, (value != threshold.default).then(|| plain(value)));
        }
        each_once(said)
    }
}

/// Options as a document can hold them: each name once, the values of repeated ones joined by "; ".
pub(crate) fn each_once(options: Vec<(String, String)>) -> Vec<(String, String)> {
    let mut joined: Vec<(String, String)> = Vec::new();
    for (name, value) in options {
        match joined.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => {
                values.push_str("; ");
                values.push_str(&value);
            }
            None => joined.push((name, value)),
        }
    }
    joined
}

/// A threshold's value as a number; times in ns.
fn plain(value: ThresholdValue) -> String {
    match value {
        ThresholdValue::Span(time) => time.0.to_string(),
        ThresholdValue::Count(_) | ThresholdValue::Number(_) => value.to_string(),
    }
}

/// The configuration of a run, from its file or its recording, and the thresholds with its changes.
///
/// # Errors
/// When it cannot be read, or says what cannot be.
pub(crate) fn configuration(shape: &Shape) -> anyhow::Result<(Config, Thresholds)> {
    let names = threshold_names();
    match (&shape.config, &shape.recorded_config) {
        (Some(path), _) => with_thresholds(Config::read(path, &names)?),
        (None, Some(text)) => with_thresholds(Config::recorded(text, &names)?),
        (None, None) => Ok((Config::default(), Thresholds::default())),
    }
}

/// Names of the thresholds that a configuration can set.
pub(crate) fn threshold_names() -> Vec<&'static str> {
    Thresholds::ALL.iter().map(|threshold| threshold.name).collect()
}

/// A configuration, and the thresholds with its changes.
///
/// # Errors
/// When a threshold cannot have its value.
pub(crate) fn with_thresholds(config: Config) -> anyhow::Result<(Config, Thresholds)> {
    let mut thresholds = Thresholds::default();
    for setting in &config.thresholds {
        set(&mut thresholds, setting).map_err(|error| anyhow!("{}: {error}", setting.place))?;
    }
    Ok((config, thresholds))
}

fn set(thresholds: &mut Thresholds, setting: &ThresholdSetting) -> Result<(), String> {
    let ThresholdSetting { name, value, .. } = setting;
    let threshold = Thresholds::named(name).map_err(|error| error.to_string())?;
    let value = match (threshold.default, value) {
        (ThresholdValue::Span(_), written) => written
            .time()
            .map(ThresholdValue::Span)
            .ok_or_else(|| format!("'{name}' is a length of time such as \"5ms\""))?,
        (_, WrittenValue::Whole(number)) => ThresholdValue::Count(*number),
        (_, WrittenValue::Decimal(number)) => ThresholdValue::Number(*number),
        (_, WrittenValue::Text(_)) => return Err(format!("'{name}' is a number")),
    };
    threshold
        .set(thresholds, value)
        .map_err(|error| error.to_string())
}

fn default_threads() -> u32 {
    let processors = std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1));
    processors.min(MAX_THREADS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_option_has_one_name() {
        let pair = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let repeated = [("lag", "a,b"), ("bin", "1ms"), ("lag", "c,d")]
            .map(pair)
            .to_vec();
        let joined = [("lag", "a,b; c,d"), ("bin", "1ms")].map(pair).to_vec();
        assert_eq!(each_once(repeated), joined);
    }
}
