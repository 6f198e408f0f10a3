#!/usr/bin/env python3
"""What `roce-analyze metrics` prints, in the programs that it is for: promtool checks all files and runs tests/independent/prometheus/roce.test.yml;
then a Prometheus scrapes hosts made of files, one with an incast, one healthy, and a live run, and the alerts and all panels are asked.

    check.py PROGRAM FOLDER CAPTURE [PICTURES]

PROGRAM is roce-analyze, FOLDER takes everything that is written, CAPTURE is the capture of an incast that is sent to the live run.
With PICTURES, main panels of the dashboards are drawn into that folder, from the answers to their queries.
"""

import http.client
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import draw

HERE = Path(__file__).resolve().parent
# Recorded devices: their kinds in an inventory, and folders of tests/data/fabric.
DEVICES = [
    ("switch", "leaf1", "nexus", "nexus-cloud-scale"),
    ("switch", "leaf2", "nexus", "nexus-first-generation"),
    ("switch", "leaf3", "sonic", "sonic-leaf"),
    ("hypervisor", "esxi1", "esxi", "esxi-pfc"),
    ("hypervisor", "esxi2", "esxi", "esxi-global-pause"),
]
# Interfaces of the live run.
SENDER, RECEIVER = "roce-check0", "roce-check1"


def fail(text):
    sys.exit(f"error: {text}")


