//! `live`: captures from devices and analyses while it goes on.
//!
//! The main thread opens the devices, gives up its rights (`confinement`) and then only waits for signals and timers, which tokio
//! carries. The analysis runs on its own thread, as for files; between it and the devices' threads is one bounded queue (`roce_capture::live`).

mod bounds;
mod fabric;
#[cfg(feature = "object-store")]
mod fleet;
mod help;
mod host;
mod metrics;
mod parts;
mod recording;
mod sniffers;
mod watched;

use std::hash::{BuildHasher, RandomState};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use crossbeam_channel::{Receiver, bounded};
use roce_capture::live::{Counters, Device, Options, Stop, Stream};
use roce_files::{Access, Directory, FilePlace};
use roce_model::{RecordingStart, RunKey, Sink, Span};
use roce_pipeline::packet_files::{About, PacketFiles, Rotate};
use roce_pipeline::{LiveFeed, LiveRequest, RunStart, Tick};
use roce_report::{HtmlReport, JsonReport, LiveReport, TraceForm};

use crate::command::confinement::Confinement;
use crate::command::invocation::{Invocation, RunCommand};
use crate::command::watch::{Looks, Signals, WAITING_TICKS, Watch};
use crate::options::arguments::{FORMATS, RunOptions, Shape};
use crate::options::duration::parse_duration;
use crate::options::format::{Format, formats};
use crate::options::names::Names;
use crate::options::settings::RunSettings;
use crate::options::size::{parse_rotate, parse_size};
#[cfg(feature = "parquet")]
use crate::output::dataset::{live_dataset, written};
use crate::output::exit_code::exit_code;
use crate::output::messages::{self, sink_error};
use crate::output::screen::{self, Stage};
use crate::output::style::{style, terminal};
use crate::output::trace::trace;
use crate::sandbox::{self, Outputs};
use bounds::Bounds;
use fabric::{FabricArguments, FabricStream, FabricThread};
use help::AFTER_HELP;
use host::{Host, HostArguments, Threads};
use metrics::{Metrics, MetricsArguments, ServedMetrics};
use parts::{PartPublisher, PartStream, Parts, RunAround};
use recording::command_line;
use sniffers::warn_of_sniffers;
use watched::{counted, watched};

#[cfg(feature = "parquet")]
/// Parts of a dataset are closed after this time, unless --rotate says another.
const PART: Duration = Duration::from_mins(1);

/// Capture from devices and analyse at the same time
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Live {
    /// Device to capture from: an interface, 'any', an RDMA device such as mlx5_0 or mlx5_0:1, or '-', what `tcpdump -U -w -` writes to standard
    /// input (can be repeated)
    #[arg(short, long = "interface", value_name = "DEVICE", required = true)]
    interface: Vec<String>,

    /// Write the packets to FILE, as pcapng; the ending .gz or .zst compresses it
    #[arg(short, long, value_name = "FILE")]
    write: Option<PathBuf>,

    /// Start a new FILE-NUMBER at this size or after this time, such as 1GB or 10min; a time also sets the length of the dataset's parts
    #[arg(long, value_name = "SIZE|TIME", value_parser = parse_rotate)]
    rotate: Option<Rotate>,

    /// Write the results to DIR, too: a Parquet dataset in parts that are complete at every moment; run.json and report.html at the end
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// Record the analysed stream in DIR, too: `roce-analyze DIR` reproduces the tables
    #[arg(long, requires = "output")]
    record: bool,

    #[command(flatten)]
    pub(crate) names: Names,

    /// Replace the dataset in DIR, and FILE
    #[arg(long)]
    overwrite: bool,

    /// End the run after this time, such as 30s
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    duration: Option<Span>,

    #[cfg(feature = "object-store")]
    #[command(flatten)]
    fleet: fleet::FleetArguments,

    #[command(flatten)]
    bounds: Bounds,

    /// Reporting interval: one status line, or one screen update, per interval
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_time)]
    interval: Span,

    /// Print status lines instead of the full-screen view (the default without a terminal)
    #[arg(long)]
    no_tui: bool,

    /// Bytes kept of each packet
    #[arg(long, value_name = "BYTES", default_value_t = 384, value_parser = clap::value_parser!(u32).range(64..=262_144))]
    snaplen: u32,

    /// Size of the kernel's buffer for each device
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = parse_buffer)]
    buffer: u32,

    /// Capture packets to other hosts, too (promiscuous mode)
    #[arg(long)]
    promiscuous: bool,

    #[command(flatten)]
    host: HostArguments,

    #[command(flatten)]
    pub(crate) fabric: FabricArguments,

    #[command(flatten)]
    metrics: MetricsArguments,

    /// User that a run started by root continues as, once the devices are open: a name or number [default: the caller of sudo, else nobody; the owner of
    /// DIR or of FILE's folder where only that user can write]
    #[arg(long, value_name = "NAME", conflicts_with = "no_sandbox")]
    user: Option<String>,

    /// Keep the user and the right to open every file, and do not limit system calls; a note lists the rights that are still given up
    #[arg(long)]
    no_sandbox: bool,

    /// Format of standard output
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = formats(&FORMATS))]
    format: Format,

    #[command(flatten)]
    pub(crate) shape: Shape,
}

