//! Settings of a run: the command line over the configuration file over the defaults, and their echo in
//! the results.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::anyhow;
use roce_flow::Options;
use roce_model::{Filter, JobLog, Nanos, Wiring};
use roce_pipeline::{Plan, path_key, span};
use roce_report::JsonFlows;
use roce_verdict::{LoggedStep, ThresholdValue, Thresholds};

use crate::options::arguments::{Analyse, Shape};
use crate::options::config::{Config, ThresholdSetting, WrittenValue};
use crate::options::dcqcn::Reaction;
use crate::options::dscp::DscpMap;
use crate::options::duration::Moment;
use crate::options::fabric;
use crate::options::fail_on::FailOn;
use crate::options::nccl;
use crate::options::processes::ProcessOptions;
use crate::options::rate::Rate;
use crate::options::training::{self, LoggedTimes, Pattern};

/// The name under which the width of a bin is echoed.
const BIN: &str = "bin_ns";
/// More threads do not help: one reads for all of them.
const MAX_THREADS: u32 = 8;

/// Everything that shapes a run but its inputs.
pub(crate) struct RunSettings {
    pub(crate) bin: Nanos,
    /// Nobody said how wide a bin is to be.
    pub(crate) is_bin_free: bool,
    pub(crate) dcqcn: Option<Reaction>,
    pub(crate) dscp_map: DscpMap,
    pub(crate) fail_on: FailOn,
    /// The flows that are shown.
    pub(crate) flow: Option<Filter>,
    /// The rows of flows in JSON.
    pub(crate) json_flows: JsonFlows,
    pub(crate) lag: Vec<Vec<String>>,
    pub(crate) link_rate: Option<Rate>,
    pub(crate) logged: Vec<LoggedTimes>,
    pub(crate) max_flows: usize,
    /// The only packets that are analysed.
    pub(crate) only_flow: Option<Filter>,
    pub(crate) processes: ProcessOptions,
    pub(crate) threads: u32,
    pub(crate) thresholds: Thresholds,
    pub(crate) top: usize,
    /// Cables and addresses of the inventory.
    pub(crate) wiring: Arc<Wiring>,
    /// The job's own log.
    pub(crate) job: Arc<JobLog>,
    /// Messages about the log.
    pub(crate) about_log: Option<nccl::About>,
    /// Everything on the screen, however long it gets.
    pub(crate) full: bool,
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
    pub(crate) fn from_arguments(arguments: &Analyse) -> anyhow::Result<Self> {
        let (config, thresholds) = configuration(&arguments.shape)?;
        let has_file = arguments.shape.config.is_some();
        let shape = arguments.shape.clone().or(config.shape);
        let (log, pattern) = (shape.training_log, shape.training_log_pattern);
        let logged = match &log {
            Some(path) => {
                let pattern = match &pattern {
                    Some(pattern) => pattern.clone(),
                    None => Pattern::built_in().map_err(|error| anyhow!(error))?,
                };
                training::read(path, &pattern)?
            }
            None => Vec::new(),
        };
        let wiring = match &arguments.fabric {
            Some(path) => Arc::new(fabric::read(path)?.wiring()),
            None => Arc::default(),
        };
        let (job, about_log) = nccl::read_job(&arguments.nccl_log)?;
        let mut settings = Self {
            bin: shape.bin.unwrap_or(span::WIDEST),
            is_bin_free: shape.bin.is_none(),
            dcqcn: shape.dcqcn,
            dscp_map: shape.dscp_map.unwrap_or_default(),
            fail_on: shape.fail_on.unwrap_or_default(),
            flow: shape.flow,
            json_flows: shape.json_flows.unwrap_or_default(),
            lag: shape.lag,
            link_rate: shape.link_rate,
            logged,
            max_flows: shape.max_flows.unwrap_or(Options::default().max_flows),
            only_flow: shape.only_flow,
            processes: shape.processes,
            threads: shape.threads.unwrap_or_else(default_threads),
            thresholds,
            top: shape.top.unwrap_or(10),
            wiring,
            job: Arc::new(job),
            about_log,
            full: shape.full,
            config_text: has_file.then_some(config.text),
            echo: Vec::new(),
        };
        settings.echo = settings.said(arguments, log.as_ref(), pattern.as_ref());
        Ok(settings)
    }

    /// Settings for captures: with `fits_bin` the width of a bin follows from them, if no option gives
    /// it.
    ///
    /// # Errors
    /// As above.
    pub(crate) fn from_captures(arguments: &Analyse, fits_bin: bool) -> anyhow::Result<Self> {
        let mut settings = Self::from_arguments(arguments)?;
        if fits_bin && settings.is_bin_free {
            settings.bin = span::bin(&arguments.captures);
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
        plan.settings.shown.clone_from(&self.flow);
        plan.settings.wiring = Arc::clone(&self.wiring);
        plan.settings.job = Arc::clone(&self.job);
        plan.filter.clone_from(&self.only_flow);
        plan.processes = self.processes.processes();
        plan.lags.clone_from(&self.lag);
        plan
    }

    /// Options of the analysis.
    fn options(&self) -> Options {
        Options {
            bin: self.bin,
            max_flows: self.max_flows,
            link_rate: self.link_rate.map(|rate| rate.0),
            dcqcn: self
                .dcqcn
                .as_ref()
                .map_or(Options::default().dcqcn, |reaction| reaction.parameters),
            dcqcn_stated: self.dcqcn.is_some(),
            priority_of_dscp: self.dscp_map.0,
            seed: Options::default().seed,
            measures: false,
        }
    }

    /// The options that shape the results, those that were not given left out but for the bin and the flows.
    fn said(
        &self,
        arguments: &Analyse,
        log: Option<&PathBuf>,
        pattern: Option<&Pattern>,
    ) -> Vec<(String, String)> {
        let mut said = vec![
            (BIN.to_owned(), self.bin.0.to_string()),
            ("max_flows".to_owned(), self.max_flows.to_string()),
        ];
        let mut add = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                said.push((name.to_owned(), value));
            }
        };
        add("flow", self.flow.as_ref().map(ToString::to_string));
        add("only_flow", self.only_flow.as_ref().map(ToString::to_string));
        for (option, value) in self.processes.said() {
            add(option, Some(value));
        }
        for members in &self.lag {
            let members: Vec<String> = members.iter().map(|member| path_key(Path::new(member))).collect();
            add("lag", Some(members.join(",")));
        }
        add("align", arguments.no_align.then(|| "off".to_owned()));
        let moment = |moment: Option<Moment>| moment.map(|moment| moment.to_string());
        add("max_input", arguments.max_input.map(|bytes| bytes.to_string()));
        add("from", moment(arguments.from));
        add("to", moment(arguments.to));
        add("link_rate_bps", self.link_rate.map(|rate| rate.to_string()));
        let map = self.dscp_map.to_string();
        add("dscp_map", (!map.is_empty()).then_some(map));
        add("dcqcn", self.dcqcn.as_ref().map(ToString::to_string));
        add("training_log", log.map(|path| path_key(path)));
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
        ThresholdValue::Time(time) => time.0.to_string(),
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
        (ThresholdValue::Time(_), written) => written
            .time()
            .map(ThresholdValue::Time)
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
