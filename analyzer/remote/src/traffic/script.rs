//! Scripts for POSIX shells that prepare, start, watch and end a run on a host, with the programs of coreutils or busybox.
//!
//! Their answers are lines `key=value`; lines of logs follow with `|` before them.

use std::fmt::Write as _;

use roce_jobs::traffic::Role;

use crate::{RemoteError, quoted};

/// The variable that has the run's id.
const RUN: &str = "ROCE_ANALYZE_RUN";
/// The variable that has the run's id and the host's name: two hosts can be namespaces of one machine.
const AT: &str = "ROCE_ANALYZE_AT";
/// The variable that has the name of the process: a stream's number, and `s` for its server or `c` for its client.
const SIDE: &str = "ROCE_ANALYZE_SIDE";

/// Time from TERM to KILL, in tenths of a second.
const STOP_TENTHS: u32 = 30;

/// Blocks of 512 bytes of a log: 64 MiB.
const MAX_LOG_BLOCKS: u32 = 131_072;

/// Bytes of a log that `status` sees: its end.
pub(super) const STATUS_LOG_BYTES: usize = 4_000;

/// A run on a host.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostRun<'a> {
    /// The run's id.
    pub(super) id: &'a str,
    /// The host's name.
    pub(super) host: &'a str,
}

impl HostRun<'_> {
    /// Variables of all scripts, and what lists the run's processes here: only those whose environment has exactly our variable. GNU grep
    /// finds them in one call; that of busybox ends a line at its first NUL.
    fn head(&self) -> Result<String, RemoteError> {
        let (id, host) = (self.id, self.host);
        let words = quoted([id])?;
        Ok(format!(
            r#"id={words} host={host} at="{AT}=$id:$host:"
holding() {{
  if grep --version 2> /dev/null | grep -q GNU; then
    grep -lsF "$1" /proc/[0-9]*/environ
  else
    for file in /proc/[0-9]*/environ; do
      # Threads of the kernel have no program.
      [ -O "$file" ] && [ -e "${{file%/environ}}/exe" ] && variables "$file" | grep -qF "$1" && echo "$file"
    done
  fi
}}
variables() {{
  {{ tr '\0' '\n' < "$1"; }} 2> /dev/null
}}
holds() {{
  variables "/proc/$1/environ" | grep -qxF "$at"
}}
live() {{
  for file in $(holding "$at"); do
    pid=${{file#/proc/}}
    pid=${{pid%/environ}}
    holds "$pid" && echo "$pid"
  done
}}
look() {{
  if command -v ss > /dev/null; then
    form=%d listening=$(ss -Hltn | tr -s ' ' | cut -d ' ' -f 4 | sed 's/.*://' | tr '\n' ' ')
  else
    form=%04X listening=$(sed -n 's/.*: [0-9A-F]*:\([0-9A-F]*\) [0-9A-F]*:0000 0A .*/\1/p' /proc/net/tcp /proc/net/tcp6 2> /dev/null | tr '\n' ' ')
  fi
}}
listens() {{
  case " $listening" in *" $(printf $form "$1") "*) return 0 ;; esac
  return 1
}}
"#,
            host = quoted([host])?,
        ))
    }
}

/// Programs and ports that a host needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needs<'a> {
    /// The tool.
    pub(super) tool: &'a str,
    /// Ports of its servers.
    pub(super) ports: &'a [u16],
    /// The program that knows the GIDs and the counters there.
    pub(super) analyze: &'a str,
    /// True on this machine.
    pub(super) is_local: bool,
    /// The run's folder is made.
    pub(super) makes_folder: bool,
}

/// Looks at a host, and makes the run's folder.
///
/// The runtime folder of a user is removed with the last session, which over ssh is when nobody asks for a while. There it is taken
/// only where the user lingers.
pub(super) fn prepare(place: HostRun<'_>, needs: Needs<'_>) -> Result<String, RemoteError> {
    let ports: Vec<String> = needs.ports.iter().map(u16::to_string).collect();
    let mut script = place.head()?;
    let _ = write!(
        script,
        "tool={} analyze={} ports={} local={} make={}\n{PREPARE}",
        quoted([needs.tool])?,
        quoted([needs.analyze])?,
        quoted([ports.join(" ").as_str()])?,
        u8::from(needs.is_local),
        u8::from(needs.makes_folder),
    );
    Ok(script)
}

