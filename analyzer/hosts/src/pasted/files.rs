//! Files of a host that are made of a text, and what the text says of them itself: paths, variables, limits, counters.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::hca::is_plain_name;
use crate::host::{ethtool_statistics, rdma_statistics};

/// Beginnings of the paths of a host's files.
const ROOTS: [&str; 6] = ["sys/", "proc/", "etc/", "dev/", "answers/", "commands/"];
/// Beginnings of the variables that are read: an environment has secrets.
const VARIABLES: [&str; 3] = ["NCCL_", "UCX_", "PCIDEVICE_"];

/// Limits that are read: the name in `/proc/PID/limits`, beginnings of lines of `ulimit -a` (bash; zsh; dash), the letter of their
/// option, the name that `prlimit` has, and the unit in which shells count them.
const LIMITS: [(&str, [&str; 3], char, &str, u64); 2] = [
    (
        "Max locked memory",
        [
            "max locked memory ",
            "-l: locked-in-memory size ",
            "locked memory(kbytes) ",
        ],
        'l',
        "MEMLOCK",
        1_024,
    ),
    (
        "Max open files",
        ["open files ", "-n: file descriptors ", "nofiles "],
        'n',
        "NOFILE",
        1,
    ),
];

/// A limit as `/proc/PID/limits` has it: a number of this unit, or `unlimited`.
fn scaled(value: &str, unit: u64) -> Option<String> {
    if value == "unlimited" {
        return Some(value.to_owned());
    }
    let count: u64 = value.parse().ok()?;
    Some(count.saturating_mul(unit).to_string())
}

/// Files of a host, by their paths.
#[derive(Default)]
pub(super) struct PastedFiles {
    pub(super) files: BTreeMap<String, Vec<u8>>,
}

impl PastedFiles {
    /// Adds a file. The first text of a path counts.
    pub(super) fn add(&mut self, path: String, text: &str) {
        self.files.entry(path).or_insert_with(|| text.as_bytes().to_vec());
    }

    /// Adds an answer.
    pub(super) fn answer(&mut self, name: &str, value: &Value) {
        self.add(format!("answers/{name}"), &value.to_string());
    }

    /// Files behind their paths: `PATH:TEXT` of `grep . FILES`, `PATH = TEXT`, `PATH TEXT`, and `==> PATH <==` of `head` and `tail`.
    /// A path that several lines begin with has all of their texts.
    pub(super) fn paths(&mut self, text: &str) {
        let mut open: Option<(String, String)> = None;
        let mut last: Option<String> = None;
        for line in text.lines() {
            let headed = line
                .strip_prefix("==> ")
                .and_then(|rest| rest.strip_suffix(" <=="));
            if let Some(path) = headed {
                self.close(open.take());
                open = path_of(path).map(|path| (path, String::new()));
                continue;
            }
            if let Some((_, text)) = &mut open {
                text.push_str(line);
                text.push('\n');
                continue;
            }
            let Some((path, value)) = path_of(line).as_deref().and_then(split_path).map(owned) else {
                continue;
            };
            let value = value.replace("\\n", "\n");
            let value = value.trim_start_matches(' ');
            // `uevent` and statistics have several lines, each behind the path.
            let known = last.as_ref().filter(|last| **last == path);
            if let Some(bytes) = known.and_then(|last| self.files.get_mut(last)) {
                bytes.push(b'\n');
                bytes.extend(value.as_bytes());
            } else {
                self.add(path.clone(), value);
                last = Some(path);
            }
        }
        self.close(open);
    }

    fn close(&mut self, open: Option<(String, String)>) {
        if let Some((path, text)) = open {
            self.add(path, &text);
        }
    }

    /// Variables of jobs: `NCCL_IB_HCA=mlx5_0`, also behind `export`.
    pub(super) fn variables(&mut self, text: &str) {
        let mut all = serde_json::Map::new();
        for line in text.lines() {
            let line = line.trim();
            let line = line.strip_prefix("export ").unwrap_or(line);
            let Some((name, value)) = line.split_once('=') else {
                continue;
            };
            let is_name = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
            if VARIABLES.iter().any(|start| name.starts_with(start)) && name.bytes().all(is_name) {
                let value = value.trim().trim_matches(['"', '\'']);
                all.insert(name.to_owned(), json!(value));
            }
        }
        if !all.is_empty() {
            self.answer("env.json", &Value::Object(all));
        }
    }

    /// Files that a shell shows by `cat FILE`, and the defaults of connections that MLNX_OFED's `cma_roce_tos` and `cma_roce_mode` show.
    pub(super) fn shown(&mut self, text: &str) {
        for (words, answer) in answers(text) {
            match words.as_slice() {
                ["cat", path] => {
                    if let Some(path) = path_of(path) {
                        self.add(path, answer);
                    }
                }
                [name @ ("cma_roce_tos" | "cma_roce_mode"), options @ ..] => {
                    let option = |letter: &str| {
                        let at = options.iter().position(|word| *word == letter)?;
                        options.get(at + 1).copied()
                    };
                    self.connection_default(name, option("-d"), option("-p"), answer);
                }
                _ => {}
            }
        }
    }

