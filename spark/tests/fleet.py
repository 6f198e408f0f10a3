#!/usr/bin/env python3
"""The test of a fleet: captures of ten hosts, a real Spark cluster on loopback, a worker that is lost, and the answers of two engines.

    fleet.py BINARY FOLDER [PYTHON]

Needs PySpark, PyArrow, DuckDB and Java; PYTHON is one that has moto, an S3. FOLDER is emptied. Ends with a line for each thing that is held, and 1 if one is not.
"""

import contextlib
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import answers  # noqa: E402
import captures  # noqa: E402
import cluster  # noqa: E402
import jobs  # noqa: E402
import sql  # noqa: E402
import worker  # noqa: E402

QUESTIONS = ["destinations", "incasts", "racks", "pairs", "ends", "clocks", "jobs"]

# Tables that the questions read.
TABLES = ["run", "flows", "timeline", "episodes", "steps"]

# Captures on which the binary fails, by their keys, and what their rows say.
POISON = {
    "h1/kills.pcapng": "killed by signal 9",
    "h2/random.pcap": "random.pcap",
    "h3/cut.pcapng": "cut",
}

# Bins as narrow as the traffic of these captures, which last 14 ms.
OPTIONS = "--bin 20us"

# Runs that are in the dataset before a worker is killed.
BEFORE_THE_KILL = 10

# A time for `run.started`: a second run has the same bytes.
EPOCH = "1772755200"


class Held:
    """What was checked."""

    def __init__(self):
        self.wrong = []
        self.begun = time.monotonic()

    def is_true(self, what, holds, details=""):
        """Notes a check, and says so."""
        print(f"   {time.monotonic() - self.begun:5.1f} s  {'' if holds else 'WRONG: '}{what}{f': {details}' if details else ''}", flush=True)
        if not holds:
            self.wrong.append(what)