def run(*command, **options):
    done = subprocess.run(command, text=True, capture_output=True, timeout=120, **options)
    if done.returncode:
        fail(f"{' '.join(map(str, command))}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def write(path, text):
    """Replaces a file whole, as the kernel shows counters: never half of a number."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.new")
    beside.write_text(text)
    beside.replace(path)


class Host:
    """A recorded host with an adapter: its counters rise a little, and by an incast."""

    def __init__(self, root, incast):
        self.root, self.incast, self.turn, self.much, self.sent = root, incast, 0, 0, 0
        port = "sys/class/infiniband/mlx5_0/ports/1"
        self.port = root / port
        for name, text in {
            "state": "4: ACTIVE",
            "phys_state": "5: LinkUp",
            "rate": "100 Gb/sec (4X EDR)",
            "link_layer": "Ethernet",
            "gid_attrs/ndevs/0": "ens1f0np0",
            "gids/0": "0000:0000:0000:0000:0000:ffff:0a4d:0001",
            "gid_attrs/types/0": "RoCE v2",
        }.items():
            write(self.port / name, text + "\n")
        write(root / "sys/class/infiniband/mlx5_0/fw_ver", "28.39.1002\n")
        write(root / "answers/dcb-app.ens1f0np0.json", '{"dscp_prio":[[26,3],[48,6]]}')
        # A second adapter, whose link has 802.3x: one adapter shows either those counters or those of PFC.
        write(root / "sys/class/infiniband/mlx5_1/ports/1/gid_attrs/ndevs/0", "ens1f1np1\n")
        write(root / "sys/class/infiniband/mlx5_1/ports/1/state", "4: ACTIVE\n")
        write(root / "sys/class/infiniband/mlx5_1/ports/1/gids/0", "0000:0000:0000:0000:0000:ffff:0a4d:0101\n")
        write(root / "sys/class/infiniband/mlx5_1/ports/1/gid_attrs/types/0", "RoCE v2\n")
        self.move()

    def move(self):
        self.turn += 1
        self.much += 1000 if self.incast else 0
        # The incast costs a third of the throughput; that varies a little, in whole words of four bytes.
        self.sent += 1_000_000 * ((64 if self.incast else 96) + self.turn * 7 % 5)
        turn, much = self.turn, self.much
        for name, value in {
            "counters/port_xmit_data": self.sent,
            "counters/port_rcv_data": self.sent // 2,
            "counters/port_xmit_packets": turn * 100_000,
            "counters/port_rcv_packets": turn * 10_000,
            "hw_counters/np_ecn_marked_roce_packets": 40_000_000 + much * 2,
            "hw_counters/np_cnp_sent": 34_000_000 + much,
            "hw_counters/rp_cnp_handled": 34_000_000 + much,
            "hw_counters/rp_cnp_ignored": 0,
            "hw_counters/packet_seq_err": 7,
            "hw_counters/local_ack_timeout_err": 7,
            "hw_counters/rnr_nak_retry_err": 7,
            "hw_counters/out_of_sequence": 7,
            "hw_counters/out_of_buffer": 7,
            "hw_counters/rx_write_requests": turn * 100,
        }.items():
            write(self.port / name, f"{value}\n")
        pauses = much // 1000
        load = 20 + turn % 2 if self.incast else 97 + turn % 2
        gpus = "".join(
            f'DCGM_FI_DEV_{name}{{gpu="{gpu}",UUID="GPU-{gpu}",modelName="NVIDIA H100",pci_bus_id="00000000:{3 + gpu}B:00.0"}} {value}\n'
            for gpu in range(2)
            for name, value in {
                "GPU_UTIL": load,
                "FB_USED": 72_310,
                "FB_FREE": 8_600,
                "POWER_USAGE": 690 - gpu * 20,
                "GPU_TEMP": 64 + gpu,
                "SM_CLOCK": 1755,
                "CLOCK_THROTTLE_REASONS": 4,
            }.items()
        )
        write(self.root / "commands/gpus.txt", gpus)
        statistics = {
            "rx_prio3_pause": 41_210 + pauses,
            "rx_prio3_pause_duration": 12_034_511 + pauses * 40_000,
            "tx_prio3_pause": 9,
            "rx_prio3_discards": 0,
            "rx_crc_errors_phy": 0,
            "rx_pcs_symbol_err_phy": 0,
            "outbound_pci_stalled_rd_events": 0,
            "outbound_pci_stalled_wr_events": 0,
        }
        self.ethtool("ens1f0np0", statistics)
        # Frames that an earlier configuration left: a total, which alerts nobody.
        self.ethtool("ens1f1np1", {"rx_global_pause": 133_704_872, "rx_global_pause_transition": 66_852_436})

    def ethtool(self, name, statistics):
        lines = "".join(f"     {name}: {value}\n" for name, value in statistics.items())
        write(self.root / f"commands/ethtool_-S_{name}.txt", f"NIC statistics:\n{lines}")


class Fabric:
    """An inventory of recorded switches and hypervisors. One queue of leaf1 sends packets and marks some of them, and the ports of leaf3
    carry them; all other counters stand still: their rates are 0, and are there. In an incast leaf1's queue grows, marks more, and pauses the
    port behind it."""

    # By switch and file: a number of the recording, and what is added to it at each turn, calm and in an incast.
    COUNTERS = {
        ("leaf1", "show_queuing_interface.json"): {
            "2800112233": (900_000, 1_160_000),  # packets of queue 3
            "3012345678901": (968_400_000, 1_248_160_000),  # their bytes, 1,076 each
            "40812001": (900, 92_800),  # marked ones: 0.1 %, 8 %
        },
        ("leaf1", "show_interface_priority-flow-control.json"): {"9000": (0, 400)},
        ("leaf1", "show_interface_priority-flow-control_detail.txt"): {"9000": (0, 400), "8000": (0, 400)},
        ("leaf3", "sonic-db-dump_-n_COUNTERS_DB_-k__COUNTERS_oid____-y.json"): {
            "9007199254740993": (968_400_000, 1_248_160_000),
            "3012345678901": (96_840_000, 124_816_000),
        },
    }
    # A depth of the recording, and the depths, in bytes.
    DEPTH, CALM, INCAST = "151424", 12_480, 151_424

    def __init__(self, folder):
        self.folder, self.incast = folder, False
        for _, name, _, files in DEVICES:
            shutil.copytree(HERE.parents[1] / "data/fabric" / files, folder / name)
        self.recorded = {file: (folder / Path(*file)).read_text() for file in self.COUNTERS}
        self.added = {(file, number): 0 for file, numbers in self.COUNTERS.items() for number in numbers}
        tables = [
            f'[[{table}]]\nname = "{name}"\nkind = "{kind}"\nread = "{name}"\nevery = "1s"\n'
            for table, name, kind, _ in DEVICES
        ]
        self.inventory = folder / "fabric.toml"
        self.inventory.write_text("".join(tables))

    def move(self):
        for file, numbers in self.COUNTERS.items():
            now = {self.DEPTH: self.INCAST if self.incast else self.CALM}
            for number, more in numbers.items():
                self.added[file, number] += more[self.incast]
                now[number] = int(number) + self.added[file, number]
            # Columns of a text keep their width.
            wider = lambda found: str(now[found[1]]).ljust(len(found[0])) if found[1] in now else found[0]
            write(self.folder / Path(*file), re.sub(r"(?<!\d)(\d+)(?!\d)( *(?=\|))?", wider, self.recorded[file]))


class Children:
    """Programs that are running; all are ended at the end."""

    def __init__(self):
        self.all = []

    def start(self, *command, log, **options):
        out = open(log, "w")
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, **options)
        self.all.append(child)
        return child

    def end(self):
        for child in self.all:
            child.terminate()
        for child in self.all:
            try:
                child.wait(timeout=10)
            except subprocess.TimeoutExpired:
                child.kill()


def served(log, child):
    """Waits until a command says where it serves: HOST:PORT."""
    for _ in range(300):
        found = re.search(r"https?://([^/]+)/metrics", Path(log).read_text())
        if found:
            return found.group(1)
        if child.poll() is not None:
            break
        time.sleep(0.1)
    fail(f"it serves nothing: {Path(log).read_text()}")


def frames(capture):
    """The frames of a pcapng file in the byte order of this processor (draft-ietf-opsawg-pcapng, enhanced packet blocks)."""
    data, at = Path(capture).read_bytes(), 0
    while at + 12 <= len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == 6:
            captured, original = struct.unpack_from("<II", data, at + 20)
            yield data[at + 28 : at + 28 + captured].ljust(original, b"\0")
        at += length


class Prometheus:
    def __init__(self, port):
        self.port = port

    def get(self, path, **parameters):
        from urllib.parse import urlencode

        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request("GET", f"/api/v1/{path}?{urlencode(parameters)}")
        answer = json.load(connection.getresponse())
        if answer["status"] != "success":
            fail(f"{path} {parameters}: {answer}")
        return answer["data"]

    def query(self, expr):
        return self.get("query", query=expr)["result"]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def until(what, seconds, found):
    begun = time.monotonic()
    while time.monotonic() - begun < seconds:
        try:
            result = found()
        except (ConnectionError, http.client.HTTPException, socket.timeout):
            result = None
        if result:
            return result
        time.sleep(0.5)
    fail(f"{what}: not within {seconds} s")


def printed(program, folder):
    """Has the program write everything, and promtool check it."""
    for command in ["rules", "compat", "scrape-config", "systemd", "alertmanager", "dashboards"]:
        run(program, "metrics", "files", command, "-o", folder, "--overwrite")
    for name in ["roce.rules.yml", "roce-compat.rules.yml"]:
        run("promtool", "check", "rules", folder / name)
    run("promtool", "check", "config", folder / "prometheus.yml")
    shutil.copy(HERE / "roce.test.yml", folder / "roce.test.yml")
    print("promtool test rules:", run("promtool", "test", "rules", folder / "roce.test.yml").strip().splitlines()[-1].strip())
    if shutil.which("amtool"):
        run("amtool", "check-config", folder / "alertmanager.yml")
    if shutil.which("systemd-analyze"):
        # Its program is not installed here: everything else about the unit is checked.
        unit = (folder / "roce-analyze-metrics.service").read_text().replace("/usr/local/bin/roce-analyze", str(program))
        verified = folder / "roce-analyze-check.service"
        verified.write_text(unit)
        done = subprocess.run(["systemd-analyze", "verify", verified], text=True, capture_output=True)
        # Lines about this unit: others complain about the system's.
        wrong = [line for line in done.stderr.splitlines() if verified.name in line and "man" not in line]
        if wrong:
            fail(f"systemd-analyze verify: {wrong}")


def checked_text(text):
    """promtool's opinion of a scrape: it lints names, types and units, too."""
    done = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True)
    if done.returncode:
        fail(f"promtool check metrics: {done.stdout}{done.stderr}")


