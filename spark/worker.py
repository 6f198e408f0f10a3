#!/usr/bin/env python3
"""Runs roce-analyze for one task of a fleet: a capture, a day, a group. Standard library only.

    worker.py RAW DS [--captures FILE] [--part I --parts N]     analyses captures by itself: a Kubernetes Job, a cron job

Rules, whoever calls:
- A task never raises. What failed at last is a row with `error`.
- A binary that is killed, or takes too long, is tried again. One that refuses its input is tried once more, for disks and networks.
- At most `slots` binaries run at once on a machine, whatever the engine starts: each holds a lock.
- A second run of the same capture writes the same names: two workers may have one task at the same time (speculation).
"""

import argparse
import contextlib
import fcntl
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

# Names of captures.
CAPTURE = re.compile(r"\.(pcap|pcapng|cap|ntar)(\.(gz|zst))?$")

# Most bytes of a manifest line, and of an error, that are kept.
MAX_LINE = 65536
MAX_ERROR = 2000

# Most captures of a run.
MAX_CAPTURES = 1_000_000


def row_of(key, host="", **more):
    """The row of a task."""
    row = {"capture": key, "host": host, "run_id": None, "error": None, "tries": 0, "seconds": 0.0, "waited": 0.0, "manifest": None}
    row.update(more)
    return row