const PREPARE: &str = r#"umask 077
private() {
  mkdir -m 700 "$1" 2> /dev/null
  if [ -d "$1" ] && [ ! -L "$1" ] && [ -O "$1" ]; then
    case $(ls -ld "$1") in drwx------*) return 0 ;; esac
  fi
  echo "$1 is not a folder that only this user can enter" >&2
  exit 4
}
base=
case ${XDG_RUNTIME_DIR-} in
  /*) if [ "$local" = 1 ] || [ -e "/var/lib/systemd/linger/$(id -un)" ]; then
      [ -d "$XDG_RUNTIME_DIR" ] && [ -O "$XDG_RUNTIME_DIR" ] && base=$XDG_RUNTIME_DIR/roce-analyze
    fi ;;
esac
[ -n "$base" ] || base=/tmp/roce-analyze-$(id -u)
if [ "$make" = 1 ]; then
  private "$base"
  private "$base/traffic"
  private "$base/traffic/$id"
  private "$base/traffic/$id/$host"
  date +%s > "$base/traffic/$id/$host/prepared" || exit 4
fi
echo "folder=$base/traffic/$id/$host"
now=$(date +%s)
for file in "$base"/traffic/*/*/prepared; do
  [ -f "$file" ] && [ -O "$file" ] || continue
  folder=${file%/*}
  run=${folder%/*}
  run=${run##*/}
  [ "$run" = "$id" ] && continue
  begun=$(cat "$file")
  case $begun in '' | *[!0-9]*) begun=0 ;; esac
  if holding "ROCE_ANALYZE_RUN=$run" | grep -q .; then
    echo "other=$run"
  elif [ $((now - begun)) -lt 20 ] && ! ls "$folder" | grep -q '\.pid$'; then
    echo "other=$run"
  fi
done
for program in setsid timeout "$tool"; do
  command -v "$program" > /dev/null || echo "missing=$program"
done
look
for port in $ports; do
  listens "$port" && echo "busy=$port"
done
echo "foreign=$(grep -lsx "$tool" /proc/[0-9]*/comm | wc -l)"
for folder in /sys/class/infiniband/*/ports/*; do
  [ -d "$folder" ] || continue
  device=${folder#/sys/class/infiniband/}
  interface=$(cat "$folder"/gid_attrs/ndevs/0 2> /dev/null)
  echo "port=${device%%/*} ${folder##*/} $(cut -d: -f1 "$folder/state") ${interface:--} $(cat "$folder/rate")"
done
for folder in /sys/class/net/*; do
  speed=$(cat "$folder/speed" 2> /dev/null) && echo "speed=${folder##*/} $speed"
done
command -v ip > /dev/null && ip -o addr show scope global | while read -r _ interface _ address _; do
  echo "address=$interface $address"
done
if command -v "$analyze" > /dev/null; then
  echo "analyze=1"
  "$analyze" host hca --print json 2> /dev/null | tr -d '\n' | sed 's/^/hca=/'
  echo
fi
true
"#;

/// The interfaces by which these addresses are reached. Then each line of standard input is answered with the host's time.
pub(super) fn clock(peers: &[&str]) -> Result<String, RemoteError> {
    let mut script = String::new();
    for peer in peers {
        let word = quoted([*peer])?;
        let _ = writeln!(
            script,
            "command -v ip > /dev/null && echo \"route={word} $(ip -o route get {word} 2> /dev/null | sed -n 's/.* dev \\([^ ]*\\).*/\\1/p' | head -n 1)\""
        );
    }
    script.push_str("echo end=1\nwhile read -r line; do echo \"time=$(date +%s.%N)\"; done\ntrue\n");
    Ok(script)
}

/// One process that is started.
#[derive(Clone, Debug)]
pub(super) struct Launch {
    /// Its name: the files of its pid, log and exit code.
    pub(super) name: String,
    /// Seconds after which it is ended.
    pub(super) limit: u64,
    /// The command.
    pub(super) words: Vec<String>,
}

/// The name of one side of a stream: `12s`, `12c`.
pub(super) fn side(number: usize, role: Role) -> String {
    match role {
        Role::Server => format!("{number}s"),
        Role::Client => format!("{number}c"),
    }
}