def script(path, text):
    """Writes a program."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def poison(raw):
    """Captures on which the binary fails."""
    good = raw / "h1" / f"{captures.LAST}.pcapng"
    (raw / "h1" / "kills.pcapng").write_bytes(good.read_bytes())
    (raw / "h2" / "random.pcap").write_bytes(random.Random(1).randbytes(50_000))
    whole = bytearray(good.read_bytes())
    # The length of a block in the middle is beyond the file.
    middle = whole.index(b"\x06\x00\x00\x00", len(whole) // 2)
    whole[middle + 4 : middle + 8] = b"\xf0\xff\xff\x7f"
    (raw / "h3" / "cut.pcapng").write_bytes(whole)


def files(dataset):
    """Hashes of all files in the dataset, hidden ones too."""
    paths = [path for path in pathlib.Path(dataset).rglob("*") if path.is_file()]
    return {str(path.relative_to(dataset)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def committed(dataset):
    """Files of committed runs."""
    return sorted(str(path.relative_to(dataset)) for path in pathlib.Path(dataset).glob("run/date=*/host=*/*.parquet"))


def submitted(spark, folder, binary, raw, dataset):
    """Starts `spark-submit spark/map.py` as a user does."""
    command = [cluster.HOME / "bin/spark-submit", "--master", spark.master_url]
    for key, value in cluster.settings().items():
        command += ["--conf", f"{key}={value}"]
    command += [ROOT / "map.py", raw, dataset, "--binary", binary, f"--options={OPTIONS}", "--slots", "8"]
    command += ["--manifest", folder / "manifest.jsonl"]
    log = open(folder / "submit.log", "w")
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=spark.environment)


def lose_a_worker(held, spark, folder, binary, raw, dataset):
    """All captures are analysed, although a worker and its executor are killed in the middle."""
    process = submitted(spark, folder, binary, raw, dataset)
    end = time.monotonic() + 180
    while len(committed(dataset)) < BEFORE_THE_KILL and process.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    done = len(committed(dataset))
    spark.kill("b@127.0.0.2")
    held.is_true("a worker was killed in the middle", BEFORE_THE_KILL <= done < 40, f"{done} runs were in the dataset")
    try:
        code = process.wait(240)
    except subprocess.TimeoutExpired:
        process.kill()
        code = None
    said = (folder / "submit.log").read_text(errors="replace")
    held.is_true("the job ends, and its exit code says that captures failed", code == 1, said.strip().rpartition("\n")[2])
    if code != 1:
        print(said[-3000:])
        return
    rows = [json.loads(line) for line in (folder / "manifest.jsonl").read_text().splitlines()]
    good = [row for row in rows if row["error"] is None]
    keys = [row["capture"] for row in good]
    expected = sorted(f"{host}/{day}.pcapng" for host in captures.HOSTS for day in captures.DAYS)
    held.is_true("40 of 40 captures, each once", sorted(keys) == expected, f"{len(keys)} rows")
    failed = {row["capture"]: row for row in rows if row["error"] is not None}
    held.is_true("captures that fail are rows", sorted(failed) == sorted(POISON), f"{sorted(failed)}")
    for key, said in POISON.items():
        row = failed.get(key, {})
        held.is_true(f"{key} has its reason", said in str(row.get("error")), f"{row.get('error')}, {row.get('tries')} tries")
    held.is_true("a capture that kills the binary has had its tries", failed.get("h1/kills.pcapng", {}).get("tries") == 3)
    left = [name for name in files(dataset) if "/." in name]
    held.is_true("no unfinished file is left", not left, " ".join(left[:3]))


def no_binary_runs(slots):
    """Waits until no binary runs: one whose worker was lost goes on to its end."""
    with contextlib.ExitStack() as all_slots:
        for _ in range(slots):
            all_slots.enter_context(worker.slot(slots))


def second_run(held, session, given, dataset):
    """A second run leaves the same files, byte for byte."""
    no_binary_runs(given.slots)
    before = files(dataset)
    rows = list(mapped(session, given))
    no_binary_runs(given.slots)
    after = files(dataset)
    differing = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    held.is_true("a second run leaves the same files", not differing, f"{len(rows)} captures, {len(before)} files; {differing[:3]}")


def mapped(session, given):
    """Rows of spark/map.py in this process."""
    import map as program

    return program.run(session, given.raw, given.dataset, given)


class Given:
    """Options of spark/map.py."""

    captures = inventory = None
    options = OPTIONS
    tries, timeout, slots = 3, 600, 8

    def __init__(self, **more):
        self.__dict__.update(more)


def waiting(session, folder, program, count):
    """Seconds of a job that runs a program for each of some captures, and the rows."""
    listed = folder / "waiting.txt"
    listed.write_text("\n".join(f"h{number % 10}/{number}.pcapng" for number in range(count)))
    given = Given(captures=str(listed), binary=program, raw="/nowhere", dataset="/nowhere", options="")
    begun = time.monotonic()
    rows = list(mapped(session, given))
    return time.monotonic() - begun, rows


def slots_scale(held, session, spark, folder):
    """A job that only waits takes half the time on twice the slots. The time per capture beyond the binary's own is measured."""
    sleeps = script(folder / "sleeps.sh", "exec sleep 1")
    waiting(session, folder, sleeps, 2)
    two, _ = waiting(session, folder, sleeps, 12)
    spark.add("c@127.0.0.1", "d@127.0.0.2")
    # The executors of the new workers start by themselves, on a busy machine late.
    four, end = two, time.monotonic() + 90
    while four > two * 0.7 and time.monotonic() < end:
        four, _ = waiting(session, folder, sleeps, 12)
    # 12 s of waiting: at least 6 s on two slots and 3 s on four. On two slots four would take as long as before.
    held.is_true("slots scale from 2 to 4", two >= 6 and 3 <= four <= two * 0.7, f"12 s of waiting: {two:.1f} s, then {four:.1f} s")


def cost(session, spark, folder, slots):
    """What a capture costs beyond the binary's own, by a binary that does nothing: seconds of a slot, of the workers' processors, of the driver's."""
    nothing = script(folder / "nothing.sh", "exit 0")
    waiting(session, folder, nothing, 8)
    before = spark.cpu_seconds()
    wall, rows = waiting(session, folder, nothing, 200)
    workers, driver = (now - then for now, then in zip(spark.cpu_seconds(), before))
    binary = sum(row["seconds"] for row in rows)
    return (wall * slots - binary) / len(rows), workers / len(rows), driver / len(rows), wall


