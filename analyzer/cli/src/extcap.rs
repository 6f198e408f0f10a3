//! Wireshark's interface for programs that capture (`extcap`, doc/extcap.4 of Wireshark): the devices of this host and hosts behind ssh,
//! with RoCE alone or all frames. The program is linked into Wireshark's folder for them, and Wireshark starts it.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Parser;
use roce_capture::live::{Device, Next, Options, Stop, Stream, rdma_support};
use roce_capture::write::{ByteOrder, InterfaceOptions, PcapngWriter};
use roce_files::{Access, FilePlace};
use roce_model::text::clean;
use roce_remote::fleet::script::ROCE_FILTER;
use roce_remote::{Machine, quoted};
use roce_switches::inventory::SshSettings;

/// The interface that is a host behind ssh.
const REMOTE: &str = "roce-ssh";
/// Beginning of the names of this host's devices: those of Wireshark itself are without it.
const LOCAL: &str = "roce-";
/// Longest wait for frames before what came is handed to Wireshark.
const PATIENCE: Duration = Duration::from_millis(200);

/// Requests of Wireshark, one by one.
#[derive(Parser, Debug)]
#[command(name = "roce-analyze", disable_help_flag = true, disable_version_flag = true)]
struct Request {
    /// The interfaces are to be listed.
    #[arg(long)]
    extcap_interfaces: bool,
    /// Version of Wireshark.
    #[arg(long, num_args = 0..=1)]
    extcap_version: Option<String>,
    /// The interface that the request is about.
    #[arg(long)]
    extcap_interface: Option<String>,
    /// Its link types are to be listed.
    #[arg(long)]
    extcap_dlts: bool,
    /// Its options are to be listed.
    #[arg(long)]
    extcap_config: bool,
    /// Filter of libpcap, beside that for RoCE. Without a capture it is to be checked.
    #[arg(long)]
    extcap_capture_filter: Option<String>,
    /// Frames are to be captured.
    #[arg(long)]
    capture: bool,
    /// Where the frames are to be written.
    #[arg(long)]
    fifo: Option<PathBuf>,
    /// Bytes kept of each frame.
    #[arg(long, default_value_t = 192)]
    snaplen: u32,
    /// Frames of other protocols are captured, too.
    #[arg(long)]
    all_frames: bool,
    /// Address of the host, for ssh.
    #[arg(long)]
    remote_host: Option<String>,
    /// User there.
    #[arg(long)]
    remote_user: Option<String>,
    /// Device there.
    #[arg(long, default_value = "any")]
    remote_interface: String,
    /// Words before tcpdump there, such as sudo.
    #[arg(long)]
    remote_prefix: Option<String>,
}

/// True if Wireshark started the program.
pub(crate) fn is_wanted(mut arguments: impl Iterator<Item = std::ffi::OsString>) -> bool {
    arguments.any(|argument| argument.as_encoded_bytes().starts_with(b"--extcap-"))
}