fn parse_time(text: &str) -> Result<Span, String> {
    let time = parse_duration(text)?;
    if time.0 < 10_000_000 {
        return Err("10ms is the least".to_owned());
    }
    Ok(time)
}

fn parse_buffer(text: &str) -> Result<u32, String> {
    let bytes = parse_size(text)?;
    u32::try_from(bytes)
        .ok()
        .filter(|bytes| (1 << 16..=1 << 30).contains(bytes))
        .ok_or_else(|| "64KiB to 1GiB".to_owned())
}

/// The settings of an analysis with these options.
fn settings(arguments: &Live) -> anyhow::Result<RunSettings> {
    RunSettings::from_arguments(&RunOptions {
        shape: arguments.shape.clone(),
        fabric: arguments.fabric.inventory.clone(),
        ..RunOptions::default()
    })
}

impl RunCommand for Live {
    fn run(&self, _: &Invocation) -> anyhow::Result<ExitCode> {
        live(self)
    }
}

/// Analyses devices.
fn live(arguments: &Live) -> anyhow::Result<ExitCode> {
    if let Some(cleaned) = arguments.host.cleanup() {
        return cleaned;
    }
    arguments.host.can_be_had()?;
    // Input from outside is parsed while no right is in effect.
    let confinement = Confinement::begin(arguments.user.as_deref(), arguments.no_sandbox)?;
    if !arguments.shape.processes.processes().is_empty() && !arguments.host.has_probe() {
        bail!("--pid, --comm and --cgroup need --probe: without it the owner of a queue pair is unknown");
    }
    arguments.bounds.wait()?;
    let begun = RunStart::now();
    let settings = settings(arguments)?;
    let interval = Duration::from_nanos(arguments.interval.0);
    let gpus = arguments.host.gpus(interval, &arguments.names)?;
    let fabric = arguments
        .fabric
        .start(arguments.user.as_deref(), arguments.no_sandbox)?;
    #[cfg(feature = "object-store")]
    let fleet = parts(arguments)?;
    #[cfg(not(feature = "object-store"))]
    let fleet: Option<Box<dyn Parts>> = None;
    sandbox::raise()?;
    let host = Host::open(
        &arguments.host,
        &arguments.interface,
        arguments.buffer,
        arguments.names.host.as_deref(),
        gpus,
    )?;
    let devices = open_devices(arguments)?;
    let metrics = Metrics::open(
        &arguments.metrics,
        arguments.user.as_deref(),
        arguments.no_sandbox,
    )?;
    let spool = fleet.as_ref().map(|fleet| fleet.folder());
    let outputs = Outputs {
        dir: spool.as_deref().or(arguments.output.as_deref()),
        file: arguments.write.as_deref(),
        rotates: arguments.rotate.is_some(),
    };
    confinement.give_up(&outputs, host.capabilities())?;
    let input = arguments.interface.join(",");
    let key = arguments
        .names
        .key_of_devices(&input, &settings.echo, begun.time());
    let fleet = fleet.map(|fleet| fleet.open(&key)).transpose()?;
    let dir = arguments.output.as_deref().filter(|_| fleet.is_none());
    let files = Files::open(arguments, &settings, dir, input, key, &devices, &host)?;
    let needs = sandbox::Needs {
        accept: metrics.is_some(),
        ..host.calls()
    };
    let read = metrics.as_ref().map_or_else(Vec::new, Metrics::folders);
    confinement.confine(&outputs, &read, needs)?;
    let has_screen = fleet.is_none() && screen::is_wanted(arguments.no_tui, arguments.format);
    // From here on a signal ends the run instead of the process.
    let signals = Signals::take()?;
    let stop = Stop::default();
    let end = arguments.bounds.followed(host::end_switch(&stop))?;
    let filtered = host.filtered();
    let (prepared, threads) = PreparedRun::new(
        arguments,
        settings.bin,
        files,
        devices,
        (host, fabric),
        &end,
        &stop,
    )?;
    let about = || about(arguments, &prepared.input);
    let stage = has_screen.then(|| watched(about(), settings.top, &prepared.counters, &end));
    let stage = stage.transpose().inspect_err(|_| stop.stop())?;
    let watch = Watch {
        interval: Some(arguments.interval),
        limit: arguments.duration,
        looks: looks(stage.is_some(), metrics.is_some()),
    };
    let publisher = fleet.as_ref().map(|fleet| fleet.publisher());
    let served = metrics.map(|metrics| prepared.serve(metrics, settings.bin, publisher));
    let (served, metrics) = served.transpose().inspect_err(|_| stop.stop())?.unzip();
    let (ticker, ticks) = bounded(WAITING_TICKS);
    let at_once = || host::take_off(&filtered);
    let result = watch.over(signals, &|| end.stop(), &at_once, &ticker, || {
        let Some(fleet) = fleet else {
            return prepared.analyse(arguments, &settings, begun, &ticks, stage, metrics);
        };
        let around = RunAround {
            names: &arguments.names,
            settings: &settings,
            ticks: &ticks,
            metrics,
            end: &end,
        };
        fleet.run(prepared.into_stream(), around)
    });
    if let Some(served) = served {
        served.end();
    }
    // Also when it was the analysis that ended.
    stop.stop();
    threads.end();
    result
}