def scrape(address, accept=None):
    connection = http.client.HTTPConnection(address, timeout=10)
    connection.request("GET", "/metrics", headers={"Accept": accept} if accept else {})
    return connection.getresponse().read().decode()


def panels(folder):
    """Every expression of every dashboard, with the panel's name."""
    for path in sorted(folder.glob("roce-*.json")):
        dashboard = json.loads(path.read_text())
        for panel in dashboard["panels"]:
            for inner in [panel, *panel.get("panels", [])]:
                for target in inner.get("targets", []):
                    yield f"{dashboard['title']}: {inner['title']}", target["expr"]


def older_panels():
    """Queries of the dashboards of older exporters, by panel."""
    found = {}
    for line in (HERE / "older_panels.txt").read_text().splitlines():
        if not line.startswith("#"):
            name, query = line.split("\t")
            found.setdefault(name, []).append(query)
    return found


def left_out(folder):
    """Names that the compatible names leave out, as patterns: the head of their file lists them."""
    lines = (folder / "roce-compat.rules.yml").read_text().splitlines()
    names = [line.removeprefix("# - ").split(": ")[0] for line in lines if line.startswith("# - ")]
    return [re.escape(name).replace(r"\*", r"\w*") for name in names]


def series_name(legend, labels, names):
    """Name of a series: its legend with the labels filled in, and targets by their names."""
    value = lambda match: names.get(labels.get(match[1], ""), labels.get(match[1], ""))
    if legend == "__auto":
        return ", ".join(names.get(value, value) for name, value in sorted(labels.items()) if name not in ("__name__", "cluster", "job"))
    return re.sub(r"\{\{(\w+)\}\}", value, legend).strip()