@contextlib.contextmanager
def slot(slots):
    """Holds one of the machine's slots: a locked file, which a program that inherits it keeps locked to its own end."""
    folder = pathlib.Path(tempfile.gettempdir(), f"roce-analyze-slots-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.lstat().st_uid != os.getuid():
        raise OSError(f"{folder} belongs to somebody else")
    files = [open(folder / str(number), "w") for number in range(slots)]
    try:
        while True:
            for file in files:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                yield file
                return
            time.sleep(0.02)
    finally:
        for file in files:
            file.close()


def run_once(command, timeout, held):
    """Runs a command in a session of its own. Its exit code, its last line, what it said; the code is negative if it was killed."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        # It inherits its slot: an engine can kill this process without it, and the slot is busy until it ends.
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True, pass_fds=[held.fileno()]
        )
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return -signal.SIGKILL, "", f"it took longer than {timeout} s"
        except KeyboardInterrupt:
            # Only a person ends it. If an engine gives up this worker, because another has the task too, the binary goes on to its end:
            # one that dies while it replaces a run that is there would take that run away.
            os.killpg(process.pid, signal.SIGKILL)
            raise
        return code, tail(out, MAX_LINE).strip().rpartition("\n")[2], tail(err, MAX_ERROR).strip()


def tail(file, size):
    """The end of a file."""
    end = file.seek(0, os.SEEK_END)
    file.seek(max(0, end - size))
    return file.read().decode("utf-8", "replace")


def attempt(command, row, tries=3, timeout=3600, slots=None):
    """Runs a command until it succeeds or has had its tries, and completes the row."""
    begun, refusals = time.monotonic(), 0
    while row["tries"] < tries and refusals < 2:
        row["tries"] += 1
        try:
            with slot(slots or os.cpu_count() or 1) as held:
                row["waited"] = time.monotonic() - begun
                started = time.monotonic()
                code, line, said = run_once(command, timeout, held)
                row["seconds"] = time.monotonic() - started
        except OSError as error:
            code, line, said = 1, "", str(error)
        manifest = {}
        with contextlib.suppress(ValueError):
            manifest = json.loads(line)
        if isinstance(manifest, dict) and "run_id" in manifest:
            row["run_id"], row["manifest"], row["error"] = manifest["run_id"], line, manifest.get("error")
            if "run" in manifest.get("rows", {}):
                # It is in the dataset, with an error or without.
                return row
        if code == 0:
            row["error"] = None
            return row
        if code < 0:
            row["error"] = f"killed by signal {-code}" + (f": {said}" if said else "")
        else:
            row["error"] = row["error"] or said or f"exit code {code}"
            refusals += 1
    return row


def analyse(binary, raw, dataset, key, host, options=(), **limits):
    """Analyses one capture into the dataset."""
    command = [binary, join(raw, key), "-o", dataset, "--layout", "fleet", "--host", host, "--capture", key, *options]
    return attempt(command, row_of(key, host), **limits)


def command(line, key, host, **limits):
    """Runs any command as a task."""
    return attempt(line, row_of(key, host), **limits)


def place_of(text):
    """A path as workers need it, which have other working folders: absolute. Addresses in an object store stay as they are."""
    return text if "://" in text else os.path.abspath(text)


def program_of(text):
    """A program as workers need it: found on their PATH, or by an absolute path."""
    return os.path.abspath(text) if "/" in text else text


def join(place, key):
    """A path, or an address in an object store, below another."""
    return f"{place.rstrip('/')}/{key}"


def is_there(dataset, row):
    """False if the row says that its run was written, and the dataset, a folder, has no such run: a second copy of the task died over it."""
    manifest = json.loads(row["manifest"] or "{}")
    names = [manifest.get("host", ""), manifest.get("run_id", "")]
    plain = all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name) for name in names)
    if not plain or "run" not in manifest.get("rows", {}) or not os.path.isdir(dataset):
        return True
    day = manifest.get("date") or "__HIVE_DEFAULT_PARTITION__"
    return os.path.exists(f"{dataset}/run/date={day}/host={names[0]}/{names[1]}.parquet")


def host_of(key, inventory):
    """The host of a capture: that of the longest path in the inventory that leads to it, else its first folder, else its name up to a dot."""
    parts = key.split("/")
    for length in range(len(parts), 0, -1):
        if "/".join(parts[:length]) in inventory:
            return inventory["/".join(parts[:length])]
    return parts[0] if len(parts) > 1 else parts[0].split(".")[0]


def hosts(path):
    """Hosts by path from `captures` of the hosts in fabric.toml, as `roce-analyze dataset map --inventory` reads it; none without a file."""
    if not path:
        return {}
    # Python 3.11 has it. Only the machine that makes the tasks reads an inventory.
    import tomllib

    inventory = tomllib.loads(pathlib.Path(path).read_text())
    return {place.strip("/"): host["name"] for host in inventory.get("host", []) for place in host.get("captures", [])}


def find(raw):
    """Keys of all captures below a folder, the largest first."""
    found = []
    for folder, _, names in os.walk(raw):
        for name in names:
            if CAPTURE.search(name) and not name.startswith("."):
                path = os.path.join(folder, name)
                found.append((-os.path.getsize(path), os.path.relpath(path, raw)))
                if len(found) > MAX_CAPTURES:
                    sys.exit(f"{raw} has more than {MAX_CAPTURES} captures")
    return [key for _, key in sorted(found)]


def listed(path):
    """Keys of captures in a file, one on each line."""
    lines = pathlib.Path(path).read_text().splitlines()
    return [line.strip() for line in lines if line.strip()]


def options_of(parser):
    """Options that this and the Spark programs have."""
    parser.add_argument("--binary", type=program_of, default="roce-analyze", help="the program, as the workers find it")
    parser.add_argument("--captures", help="a file with a key on each line, for object stores; without it all captures below RAW")
    parser.add_argument("--inventory", help="fabric.toml, whose hosts name their captures or folders below RAW")
    parser.add_argument("--options", default="", help="further options of the analysis, separated by spaces")
    parser.add_argument("--tries", type=int, default=3, help="times that a binary is started for a capture")
    parser.add_argument("--timeout", type=float, default=3600, help="seconds for one capture")
    parser.add_argument("--slots", type=int, help="binaries at once on a machine; as many as it has cores")


def main():
    """Analyses captures one after the other, a manifest row on each line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("raw", type=place_of)
    parser.add_argument("dataset", type=place_of)
    options_of(parser)
    index = int(os.environ.get("JOB_COMPLETION_INDEX", "0"))
    parser.add_argument("--part", type=int, default=index, help="the part of the captures; JOB_COMPLETION_INDEX of Kubernetes by default")
    parser.add_argument("--parts", type=int, default=1)
    given = parser.parse_args()
    keys = listed(given.captures) if given.captures else find(given.raw)
    inventory, failed = hosts(given.inventory), 0
    for key in keys[given.part :: given.parts]:
        limits = {"tries": given.tries, "timeout": given.timeout, "slots": given.slots}
        host = host_of(key, inventory)
        row = analyse(given.binary, given.raw, given.dataset, key, host, given.options.split(), **limits)
        failed += row["error"] is not None
        print(json.dumps(row), flush=True)
    # Captures that fail are rows: the Job is not to start again for them.
    print(f"{len(keys[given.part :: given.parts])} captures, {failed} with an error", file=sys.stderr)


if __name__ == "__main__":
    main()