/// Who looks at the run.
fn looks(has_screen: bool, has_metrics: bool) -> Looks {
    match (has_screen, has_metrics) {
        (true, _) => Looks::Screen,
        (false, true) => Looks::Metrics,
        (false, false) => Looks::None,
    }
}

/// A run in parts, if the options want one.
#[cfg(feature = "object-store")]
fn parts(arguments: &Live) -> anyhow::Result<Option<Box<dyn Parts>>> {
    arguments.fleet.start(&fleet::Request {
        output: arguments.output.as_deref(),
        format: arguments.format,
        record: arguments.record,
        no_sandbox: arguments.no_sandbox,
        user: arguments.user.as_deref(),
    })
}

/// Opens the devices that libpcap captures from.
fn open_devices(arguments: &Live) -> anyhow::Result<Vec<Device>> {
    // Standard input needs no right.
    if arguments.interface.iter().any(|name| name != "-") {
        sandbox::may_capture()?;
    }
    let options = Options {
        snaplen: arguments.snaplen,
        buffer: arguments.buffer,
        promiscuous: arguments.promiscuous,
        filter: arguments.bounds.filter.clone(),
    };
    let by_libpcap = arguments.interface.iter().filter(|_| arguments.host.by_libpcap());
    let devices = by_libpcap.map(|name| Device::open(name, &options));
    let devices: Vec<Device> = devices.collect::<Result<_, _>>()?;
    warn_of_sniffers(&devices);
    Ok(devices)
}

/// Description of a run on the screen.
fn about(arguments: &Live, input: &str) -> roce_report::About {
    roce_report::About {
        what: input.to_owned(),
        paced: false,
        interval: arguments.interval,
        lead: Span(0),
        has_host: arguments.host.has_probe(),
    }
}

