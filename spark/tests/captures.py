#!/usr/bin/env python3
"""Writes the captures of the test fleet: ten hosts in two racks, four days, one capture of each host a day, by `roce-analyze simulate`.

    captures.py BINARY FOLDER      FOLDER gets raw/HOST/DATE.pcapng, truth/DATE.json and fabric.toml

Three days are alike. On the fourth, five hosts write to h5 at once, one of them by four queue pairs,
and h1 with little data; the link from h5 loses packets; h4's clock is 300 us ahead.
Standard library only.
"""

import datetime
import pathlib
import subprocess
import sys

HOSTS = [f"h{number}" for number in range(1, 11)]
DAYS = ["2026-03-02", "2026-03-03", "2026-03-04", "2026-03-05"]
LAST = DAYS[-1]

# Offsets of the clocks, in nanoseconds: small ones everywhere, and the bad one of the last day.
OFFSETS = {host: (number * 37 % 11 - 5) * 100 for number, host in enumerate(HOSTS)}
BAD_CLOCK = ("h4", 300_000)

# Ranks of two jobs of training. h5 and h10 hold data.
JOBS = {"train-a": ["h1", "h2", "h3", "h4"], "train-b": ["h6", "h7", "h8", "h9"]}

SCENARIO = """
title = "a fleet of ten hosts in two racks"
seed = {seed}
duration = "14ms"
start = {start}

[network]
hosts = 10
topology = "leaf-spine"
leaves = 2
spines = 2
rate = "10Gbps"
uplink_rate = "40Gbps"

[switch]
kmin = "20KB"
kmax = "200KB"
pmax = 0.2

[nic]
mtu = 4096
ack_every = 16
timeout = "500us"

[[training]]
name = "train-a"
ranks = "h1..h4"
steps = 10
compute = "400us"
bytes = "128KiB"

[[training]]
name = "train-b"
ranks = "h6..h9"
steps = 10
compute = "400us"
bytes = "128KiB"

[[flow]]
name = "store"
from = "h5"
to = "h10"
message = "64KiB"
pace = "2Gbps"
"""

# What the fourth day has beside the others.
BAD_DAY = """
[[flow]]
name = "incast"
from = "h7..h10"
to = "h5"
message = "128KiB"
outstanding = 2
begin = "5ms"
jitter = "50us"
end = "6ms"

[[flow]]
name = "aggressor"
from = "h6"
to = "h5"
qps = 4
message = "128KiB"
outstanding = 2
begin = "5ms"
jitter = "50us"
end = "6ms"

[[flow]]
name = "victim"
from = "h1"
to = "h5"
message = "8KiB"
interval = "100us"
begin = "5ms"
end = "6ms"

[[impairment]]
from = "h5"
to = "leaf1"
loss = 0.01
only = "data"
"""


def scenario(day):
    """The scenario of a day."""
    start = datetime.datetime.fromisoformat(f"{day}T10:00:00+00:00")
    text = SCENARIO.format(seed=DAYS.index(day) + 1, start=int(start.timestamp()))
    if day == LAST:
        text += BAD_DAY
    for host in HOSTS:
        text += f'\n[[tap]]\nat = "{host}"\nname = "{host}"\nsnaplen = 96\nclock_offset_ns = {offset(host, day)}\n'
    return text


def offset(host, day):
    """The offset of a host's clock on a day, in nanoseconds."""
    return BAD_CLOCK[1] if (host, day) == (BAD_CLOCK[0], LAST) else OFFSETS[host]


def job_and_rank(host):
    """The job of a host, and its rank in it; empty texts without one."""
    for job, hosts in JOBS.items():
        if host in hosts:
            return job, str(hosts.index(host))
    return "", ""


def write(binary, folder):
    """Writes all of it."""
    folder = pathlib.Path(folder)
    (folder / "truth").mkdir(parents=True)
    for day in DAYS:
        plan = folder / "truth" / f"{day}.toml"
        plan.write_text(scenario(day))
        truth = folder / "truth" / f"{day}.json"
        subprocess.run([binary, "simulate", plan, "-o", folder / "x.pcapng", "--truth", truth], check=True, stdout=subprocess.DEVNULL)
        for host in HOSTS:
            raw = folder / "raw" / host
            raw.mkdir(parents=True, exist_ok=True)
            (folder / f"x-{host}.pcapng").rename(raw / f"{day}.pcapng")
    with open(folder / "fabric.toml", "w") as file:
        for number, host in enumerate(HOSTS, 1):
            job, rank = job_and_rank(host)
            rack = "r1" if number <= 5 else "r2"
            file.write(f'[[host]]\nname = "{host}"\nrack = "{rack}"\naddresses = {{ eth0 = "10.0.0.{number}" }}\n')
            if job:
                file.write(f'job = "{job}"\nrank = {rank}\n')


if __name__ == "__main__":
    write(sys.argv[1], sys.argv[2])