/// Starts processes, each in a session of its own. With `at`, a time of the host's clock in nanoseconds, they wait until then.
pub(super) fn launch(
    place: HostRun<'_>,
    folder: &str,
    at: Option<i128>,
    all: &[Launch],
) -> Result<String, RemoteError> {
    let mut script = place.head()?;
    let at = at.unwrap_or(0);
    let _ = write!(
        script,
        r#"umask 077
cd {} || exit 4
go() {{
  env "{RUN}=$id" "$at" "{SIDE}=$1" setsid sh -c '
    at={at} name=$1 limit=$2 stopped=
    shift 2
    trap "stopped=1" TERM INT HUP
    echo $$ > "$name.pid.tmp" && mv "$name.pid.tmp" "$name.pid"
    now() {{
      time=$(date +%s%N)
      case $time in *[!0-9]*) time=$(date +%s)000000000 ;; esac
      echo "$time"
    }}
    left=$((at - $(now)))
    if [ "$left" -gt 0 ] && [ "$left" -lt 60000000000 ]; then
      sleep "$((left / 1000000000)).$(printf %09d $((left % 1000000000)))"
    fi
    if [ -n "$stopped" ]; then
      echo 143 > "$name.rc"
      exit
    fi
    ulimit -f {MAX_LOG_BLOCKS}
    begun=$(now)
    echo "$begun" > "$name.start"
    timeout -k 3 "$limit" "$@" > "$name.log" 2>&1
    code=$?
    ended=$(now)
    # Tools have exit codes of their own for TERM; that of iperf3 is 0.
    if [ -n "$stopped" ]; then
      code=143
    fi
    # busybox does not say that the time was over.
    if [ "$code" = 143 ] && [ -z "$stopped" ] && [ $((ended - begun)) -ge $((limit * 1000000000)) ]; then
      code=124
    fi
    echo "$code" > "$name.rc.tmp"
    echo "$ended" > "$name.end"
    mv "$name.rc.tmp" "$name.rc"
  ' sh "$@" < /dev/null > /dev/null 2>&1 &
}}
"#,
        quoted([folder])?,
    );
    for launch in all {
        let words = quoted(launch.words.iter().map(String::as_str))?;
        let _ = writeln!(script, "go {} {} {words}", launch.name, launch.limit);
    }
    Ok(script)
}

/// Waits until servers listen or end, at most `tenths` tenths of a second. Says `listens=NAME` or `silent=NAME`.
pub(super) fn await_servers(
    place: HostRun<'_>,
    folder: &str,
    servers: &[(String, u16)],
    tenths: u32,
) -> Result<String, RemoteError> {
    let mut script = place.head()?;
    let names: Vec<String> = servers
        .iter()
        .map(|(name, port)| format!("{name}:{port}"))
        .collect();
    let _ = write!(
        script,
        r#"cd {} || exit 4
waiting={} turn=0
while :; do
  left=
  look
  for server in $waiting; do
    name=${{server%:*}}
    if [ -e "$name.rc" ]; then
      echo "silent=$name"
    elif listens "${{server#*:}}"; then
      echo "listens=$name"
    else
      left="$left $server"
    fi
  done
  waiting=$left
  turn=$((turn + 1))
  [ -n "$waiting" ] && [ "$turn" -lt {tenths} ] || break
  sleep 0.1 2> /dev/null || sleep 1
done
for server in $waiting; do
  echo "silent=${{server%:*}}"
done
"#,
        quoted([folder])?,
        quoted([names.join(" ").as_str()])?,
    );
    Ok(script)
}

/// The state of all processes of a run here; with `devices`, their counters over a second.
pub(super) fn status(place: HostRun<'_>, folder: &str, devices: &[String]) -> Result<String, RemoteError> {
    let mut script = place.head()?;
    let _ = write!(
        script,
        r#"cd {} 2> /dev/null || exit 0
echo "folder=1"
field() {{
  text=$(head -c 30 "$1" 2> /dev/null)
  echo "${{text:--}}"
}}
living=" $(live | tr '\n' ' ') "
for file in *.pid; do
  [ -f "$file" ] || continue
  name=${{file%.pid}} pid=$(head -c 20 "$file")
  case $living in *" $pid "*) alive=1 ;; *) alive=0 ;; esac
  echo "side=$name $alive $(field "$name.rc") $(field "$name.start") $(field "$name.end") $(stat -c %s "$name.log" 2> /dev/null || echo 0)"
  tail -c {STATUS_LOG_BYTES} "$name.log" 2> /dev/null | sed 's/^/|/'
  echo