/// The open files of a run.
struct Files {
    input: String,
    key: RunKey,
    /// Seed of the hashes.
    seed: u64,
    kept: Vec<PacketFiles>,
    dataset: Option<Box<dyn Sink + Send>>,
}

/// The running capture, and the receivers of its results.
struct PreparedRun {
    feed: LiveFeed,
    /// Reads switches and hypervisors.
    fabric: Option<FabricThread>,
    counters: Arc<Counters>,
    input: String,
    key: RunKey,
    /// Seed of the hashes.
    seed: u64,
    dataset: Option<Box<dyn Sink + Send>>,
}

impl Files {
    /// Makes them.
    fn open(
        arguments: &Live,
        settings: &RunSettings,
        dir: Option<&Path>,
        input: String,
        key: RunKey,
        devices: &[Device],
        host: &Host,
    ) -> anyhow::Result<Self> {
        let others = host.interfaces();
        let own = devices.iter().map(Device::interface);
        let interfaces: Vec<_> = own.chain(&others).cloned().collect();
        #[cfg(feature = "parquet")]
        let parts = match arguments.rotate {
            Some(Rotate::After(time)) => Duration::from_nanos(time.0),
            _ => PART,
        };
        #[cfg(feature = "parquet")]
        let dataset = dir
            .map(|dir| live_dataset(dir, &key, arguments.overwrite, parts, settings.json_flows))
            .transpose()?;
        // A build without datasets can record all the same.
        #[cfg(not(feature = "parquet"))]
        let dataset = match dir {
            Some(_) if !arguments.record => return Err(messages::no_datasets()),
            _ => None,
        };
        let folder = dir
            .map(|dir| Directory::named(dir, Access::Private))
            .transpose()?;
        if let Some(folder) = folder.as_ref().filter(|_| arguments.overwrite) {
            // A recording of an older run would be replayed as if it were this one's.
            folder.remove(RecordingStart::FILE)?;
        }
        let named = arguments.names.recorded(&key);
        // Nobody can know it before: the standard library's hashes are seeded at random.
        let seed = RandomState::new().hash_one(0);
        let mut kept = Vec::new();
        if let Some(path) = &arguments.write {
            kept.push(About {
                place: FilePlace::named(path)?,
                overwrite: arguments.overwrite,
                rotate: arguments.rotate,
                comment: comment(arguments, &input),
                recorded: None,
            });
        }
        if let Some(folder) = folder.as_ref().filter(|_| arguments.record) {
            kept.push(About {
                place: FilePlace::below(folder, RecordingStart::FILE),
                overwrite: arguments.overwrite,
                rotate: None,
                comment: format!("recording for `roce-analyze DIR`; {}", comment(arguments, &input)),
                recorded: Some(RecordingStart {
                    input: input.clone(),
                    seed,
                    arguments: command_line(named, settings.config_text.as_deref())?,
                }),
            });
        }
        let kept = kept
            .into_iter()
            .map(|about| PacketFiles::create(about, &interfaces))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            input,
            key,
            seed,
            kept,
            dataset,
        })
    }
}

impl PreparedRun {
    /// Serves metrics of the run, with those of its parts.
    fn serve(
        &self,
        metrics: Metrics,
        bin: Span,
        parts: Option<PartPublisher>,
    ) -> anyhow::Result<ServedMetrics> {
        metrics.serve(
            bin,
            &self.input,
            self.feed.stream.interfaces(),
            Arc::clone(&self.counters),
            parts,
            self.feed.stream.notes(),
        )
    }

    /// Takes what a run in parts needs: frames, fabric, name and seed.
    fn into_stream(self) -> PartStream {
        PartStream {
            feed: self.feed,
            fabric: self.fabric,
            input: self.input,
            seed: self.seed,
        }
    }