def pictures(prometheus, folder, target, names, begin, end):
    """Draws the panels of each dashboard that show something over this time."""
    for path in sorted(folder.glob("roce-*.json")):
        dashboard = json.loads(path.read_text())
        # The open row's panels lie beside the rows, those of others in them.
        rows = [dashboard["panels"], *(panel.get("panels", []) for panel in dashboard["panels"])]
        drawn = []
        for row, panel in [(row, panel) for row in range(len(rows)) for panel in rows[row] if panel["type"] == "timeseries"]:
            if any(f"[{days}d" in query["expr"] or f"avg{days}d" in query["expr"] for query in panel["targets"] for days in (1, 7)):
                continue
            series = []
            for query in panel["targets"]:
                answer = prometheus.get("query_range", query=filled(query["expr"]), start=begin, end=end, step=1)
                for found in answer["result"]:
                    points = [(float(time), float(value)) for time, value in found["values"] if value not in ("NaN", "+Inf", "-Inf")]
                    if points:
                        series.append((series_name(query["legendFormat"], found["metric"], names), points))
            if any(value for _, points in series for _, value in points):
                unit = panel["fieldConfig"]["defaults"]["unit"]
                # The largest first: not all have room.
                series.sort(key=lambda found: (-max(abs(value) for _, value in found[1]), found[0]))
                drawn.append((sum(other[1] == row for other in drawn), row, (panel["title"], unit, series)))
        if len(drawn) < 2:
            print(f"no picture of {path.stem}: its metrics stand still, or need days")
            continue
        target.mkdir(parents=True, exist_ok=True)
        # The first ones of each row, in the dashboard's order.
        main_panels = sorted(sorted(drawn, key=lambda found: found[:2])[: draw.PANELS], key=lambda found: (found[1], found[0]))
        text = draw.dashboard(dashboard["title"], [panel for _, _, panel in main_panels], (begin, end))
        (target / f"dashboard-{path.stem.removeprefix('roce-')}.svg").write_text(text)
        print(f"{path.stem}: {len(main_panels)} of {len(drawn)} panels with data are drawn")


def filled(expr):
    for name, value in {"$__rate_interval": "10s", "$__range": "1m"}.items():
        expr = expr.replace(name, value)
    return re.sub(r'"\$\w+"', '".*"', expr)


def veth():
    """A pair of interfaces without addresses, for a capture; None where that is not possible."""
    if os.geteuid() != 0:
        return "not root"
    if not shutil.which("ip"):
        return "no ip (iproute2)"
    subprocess.run(["ip", "link", "del", SENDER], capture_output=True)
    made = subprocess.run(
        ["ip", "link", "add", SENDER, "mtu", "9000", "type", "veth", "peer", "name", RECEIVER, "mtu", "9000"],
        capture_output=True,
        text=True,
    )
    if made.returncode:
        return made.stderr.strip()
    for name in [SENDER, RECEIVER]:
        run("ip", "link", "set", name, "addrgenmode", "none")
        run("ip", "link", "set", name, "up")
    return None