    /// Defaults of rdma_cm, where the text is that answer alone and the name of its file says so: `cma_roce_tos_mlx5_0`.
    pub(super) fn named(&mut self, text: &str, name: &str) {
        let mut lines = text.lines().filter(|line| !line.trim().is_empty());
        let (Some(answer), None) = (lines.next(), lines.next()) else {
            return;
        };
        if let Some(command) = ["cma_roce_tos", "cma_roce_mode"]
            .iter()
            .find(|command| name.contains(*command))
        {
            self.connection_default(command, device_in(name), None, answer);
        }
    }

    /// A default of rdma_cm's connections, as configfs has it. Without an option the tools mean port 1.
    fn connection_default(&mut self, command: &str, device: Option<&str>, port: Option<&str>, answer: &str) {
        let (device, port, answer) = (device.unwrap_or("DEVICE"), port.unwrap_or("1"), answer.trim());
        let is_answer = if command == "cma_roce_tos" {
            answer.parse::<u8>().is_ok()
        } else {
            answer.contains("RoCE v")
        };
        if is_answer && is_plain_name(device) && port.parse::<u8>().is_ok() {
            let setting = command.replace("cma_", "default_");
            self.add(
                format!("sys/kernel/config/rdma_cm/{device}/ports/{port}/{setting}"),
                answer,
            );
        }
    }

    /// `ulimit -a`, `-l` and `-n` of shells, and `prlimit`: locked memory and open files, as `/proc/PID/limits` has them. A shell shows
    /// the soft limits, in kilobytes; `-H` asks for the hard ones. `prlimit` shows both, in bytes.
    pub(super) fn limits(&mut self, text: &str) {
        let mut limits = String::new();
        for (name, beginnings, option, resource, scale) in LIMITS {
            let listed = text.lines().find_map(|line| {
                let line = line.trim();
                let start = beginnings.iter().find(|start| line.starts_with(**start))?;
                scaled(
                    line.get(start.len()..)?.rsplit([')', ' ', '\t', ':']).next()?,
                    scale,
                )
            });
            let asked = |options: [String; 3]| {
                let is_asked = |words: &[&str]| {
                    let ["ulimit", rest @ ..] = words else {
                        return false;
                    };
                    options.contains(&rest.join(" "))
                };
                let found = answers(text).find(|(words, _)| is_asked(words));
                found.and_then(|(_, value)| scaled(value.trim(), scale))
            };
            let soft = listed.or_else(|| {
                asked([
                    format!("-{option}"),
                    format!("-S{option}"),
                    format!("-S -{option}"),
                ])
            });
            let hard = asked([
                format!("-H{option}"),
                format!("-{option}H"),
                format!("-H -{option}"),
            ]);
            let both = text.lines().find_map(|line| {
                let words: Vec<&str> = line.split_whitespace().collect();
                let [first, .., soft, hard, _] = words.as_slice() else {
                    return None;
                };
                (*first == resource).then_some((scaled(soft, 1)?, scaled(hard, 1)?))
            });
            let (soft, hard) = both.map_or((soft, hard), |(soft, hard)| (Some(soft), Some(hard)));
            if soft.is_some() || hard.is_some() {
                let [soft, hard] = [soft, hard].map(|limit| limit.unwrap_or_else(|| "unknown".to_owned()));
                // Writing to a string does not fail.
                let _ = writeln!(limits, "{name:<26}{soft:<21}{hard:<21}");
            }
        }
        if !limits.is_empty() {
            self.add("proc/self/limits".to_owned(), &limits);
        }
    }

    /// Counters of `rdma statistic show` and `ethtool -S`.
    pub(super) fn statistics(&mut self, text: &str, name: &str) {
        const HEADING: &str = "NIC statistics:";
        let before = text.find(HEADING).map_or(text, |at| &text[..at]);
        for link in rdma_statistics(before) {
            let Some((device, port)) = link.object.split_once(':') else {
                continue;
            };
            for counter in link.counters {
                let path = format!(
                    "sys/class/infiniband/{device}/ports/{port}/hw_counters/{}",
                    counter.name
                );
                self.add(path, &counter.value.to_string());
            }
        }
        let mut interface = name.to_owned();
        let mut block: Option<String> = None;
        let end = |interface: &str, block: Option<String>, files: &mut Self| {
            if let Some(block) = block.filter(|block| !ethtool_statistics(block).is_empty()) {
                files.add(format!("commands/ethtool_-S_{interface}.txt"), &block);
            }
        };
        for line in text.lines() {
            let named = interface_of(line, "ethtool");
            if line.contains(HEADING) || named.is_some() {
                end(&interface, block.take(), self);
            }
            if let Some(named) = named {
                named.clone_into(&mut interface);
            }
            if line.contains(HEADING) {
                block = Some(String::new());
            }
            if let Some(block) = &mut block {
                block.push_str(line);
                block.push('\n');
            }
        }
        end(&interface, block, self);
    }
}