    /// Begins to capture.
    fn new(
        arguments: &Live,
        bin: Span,
        files: Files,
        devices: Vec<Device>,
        (host, fabric): (Host, Option<FabricStream>),
        end: &Stop,
        stop: &Stop,
    ) -> anyhow::Result<(Self, Threads)> {
        let others = host.interfaces();
        let Files {
            input,
            key,
            seed,
            kept,
            dataset,
        } = files;
        let (stream, outlets) = Stream::start(devices, &others, stop)?;
        let every = Duration::from_nanos(arguments.interval.0);
        let threads = host.start(outlets, stream.notes(), every, end, stop)?;
        let fabric = fabric.map(|fabric| fabric.begin(stream.notes(), end, stop));
        let prepared = Self {
            fabric: fabric.transpose()?,
            counters: Arc::clone(stream.counters()),
            feed: LiveFeed::new(stream, &input, bin, kept, stop.clone()).until(arguments.bounds.max_size()),
            input,
            key,
            seed,
            dataset,
        };
        Ok((prepared, threads))
    }

    /// Takes everything to the sinks, until the capture ends.
    fn analyse(
        self,
        arguments: &Live,
        settings: &RunSettings,
        begun: RunStart,
        ticks: &Receiver<Tick>,
        stage: Option<Stage>,
        metrics: Option<Box<dyn Sink + Send>>,
    ) -> anyhow::Result<ExitCode> {
        let mut sinks: Vec<Box<dyn Sink>> = Vec::new();
        // The dataset comes first: it is complete whether or not anybody reads standard output to its end.
        if let Some(dataset) = self.dataset {
            sinks.push(dataset);
        }
        let has_metrics = metrics.is_some();
        if let Some(metrics) = metrics {
            sinks.push(metrics);
        }
        match (arguments.format, stage) {
            (Format::Text, Some(stage)) => {
                sinks.push(Box::new(stage));
                sinks.push(Box::new(terminal(settings.top, settings.shape.full)));
            }
            (Format::Text, None) => sinks.push(Box::new(LiveReport::new(
                anstream::stdout(),
                style(settings.top),
                move || counted(&self.counters),
            ))),
            (Format::Json, _) => sinks.push(Box::new(JsonReport::new(
                BufWriter::new(std::io::stdout()),
                settings.json_flows,
            ))),
            (Format::Html, _) => sinks.push(Box::new(HtmlReport::new(BufWriter::new(std::io::stdout())))),
            (Format::Perfetto, _) => sinks.push(trace(TraceForm::Perfetto)?),
            (Format::Chrome, _) => sinks.push(trace(TraceForm::Chrome)?),
            _ => {}
        }
        for sink in &mut sinks {
            sink.begin(settings.bin).map_err(sink_error)?;
        }
        let borrowed = sinks
            .iter_mut()
            .map(|sink| &mut **sink as &mut dyn Sink)
            .collect();
        let wiring = self.fabric.as_ref().map(|fabric| || fabric.wiring());
        let request = LiveRequest {
            feed: self.feed,
            plan: settings.live_plan(self.seed, has_metrics),
            input: &self.input,
            begun,
            key: self.key,
            options: settings.echo.clone(),
            wiring: wiring.as_ref().map(|wiring| wiring as _),
        };
        let ended = request.run(borrowed, ticks).map_err(sink_error)?;
        if let Some(bytes) = ended.feed.full {
            messages::warn(&self.input, &format!("ended at --max-size: {bytes} bytes"));
        }
        let is_whole = ended.errors.is_empty();
        for error in ended.errors {
            messages::report(&error.into());
        }
        if let Some(fabric) = self.fabric {
            fabric.end();
        }
        for mut sink in sinks {
            sink.finish(&ended.summary).map_err(sink_error)?;
        }
        #[cfg(feature = "parquet")]
        if let Some(dir) = arguments.output.as_deref().filter(|_| !arguments.shape.quiet) {
            messages::wrote(&written(dir));
        }
        Ok(exit_code(is_whole, &ended.summary, &settings.fail_on))
    }
}

/// Comment in capture files for readers of the packets.
fn comment(arguments: &Live, input: &str) -> String {
    if let Some(way) = arguments.host.way() {
        return format!("captured live on {input}, {way}");
    }
    format!(
        "captured live on {input}, {} bytes of each packet, {}",
        arguments.snaplen,
        if arguments.promiscuous {
            "promiscuous"
        } else {
            "not promiscuous"
        }
    )
}