/// Answers one request of Wireshark.
///
/// # Errors
/// When the request is not understood, nothing can be captured, or the capture cannot be written.
pub(crate) fn run(arguments: impl Iterator<Item = std::ffi::OsString>) -> anyhow::Result<ExitCode> {
    let request = Request::try_parse_from(arguments).map_err(|error| {
        let text = error.to_string();
        anyhow::anyhow!("a request of Wireshark is not understood: {}", clean(text.trim()))
    })?;
    if request.capture {
        request.captured()?;
        return Ok(ExitCode::SUCCESS);
    }
    io::stdout().write_all(request.answer().as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

impl Request {
    /// Lines that answer a request that captures nothing.
    fn answer(&self) -> String {
        if self.extcap_interfaces {
            return interfaces(&roce_capture::devices(&roce_capture::Sysfs::running()));
        }
        if self.extcap_dlts {
            return "dlt {number=1}{name=EN10MB}{display=Ethernet}\n".to_owned();
        }
        if self.extcap_config {
            return configuration(self.is_remote());
        }
        // Wireshark shows what is printed about a wrong filter. One for another host can be checked only there.
        if let (Some(filter), false) = (&self.extcap_capture_filter, self.is_remote())
            && let Err(error) = self.device(Some(filter.clone()))
        {
            return format!("{error}\n");
        }
        String::new()
    }

    fn is_remote(&self) -> bool {
        self.extcap_interface.as_deref() == Some(REMOTE)
    }

    /// The filter of the frames: RoCE, unless all are wanted, and that of the user.
    fn filter(&self) -> Option<String> {
        let own = self.extcap_capture_filter.as_deref().map(str::trim);
        match (own.filter(|own| !own.is_empty()), self.all_frames) {
            (None, true) => None,
            (Some(own), true) => Some(own.to_owned()),
            (None, false) => Some(ROCE_FILTER.to_owned()),
            // `vlan` moves the offsets of all that follows it: the user's filter is first.
            (Some(own), false) => Some(format!("({own}) and ({ROCE_FILTER})")),
        }
    }

    /// Opens the device of this host that the request names.
    fn device(&self, filter: Option<String>) -> anyhow::Result<Device> {
        let name = self
            .extcap_interface
            .as_deref()
            .context("no interface is named")?;
        let name = name.strip_prefix(LOCAL).unwrap_or(name);
        if name == "-" {
            bail!("standard input is no device of Wireshark");
        }
        let options = Options {
            snaplen: self.snaplen,
            filter,
            ..Options::default()
        };
        Ok(Device::open(name, &options)?)
    }

    /// Captures until Wireshark closes the FIFO or ends the program.
    fn captured(&self) -> anyhow::Result<()> {
        let fifo = self.fifo.as_deref().context("no FIFO is named")?;
        let open = || -> anyhow::Result<_> {
            let place = FilePlace::named(fifo)?;
            Ok(place.create(true, Access::Private)?)
        };
        if self.is_remote() {
            return self.captured_remotely(open);
        }
        let device = self.device(self.filter())?;
        let about = InterfaceOptions {
            link: device.interface().link,
            snaplen: self.snaplen,
            name: Some(device.name().to_owned()),
            ..InterfaceOptions::default()
        };
        let (mut stream, _) = Stream::start(vec![device], &[], &Stop::default())?;
        let mut out = PcapngWriter::new(io::BufWriter::new(open()?), ByteOrder::Little)?;
        let interface = out.interface(&about)?;
        loop {
            match stream.next(PATIENCE) {
                Next::Run(run) => {
                    for frame in run.frames() {
                        let bytes = run.batch.bytes(frame);
                        if is_closed(out.write(interface, frame.time, frame.original, bytes))? {
                            return Ok(());
                        }
                    }
                    stream.recycle(run);
                }
                Next::Quiet => {
                    if is_closed(out.output().flush())? {
                        return Ok(());
                    }
                }
                Next::Ended => break,
            }
        }
        if let Some(error) = stream.take_errors().into_iter().next() {
            return Err(error.into());
        }
        out.output().flush()?;
        Ok(())
    }

    /// Has tcpdump capture on the host, whose file becomes that of the FIFO. It ends with the connection, and the connection with this
    /// program, whose end closes the pipe to ssh.
    fn captured_remotely(&self, open: impl Fn() -> anyhow::Result<std::fs::File>) -> anyhow::Result<()> {
        let host = self.remote_host.as_deref().context("no host is named")?;
        let snaplen = self.snaplen.to_string();
        let device = self.remote_interface.as_str();
        let filter = self.filter();
        let mut words = vec!["tcpdump", "-i", device, "-s", &snaplen, "-U", "-w", "-"];
        words.extend(filter.as_deref());
        let prefix = self.remote_prefix.as_deref().unwrap_or_default();
        // Without job control, what runs in the background has no standard input of its own.
        let script = format!(
            "exec 3<&0; {prefix} {} & p=$!; (cat <&3; kill $p) >/dev/null 2>&1 & wait $p; c=$?; kill $! 2>/dev/null; exit $c",
            quoted(words)?
        );
        let ssh = Arc::new(SshSettings::default());
        let machine = Machine::new(host, host, self.remote_user.as_deref(), &ssh);
        let mut command = machine.shell(&script)?;
        command.stdin(Stdio::piped()).stdout(open()?);
        let mut child = command.spawn().context("ssh cannot be started")?;
        let status = child.wait().context("ssh cannot be waited for")?;
        if !status.success() {
            bail!("the capture on {} ended: {status}", clean(host));
        }
        Ok(())
    }
}

/// False if it was written, true if nobody reads it any more.
fn is_closed(written: io::Result<()>) -> io::Result<bool> {
    match written {
        Ok(()) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(true),
        Err(error) => Err(error),
    }
}

/// The interfaces: what `devices` lists and libpcap can capture from, and a host behind ssh.
fn interfaces(devices: &roce_model::Devices) -> String {
    let mut text = format!(
        "extcap {{version={}}}{{display=roce-analyze}}\n",
        env!("CARGO_PKG_VERSION")
    );
    let mut line = |name: &str, shown: &str| {
        // Braces end a value, and no name of a device has any.
        if !name.contains(['{', '}']) {
            // Writing to a string does not fail.
            let _ = writeln!(text, "interface {{value={name}}}{{display={shown}}}");
        }
    };
    if rdma_support() {
        for device in &devices.rdma {
            let name = clean(&device.name);
            line(
                &format!("{LOCAL}{name}"),
                &format!("RoCE of {name}, past the kernel too"),
            );
        }
    }
    for interface in &devices.interfaces {
        let name = clean(&interface.name);
        line(
            &format!("{LOCAL}{name}"),
            &format!("RoCE on {name}, what the kernel sees"),
        );
    }
    line(REMOTE, "RoCE on another host, by ssh and tcpdump");
    text
}

/// The options that Wireshark's dialog offers.
fn configuration(is_remote: bool) -> String {
    let mut text = String::new();
    let mut number = 0;
    let mut option = |fields: &str| {
        // As above.
        let _ = writeln!(text, "arg {{number={number}}}{fields}");
        number += 1;
    };
    if is_remote {
        option(
            "{call=--remote-host}{display=Host}{type=string}{required=true}{tooltip=Its name or address for ssh, which asks for no password}",
        );
        option(
            "{call=--remote-user}{display=User}{type=string}{tooltip=The user there, if it is another one}",
        );
        option(
            "{call=--remote-interface}{display=Device}{type=string}{default=any}{tooltip=An interface, or an RDMA device such as mlx5_0}",
        );
        option("{call=--remote-prefix}{display=Before tcpdump}{type=string}{tooltip=Such as: sudo -n}");
    }
    option(
        "{call=--snaplen}{display=Bytes of each frame}{type=unsigned}{range=64,262144}{default=192}{tooltip=192 bytes have all headers}",
    );
    option(
        "{call=--all-frames}{display=Other protocols, too}{type=boolflag}{default=false}{tooltip=Without it RoCE, UET and pause frames alone}",
    );
    text
}

#[cfg(test)]
mod tests {
    use roce_model::{Devices, NetworkInterface};

    use super::*;

    fn request(words: &[&str]) -> Request {
        let words = ["roce-analyze"].into_iter().chain(words.iter().copied());
        Request::try_parse_from(words).unwrap()
    }

    #[test]
    fn interfaces_are_lines_of_the_protocol() {
        let interface = |name: &str| NetworkInterface {
            name: name.to_owned(),
            ..NetworkInterface::default()
        };
        let devices = Devices {
            interfaces: vec![interface("lo"), interface("eth0"), interface("a{b")],
            ..Devices::default()
        };
        let text = interfaces(&devices);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("extcap {version="), "{text}");
        // A name with a brace is left out.
        let names: Vec<_> = lines[1..]
            .iter()
            .filter_map(|line| line.split(['=', '}']).nth(1))
            .collect();
        assert_eq!(names, ["roce-lo", "roce-eth0", "roce-ssh"], "{text}");
    }

    #[test]
    fn options_are_numbered_without_gaps() {
        for (is_remote, count) in [(false, 2), (true, 6)] {
            let text = configuration(is_remote);
            assert_eq!(text.lines().count(), count);
            for (number, line) in text.lines().enumerate() {
                assert!(
                    line.starts_with(&format!("arg {{number={number}}}{{call=--")),
                    "{line}"
                );
            }
        }
    }

    #[test]
    fn filters_are_those_of_roce_and_of_the_user() {
        let base = ["--capture", "--extcap-interface", "roce-eth0", "--fifo", "f"];
        assert_eq!(request(&base).filter().as_deref(), Some(ROCE_FILTER));
        let own = [&base[..], &["--extcap-capture-filter", "host 10.0.0.1"]].concat();
        assert_eq!(
            request(&own).filter().unwrap(),
            format!("(host 10.0.0.1) and ({ROCE_FILTER})")
        );
        let all = [&own[..], &["--all-frames"]].concat();
        assert_eq!(request(&all).filter().as_deref(), Some("host 10.0.0.1"));
    }

    #[test]
    fn requests_of_wireshark_are_recognized() {
        let words = |line: &str| line.split(' ').map(std::ffi::OsString::from).collect::<Vec<_>>();
        assert!(is_wanted(
            words("--extcap-interfaces --extcap-version=4.0").into_iter()
        ));
        assert!(is_wanted(
            words("--capture --extcap-interface roce-eth0 --fifo /tmp/f").into_iter()
        ));
        assert!(!is_wanted(words("a.pcap --format json").into_iter()));
    }
}