/// Commands behind the prompt of a shell that answer in a line, by their words, and the line.
fn answers(text: &str) -> impl Iterator<Item = (Vec<&str>, &str)> {
    let next = text.lines().skip(1);
    text.lines().zip(next).filter_map(|(line, answer)| {
        let command = command_of(line)?;
        let is_answer = command_of(answer).is_none() && !answer.trim().is_empty();
        is_answer.then(|| (command.split_whitespace().collect(), answer))
    })
}

/// Beginnings of commands that have no other use at the start of a line.
const BARE_COMMANDS: [&str; 3] = ["ulimit -", "cma_roce_tos ", "cma_roce_mode "];

/// The command behind a prompt: `$ cat X`, `root@n1:~# sudo cat X`; also some commands alone.
pub(super) fn command_of(line: &str) -> Option<&str> {
    if BARE_COMMANDS
        .iter()
        .any(|start| line.trim_start().starts_with(start))
    {
        return Some(line.trim());
    }
    let (_, command) = line.split_once(['$', '#']).filter(|(prompt, _)| {
        // A prompt has no blank but that in `[root@n1 ~]`.
        prompt.split_whitespace().count() <= 2
    })?;
    let command = command.strip_prefix(' ')?.trim();
    Some(command.strip_prefix("sudo ").unwrap_or(command))
}

/// The path that a line begins with, without its slash, and what is behind it.
fn path_of(line: &str) -> Option<String> {
    let line = line.trim();
    let path = line
        .strip_prefix("./")
        .or_else(|| line.strip_prefix('/'))
        .unwrap_or(line);
    // The devices behind the links of a class, and a search in the folder of the class.
    if let Some((_, rest)) = path
        .split_once("/infiniband/")
        .filter(|(before, _)| before.starts_with("sys/devices/") && !before.contains(' '))
    {
        return Some(format!("sys/class/infiniband/{rest}"));
    }
    if path
        .split_once("/ports/")
        .is_some_and(|(device, _)| is_plain_name(device))
    {
        return Some(format!("sys/class/infiniband/{path}"));
    }
    ROOTS
        .iter()
        .any(|root| path.starts_with(root))
        .then(|| path.to_owned())
}

/// A path and the text behind ` = `, a colon, an equals sign or a blank. PCI addresses in paths have colons, too: what separates the two
/// stands behind the path's last slash.
fn split_path(line: &str) -> Option<(&str, &str)> {
    if let Some((path, value)) = line
        .split_once(" = ")
        .filter(|(path, _)| !path.contains([' ', '\t']))
    {
        return Some((path, value));
    }
    let end = line.find([' ', '\t']).unwrap_or(line.len());
    let word = line.get(..end)?;
    let file = word.rfind('/')? + 1;
    match word.get(file..)?.find([':', '=']) {
        Some(at) => Some((line.get(..file + at)?, line.get(file + at + 1..)?)),
        None => Some((word, line.get(end..)?.trim_start())).filter(|(_, value)| !value.is_empty()),
    }
}

fn owned((path, value): (&str, &str)) -> (String, String) {
    (path.to_owned(), value.to_owned())
}

/// The interface in a line with a command of a tool: its last word, or the one behind `dev`.
pub(super) fn interface_of<'a>(line: &'a str, tool: &str) -> Option<&'a str> {
    let (prompt, arguments) = line.split_once(&format!("{tool} "))?;
    let is_prompt =
        prompt.trim_end().ends_with(['#', '$', '>', '/', ']']) || ["", "== ", "sudo "].contains(&prompt);
    let words: Vec<&str> = arguments.split_whitespace().collect();
    let name = match words.iter().position(|word| *word == "dev") {
        Some(at) => *words.get(at + 1)?,
        None => *words.last()?,
    };
    (is_prompt && words.len() <= 8 && is_plain_name(name)).then_some(name)
}

/// The name of a device of `mlx5_core` in another text: a file's name, a line between two outputs.
pub(super) fn device_in(text: &str) -> Option<&str> {
    const START: &str = "mlx5_";
    let at = text.find(START)?;
    let rest = &text[at..];
    let digits = rest[START.len()..].bytes().take_while(u8::is_ascii_digit).count();
    (digits > 0).then(|| &rest[..START.len() + digits])
}