def main():
    program, folder, capture = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), sys.argv[3]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    printed(program, folder)

    children = Children()
    no_live = veth()
    try:
        (folder / "fabric").mkdir()
        fabric = Fabric(folder / "fabric")
        hosts = {name: Host(folder / name, name == "incast") for name in ["incast", "healthy"]}
        addresses = {}
        for name in hosts:
            # Read whoever the server becomes: the folder may lie where only root can look.
            log = folder / f"{name}.log"
            command = [program, "metrics", "serve", "--listen", "127.0.0.1:0", "--interval", "500ms"]
            command += ["--doctor-every", "1s", "--read", folder / name]
            if name == "healthy":
                command += ["--inventory", fabric.inventory]
            child = children.start(*command, "--no-sandbox", log=log)
            addresses[name] = served(log, child)
        if no_live:
            print(f"SKIPPED: a live run: {no_live}")
        else:
            log = folder / "live.log"
            command = [program, "live", "-i", RECEIVER, "--no-tui", "--format", "none", "--metrics", "127.0.0.1:0"]
            child = children.start(*command, log=log)
            addresses["live"] = served(log, child)
        for address in addresses.values():
            checked_text(scrape(address))
            if not scrape(address, "application/openmetrics-text").endswith("\n# EOF\n"):
                fail("OpenMetrics does not end in EOF")

        # The printed configuration, in shorter time: intervals of a second, and alerts that do not wait.
        targets = [option for address in addresses.values() for option in ["--target", address]]
        run(program, "metrics", "files", "scrape-config", *targets, "-o", folder, "--overwrite")
        config = folder / "prometheus.yml"
        quick_config = re.sub(r"(_interval): \d+s", r"\1: 1s", config.read_text())
        config.write_text(quick_config.replace("rule_files:\n", "rule_files:\n  - roce-compat.rules.yml\n", 1))
        rules = (folder / "roce.rules.yml").read_text()
        quick = re.sub(r"^(\s+for): .*$", r"\1: 0s", rules, flags=re.M)
        quick = re.sub(r"^(    interval): 30s$", r"\1: 1s", quick, flags=re.M)
        (folder / "roce.rules.yml").write_text(quick)
        port = free_port()
        children.start(
            "prometheus",
            f"--config.file={config}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
            log=folder / "prometheus.log",
        )
        prometheus = Prometheus(port)
        packets = [] if no_live else list(frames(capture))

        def moves():
            """Time goes on: counters rise, packets are sent."""
            for host in [*hosts.values(), fabric]:
                host.move()
            if packets:
                with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
                    out.bind((SENDER, 0))
                    for packet in packets[:20000]:
                        out.send(packet)

        def alerts():
            moves()
            return {(alert["labels"]["alertname"], alert["labels"].get("instance", "")) for alert in prometheus.get("alerts")["alerts"] if alert["state"] == "firing"}

        until("all targets are scraped", 60, lambda: len(prometheus.query("up == 1")) == len(addresses))
        wanted = ("RoceCongestion", addresses["incast"])
        until("the alert of the incast", 120, lambda: wanted in alerts())
        # Rates need two scrapes, and recorded series an evaluation behind them.
        for _ in range(10):
            alerts()
            time.sleep(1)
        firing = alerts()
        if wanted not in firing:
            fail(f"{wanted} fires no more: {firing}")
        wrong = [alert for alert in firing if alert[1] == addresses["healthy"] or alert[0] in ("RoceExporterDown", "RoceReadingsFail")]
        if wrong:
            fail(f"a healthy host, and alerts: {wrong}")
        for group in prometheus.get("rules")["groups"]:
            for rule in group["rules"]:
                if rule.get("lastError"):
                    fail(f"{rule['name']}: {rule['lastError']}")

        asked = empty = old = 0
        for name, expr in panels(folder):
            query = filled(expr)
            result = prometheus.query(query)
            if result:
                asked += 1
            elif "roce_live_step_" in expr:
                # Bursts at even distances make steps, once there are enough of them.
                empty += 1
            elif "1d]" in expr or "avg1d" in expr:
                old += 1
            elif "== 1" in expr or "> 0" in expr and "errors" in expr:
                # What stands only where something is wrong.
                empty += 1
            else:
                fail(f"no data: {name}: {query}")
        print(
            f"alerts: {sorted(name for name, _ in firing)}; panels: {asked} queries have data, {empty} have none because nothing is wrong, "
            f"{old} need a day of data"
        )
        absent = []
        unknown = left_out(folder)
        for name, queries in older_panels().items():
            if any(prometheus.query(query) for query in queries):
                continue
            if not all(any(re.search(name, query) for name in unknown) for query in queries):
                fail(f"no data of an older dashboard: {name}: {queries}")
            absent.append(name)
        print(f"older dashboards: {len(older_panels()) - len(absent)} of {len(older_panels())} panels have data, listed as left out: {', '.join(absent)}")
        if asked < 30:
            fail("too few panels have data")
        if len(sys.argv) > 4:
            begin = time.time() + 5
            # A calm time, an incast, and a calm time again.
            for second in range(95):
                hosts["incast"].incast = fabric.incast = 35 <= second < 65
                if 35 <= second < 65 or not packets:
                    moves()
                else:
                    for host in [*hosts.values(), fabric]:
                        host.move()
                time.sleep(max(0.0, begin - 5 + second + 1 - time.time()))
            names = {addresses["incast"]: "gpu1:9902", addresses["healthy"]: "gpu2:9902"}
            names[addresses.get("live")] = "gpu1:9903"
            pictures(prometheus, folder, Path(sys.argv[4]), names, begin, begin + 90)
    finally:
        children.end()
        if no_live is None:
            subprocess.run(["ip", "link", "del", SENDER], capture_output=True)


main()