def one_binary_a_slot(held, folder):
    """Of four threads that want to run at once, as many do as there are slots."""
    marks = folder / "marks"
    marks.mkdir()
    program = script(folder / "marks.sh", f'touch {marks}/$1.$$; ls {marks} | wc -l >> {folder}/most.txt; sleep 0.2; rm {marks}/$1.$$')
    limits = {"tries": 1, "timeout": 60, "slots": 2}
    threads = [threading.Thread(target=worker.attempt, args=([program, str(number)], worker.row_of("x")), kwargs=limits) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    most = max(map(int, (folder / "most.txt").read_text().split()))
    held.is_true("at most one binary a slot", most == 2, f"{most} at once on 2 slots")
    # The worker is killed while its program runs.
    began, ended = folder / "began.txt", folder / "ended.txt"
    program = script(folder / "goes-on.sh", f"touch {began}; sleep 0.5; touch {ended}")
    text = f"import worker; worker.attempt([{program!r}], worker.row_of('x'), slots=1)"
    process = subprocess.Popen([sys.executable, "-c", text], cwd=ROOT)
    while not began.exists() and process.poll() is None:
        time.sleep(0.01)
    process.kill()
    process.wait()
    with worker.slot(1):
        held.is_true("a slot is busy until its binary ends, whose worker was killed", began.exists() and ended.exists())
    begun = time.monotonic()
    row = worker.attempt(["sleep", "60"], worker.row_of("x"), tries=1, timeout=0.3, slots=2)
    held.is_true("a binary that takes too long is ended", "took longer" in row["error"] and time.monotonic() - begun < 10)


def both_engines(held, session, folder, binary, dataset):
    """Answers of DuckDB and Spark are equal, and those of the truth."""
    given = sql.parse([str(dataset), "all", "--binary", binary])
    *views, _ = sql.text_of(given, "destinations")
    sql.prepare(session, views)
    for table in TABLES:
        session.sql(f"CACHE TABLE {table}")
    found = {}
    for name in QUESTIONS:
        duckdb = asked(binary, dataset, name)
        begun = time.monotonic()
        spark = [row.asDict() for row in session.sql(sql.text_of(given, name)[-1]).collect()]
        same = len(duckdb) == len(spark) and all(map(near, duckdb, spark))
        held.is_true(f"{name}: Spark and DuckDB", same, f"{len(duckdb)} rows, Spark {time.monotonic() - begun:.1f} s")
        if not same:
            differing = [pair for pair in zip(duckdb, spark) if not near(*pair)]
            print(f"      DuckDB {len(duckdb)} rows, Spark {len(spark)}: {differing[:2]}")
        found[name] = duckdb
    wrong = answers.check(folder, found)
    held.is_true("answers are those of the simulator's truth", not wrong, "; ".join(wrong[:5]))
    return found


def asked(binary, dataset, name):
    """The answer of DuckDB."""
    answer = subprocess.run([binary, "query", dataset, name, "--format", "json"], check=True, stdout=subprocess.PIPE, env=environment())
    return json.loads(answer.stdout)


def environment():
    """The environment in which `python3` is this one."""
    return {**os.environ, "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}", "NO_COLOR": "1"}


def near(one, other):
    """True if two rows are equal, numbers of floating point but for their last digits."""
    if one.keys() != other.keys():
        return False
    for key, value in one.items():
        with_it = other[key]
        if isinstance(value, float) and with_it is not None:
            if abs(value - with_it) > 1e-9 * max(1.0, abs(value)):
                return False
        elif value != with_it:
            return False
    return True


def compacted(held, session, binary, dataset, found):
    """Answers after a compaction on a worker of Spark are those before, of both engines."""
    import compact as program

    given = Given(binary=binary, dataset=str(dataset), to=captures.DAYS[-2])
    (row,) = program.run(session, given)
    parts = len(list(pathlib.Path(dataset).glob("run/date=*/part-*.parquet")))
    held.is_true("compact.py: three days are brought together", row["error"] is None and parts == 3, f"{parts} days; {row['error']}")
    differing = [name for name in QUESTIONS if asked(binary, dataset, name) != found[name]]
    held.is_true("DuckDB's answers after it are those before", not differing, " ".join(differing))
    for table in TABLES:
        session.sql(f"UNCACHE TABLE {table}")
    given = sql.parse([str(dataset), "all", "--binary", binary])
    answer = [row.asDict() for row in sql.ask(session, given, "racks").collect()]
    same = len(answer) == len(found["racks"]) and all(map(near, found["racks"], answer))
    held.is_true("Spark's answer after it is that before", same, f"racks: {len(answer)} rows")


def second_pass(held, session, folder, binary, dataset):
    """join.py: what was lost between two hosts is what the simulator dropped, and the bad clock is found."""
    import join as program
    import pyarrow.parquet

    given = Given(binary=binary, dataset=str(dataset), raw=str(folder / "raw"), date=captures.DAYS[-2:], jobs=1)
    errors = {row["capture"]: row["error"] for row in program.run(session, given)}
    # The captures of the last day are analysed together with one that is cut, which is said.
    as_expected = errors[captures.DAYS[-2]] is None and "h3/cut.pcapng" in str(errors[captures.LAST])
    held.is_true("join.py: two days, one with a capture that is cut", as_expected, f"{errors}")

    def rows(table, day):
        paths = (dataset / "joined" / table / f"date={day}").rglob("*.parquet")
        return [row for path in paths for row in pyarrow.parquet.ParquetFile(path).read().to_pylist()]

    for day in given.date:
        lost = {row["flow_id"]: (row["matched"], row["lost"]) for row in rows("hops", day) if row["lost"]}
        truth = [flow for flow in answers.truth(folder, day)["flows"] if flow["packets_lost"]]
        expected = {int(flow["flow_id"], 16): (flow["packets_received"], flow["packets_lost"]) for flow in truth}
        held.is_true(f"packets lost between hosts on {day} are the simulator's", lost == expected, f"arrived and lost: {list(lost.values())}")
    host, ahead = captures.BAD_CLOCK
    (clock,) = (row for row in rows("taps", captures.LAST) if row["input"] == f"{host}/{captures.LAST}.pcapng")
    # Other clocks, of which one is the reference, are up to 500 ns off.
    right = abs(clock["clock_offset_ns"] - ahead) <= clock["clock_uncertainty_ns"] + 500
    said = f"{clock['clock_offset_ns']:.0f} +- {clock['clock_uncertainty_ns']:.0f} ns, set to {ahead}"
    held.is_true(f"the second pass finds the clock of {host}", right and clock["clock_uncertainty_ns"] < 10_000, said)


def over_s3(held, session, folder, binary, dataset, python):
    """map.py reads captures from an S3 and writes a dataset there, whose files are those of the one in a folder."""
    if not python:
        print("   SKIPPED: S3: no Python with moto was given")
        return
    port = cluster.free_port()
    address = f"http://127.0.0.1:{port}"
    log = open(folder / "moto.log", "w")
    server = subprocess.Popen(
        [python, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
    )

    def call(method, path, data=None):
        # Without a type the bytes would be a form, and without a name nobody may read. moto does not check the signature.
        credential = "AWS4-HMAC-SHA256 Credential=x/20260305/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
        headers = {"Content-Type": "application/octet-stream", "Authorization": credential}
        request = urllib.request.Request(f"{address}/{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.read()

    try:
        end = time.monotonic() + 60
        while True:
            try:
                call("PUT", "captures")
                break
            except OSError:
                if server.poll() is not None or time.monotonic() > end:
                    raise
                time.sleep(0.1)
        call("PUT", "results")
        keys = [f"{host}/{captures.LAST}.pcapng" for host in captures.HOSTS]
        for key in keys:
            call("PUT", f"captures/raw/{key}", (folder / "raw" / key).read_bytes())
        (folder / "keys.txt").write_text("\n".join(keys))
        # Executors have the environment of their worker daemons, which started before this server.
        settings = f"AWS_ENDPOINT_URL={address} AWS_ALLOW_HTTP=true AWS_REGION=us-east-1 AWS_ACCESS_KEY_ID=x AWS_SECRET_ACCESS_KEY=y"
        program = script(folder / "s3.sh", f'{settings} exec "{binary}" "$@"')
        given = Given(binary=program, raw="s3://captures/raw", dataset="s3://results/ds", captures=str(folder / "keys.txt"))
        rows = list(mapped(session, given))
        errors = [row["error"] for row in rows if row["error"]]
        held.is_true("captures in an S3 are mapped", len(rows) == len(keys) and not errors, f"{len(rows)} captures; {errors[:2]}")
        runs = {row["run_id"] for row in rows}
        # The table `run` has the address of the capture.
        local = {name: digest for name, digest in files(dataset).items() if not name.startswith("run/") and pathlib.Path(name).stem in runs}
        there = {name: hashlib.sha256(call("GET", f"results/ds/{name}")).hexdigest() for name in local}
        held.is_true("the S3 has the same files as the folder", bool(local) and there == local, f"{len(local)} files of {len(runs)} runs")
    finally:
        server.kill()
        server.wait()


def documented(held, binary, dataset):
    """The answers that the page of questions shows are those of this fleet."""
    page = (ROOT.parent / "docs/questions.md").read_text()
    for name in QUESTIONS:
        block = re.search(rf"\$ roce-analyze query DS {name}( --rows \d+)?\n(.*?)```", page, re.DOTALL)
        if not block:
            held.is_true(f"docs/questions.md shows {name}", False)
            continue
        command = [binary, "query", dataset, name, *(block.group(1) or "").split()]
        said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment()).stdout
        # The identifiers of runs are hashes, which differ by version.
        lines = [[re.sub(r"\b[0-9a-f]{16}\b", "RUN", line).rstrip() for line in text.splitlines()] for text in (block.group(2), said)]
        held.is_true(f"docs/questions.md shows {name}", lines[0] == lines[1], "" if lines[0] == lines[1] else said)


def page(held, folder, binary, dataset):
    """The page of the report, and those of single runs that it links to."""
    target = folder / "fleet.html"
    command = [binary, "dataset", "report", dataset, "-o", target, "--captures", folder / "raw"]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL, env=environment())
    text = target.read_text()
    links = re.findall(r'href="(fleet-runs/[^"]+)"', text)
    shown = all(words in text for words in ["1 bad clock", "1 pair worse than its week", "1 job slowed", "2 congested destinations"])
    there = bool(links) and all((folder / link).is_file() for link in links)
    held.is_true("the page says it, and its links lead to pages of runs", shown and there, f"{len(text)} bytes, {len(set(links))} runs")


def main():
    """All of it."""
    # Whoever ends the test ends the cluster too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
    binary, folder = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2]).resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    os.environ["SOURCE_DATE_EPOCH"] = EPOCH
    held = Held()
    captures.write(binary, folder)
    poison(folder / "raw")
    dataset = folder / "ds"
    dataset.mkdir()
    (dataset / "fabric.toml").write_bytes((folder / "fabric.toml").read_bytes())
    one_binary_a_slot(held, folder)
    kills = script(folder / "kills.sh", f'case "$1" in *kills.pcapng) kill -9 $$ ;; esac\nexec "{binary}" "$@"')
    spark = cluster.Cluster(folder / "cluster", sys.executable)
    try:
        spark.add("a@127.0.0.1", "b@127.0.0.2")
        held.is_true("a master and two workers are there", True)
        lose_a_worker(held, spark, folder, kills, folder / "raw", dataset)
        spark.add("b2@127.0.0.2")
        os.environ.update({key: value for key, value in spark.environment.items() if key.startswith(("SPARK", "PYSPARK"))})
        session = connect(spark)
        given = Given(binary=kills, raw=str(folder / "raw"), dataset=str(dataset))
        second_run(held, session, given, dataset)
        seconds, workers, driver, wall = cost(session, spark, folder, 2)
        said = f"{seconds * 1000:.0f} ms of a slot; of processors {workers * 1000:.0f} ms of workers and {driver * 1000:.1f} ms of the driver"
        held.is_true("the cost of a capture beyond the binary's own", workers < 1, f"{said}; 200 captures took {wall:.1f} s")
        found = both_engines(held, session, folder, binary, dataset)
        documented(held, binary, dataset)
        page(held, folder, binary, dataset)
        second_pass(held, session, folder, binary, dataset)
        over_s3(held, session, folder, binary, dataset, sys.argv[3] if len(sys.argv) > 3 else None)
        compacted(held, session, binary, dataset, found)
        slots_scale(held, session, spark, folder)
        session.stop()
    finally:
        spark.stop()
    if held.wrong:
        sys.exit(f"{len(held.wrong)} things do not hold: {'; '.join(held.wrong)}")


def connect(spark):
    """A session of this process on the cluster."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("test").master(spark.master_url)
    for key, value in cluster.settings().items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


if __name__ == "__main__":
    main()