done
count() {{
  for device in {}; do
    port=/sys/class/infiniband/${{device%:*}}/ports/${{device#*:}} net=/sys/class/net/${{device%:*}}/statistics
    if [ -e "$port/counters/port_xmit_data" ]; then
      echo "count=$device words $(cut -d ' ' -f 1 /proc/uptime) $(cat "$port/counters/port_xmit_data") $(cat "$port/counters/port_rcv_data")"
    elif [ -e "$port/hw_counters/sent_pkts" ]; then
      echo "count=$device packets $(cut -d ' ' -f 1 /proc/uptime) $(cat "$port/hw_counters/sent_pkts") $(cat "$port/hw_counters/rcvd_pkts")"
    elif [ -e "$net/tx_bytes" ]; then
      echo "count=$device bytes $(cut -d ' ' -f 1 /proc/uptime) $(cat "$net/tx_bytes") $(cat "$net/rx_bytes")"
    fi
  done
}}
count
{}
true
"#,
        quoted([folder])?,
        quoted(devices.iter().map(String::as_str))?,
        if devices.is_empty() { "" } else { "sleep 1\ncount" },
    );
    Ok(script)
}

/// The processes that are ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EndedProcesses {
    /// All but servers.
    Clients,
    /// All.
    All,
}

/// Ends the run's processes here: TERM, then KILL. Says how many of all kinds there were, how many were killed, and what is left.
pub(super) fn stop(place: HostRun<'_>, which: EndedProcesses) -> Result<String, RemoteError> {
    let mut script = place.head()?;
    let servers = u8::from(which == EndedProcesses::All);
    let _ = write!(
        script,
        r#"servers={servers}
serves() {{
  variables "/proc/$1/environ" | grep -qx "{SIDE}=[0-9]*s"
}}
chosen() {{
  for pid in $(live); do
    if [ "$servers" = 1 ] || ! serves "$pid"; then
      echo "$pid"
    fi
  done
}}
set -- $(live)
echo "found=$#"
first=$(chosen)
remaining() {{
  for pid in $first; do
    [ -d "/proc/$pid" ] && holds "$pid" && echo "$pid"
  done
}}
for pid in $first; do
  kill -TERM "$pid" 2> /dev/null
done
turn=0
while [ -n "$(remaining)" ] && [ "$turn" -lt {STOP_TENTHS} ]; do
  sleep 0.1 2> /dev/null || sleep 1
  turn=$((turn + 1))
done
killed=
[ -n "$first" ] && killed=$(chosen)
for pid in $killed; do
  kill -KILL "$pid" 2> /dev/null
done
left=
if [ -n "$killed" ]; then
  sleep 0.2 2> /dev/null || sleep 1
  left=$(chosen)
fi
set -- $killed
echo "killed=$#"
for pid in $left; do
  echo "left=$pid $(cat "/proc/$pid/comm" 2> /dev/null)"
done
"#
    );
    Ok(script)
}

/// Removes the files of a run here, and its folders if nothing else is in them.
pub(super) fn clean(folder: &str) -> Result<String, RemoteError> {
    Ok(format!(
        r"cd {} 2> /dev/null || exit 0
rm -f -- *.pid *.tmp *.rc *.log *.start *.end prepared
cd .. && rmdir -- {} 2> /dev/null
cd .. && rmdir -- {} 2> /dev/null
[ ! -d {} ]
",
        quoted([folder])?,
        quoted([folder.rsplit('/').next().unwrap_or_default()])?,
        quoted([folder.rsplit('/').nth(1).unwrap_or_default()])?,
        quoted([folder])?,
    ))
}

/// Prints a log.
pub(super) fn log(folder: &str, name: &str) -> Result<String, RemoteError> {
    Ok(format!(
        "cat {}",
        quoted([format!("{folder}/{name}.log").as_str()])?
    ))
}
