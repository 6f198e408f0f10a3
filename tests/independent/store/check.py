#!/usr/bin/env python3
"""Object stores for real: moto is the S3, behind a proxy that cuts, stalls and refuses connections. In a network namespace of its own.

    check.py PROGRAM FOLDER CAPTURE

PROGRAM is roce-analyze, FOLDER takes everything that is written, CAPTURE is a pcapng whose frames are sent to live runs.
Needs root (`ip netns`), and the packages of tests/independent/store/requirements.txt.
"""

import gzip
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

# Longest wait for anything.
PATIENCE = 40
KEY, SECRET = "CANARYID", "CANARY-secret-of-the-store"
SENDER, RECEIVER = "v0", "v1"


def fail(text):
    raise SystemExit(f"error: {text}")


def check(holds, text):
    if not holds:
        fail(text)


def until(what, test, patience=PATIENCE):
    """Waits until test() is true, and returns what it was."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        found = test()
        if found:
            return found
        time.sleep(0.05)
    fail(f"waited {patience} s for: {what}")


class Proxy:
    """Forwards connections to moto. `mode`: pass, refuse, stall (requests are taken, no answer comes), cut (answers end after `most` bytes)."""

    def __init__(self, port):
        self.to, self.mode, self.most = port, "pass", 0
        self.cuts = self.stalled = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        if self.mode == "refuse":
            client.close()
            return
        server = socket.create_connection(("127.0.0.1", self.to))
        threading.Thread(target=self.pump, args=(client, server, False), daemon=True).start()
        self.pump(server, client, True)

    def pump(self, source, to, is_answer):
        sent = 0
        try:
            while data := source.recv(1 << 16):
                if self.mode == "refuse":
                    break
                if self.mode == "stall" and not is_answer:
                    # Taken, and never forwarded.
                    self.stalled += 1
                    continue
                if self.mode == "cut" and is_answer and sent + len(data) > self.most:
                    to.sendall(data[: self.most - sent])
                    self.cuts += 1
                    break
                to.sendall(data)
                sent += len(data)
        except OSError:
            pass
        for side in (source, to):
            try:
                side.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            side.close()


def frames_of(path):
    """The frames of a pcapng: enhanced packet blocks (type 6), little endian, their captured bytes."""
    data, at, frames = Path(path).read_bytes(), 0, []
    while at + 12 <= len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == 6:
            captured = struct.unpack_from("<I", data, at + 20)[0]
            frames.append(data[at + 28 : at + 28 + captured])
        at += length
    return frames


class Store:
    def __init__(self, folder):
        import boto3
        from botocore.config import Config

        self.log = folder / "moto.log"
        probe = socket.create_server(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
            stdout=subprocess.DEVNULL,
            stderr=self.log.open("w"),
        )
        self.proxy = Proxy(port)
        self.client = boto3.client(
            "s3",
            endpoint_url=f"http://127.0.0.1:{port}",
            region_name="us-east-1",
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
            config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 0}),
        )

        def answers():
            check(self.process.poll() is None, f"moto has ended: {self.log.read_text()[-500:]}")
            try:
                return self.client.list_buckets()
            except Exception:
                return None

        until("moto answers", answers)
        for bucket in ("captures", "results"):
            self.client.create_bucket(Bucket=bucket)

    def keys(self, prefix, bucket="results"):
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return sorted(one["Key"] for page in pages for one in page.get("Contents", []))

    def puts(self, prefix):
        """Keys of objects in the order in which they became visible, by the store's own log."""
        found = re.findall(r'"(?:PUT|POST) /results/(\S+?)(?:\?uploadId=\S+)? HTTP', self.log.read_text())
        return [key for key in found if key.startswith(prefix) and "?" not in key]


class Check:
    def __init__(self, program, folder, capture):
        self.program, self.folder, self.capture = program, folder, capture
        self.store = Store(folder)
        self.proxy = self.store.proxy
        self.outputs = []
        self.frames = frames_of(capture)
        check(len(self.frames) > 100, f"{capture}: only {len(self.frames)} frames")
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")},
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.proxy.port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "TMPDIR": str(folder / "tmp"),
            "NO_COLOR": "1",
        }

    def run(self, *arguments, code=0):
        done = subprocess.run(
            [self.program, *arguments], env=self.environment, text=True, capture_output=True, timeout=120, cwd=self.folder
        )
        self.outputs += [done.stdout, done.stderr]
        check(done.returncode == code, f"{arguments}: {done.returncode}, not {code}\n{done.stderr[-2000:]}")
        return done

    def start(self, name, *arguments):
        """Starts a live run; its messages are in a file."""
        out, err = (self.folder / f"{name}.{end}" for end in ("out", "err"))
        process = subprocess.Popen(
            [self.program, "live", "-i", RECEIVER, "--layout", "fleet", "--host-name", "h7", *arguments],
            env=self.environment,
            stdout=out.open("w"),
            stderr=err.open("w"),
            cwd=self.folder,
        )
        process.name, process.out, process.err = name, out, err
        until(
            f"{name} captures",
            lambda: self.captures(process) or check(process.poll() is None, f"{name}: {err.read_text()}"),
        )
        return process

    @staticmethod
    def captures(process):
        """True once a packet socket is open and the rights are given up."""
        try:
            status = Path(f"/proc/{process.pid}/status").read_text()
            tasks = [Path(f"/proc/{process.pid}/task/{task}/comm").read_text() for task in os.listdir(f"/proc/{process.pid}/task")]
        except OSError:
            return False
        return "Seccomp:\t2" in status and any(task.startswith("capture") for task in tasks)

    def send(self, count, seconds):
        """Sends frames of the capture, evenly."""
        raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        raw.bind((SENDER, 0))
        for number in range(count):
            raw.send(self.frames[number % len(self.frames)][:1500])
            if number % 20 == 19:
                time.sleep(seconds * 20 / count)
        raw.close()

    def end(self, process, sign=signal.SIGTERM, code=0):
        begun = time.monotonic()
        process.send_signal(sign)
        process.wait(timeout=PATIENCE)
        text = process.err.read_text()
        self.outputs += [text, process.out.read_text()]
        if code is not None:
            check(process.returncode == code, f"{process.name}: {process.returncode}, not {code}\n{text}")
        return time.monotonic() - begun, text

    @staticmethod
    def manifest(process):
        return [json.loads(line) for line in process.out.read_text().splitlines() if line]

    # The parts of the check, in their order.

    def inputs(self):
        """A capture in the store gives what the file gives, also over connections that are cut."""
        plain = self.capture.read_bytes()
        # Several requests' worth of cuts: the frames over and over, as long as they are one capture.
        self.store.client.put_object(Bucket="captures", Key="a/c.pcapng.gz", Body=gzip.compress(plain, 1))
        self.store.client.put_object(Bucket="captures", Key="a/c.pcapng", Body=plain)
        local = json.loads(self.run(str(self.capture), "--format", "json").stdout)

        def of_store(key, *more):
            return json.loads(self.run(f"s3://captures/a/{key}", "--format", "json", *more).stdout)

        for key in ("c.pcapng", "c.pcapng.gz"):
            found = of_store(key)
            for part in ("totals", "flows", "findings", "episodes"):
                check(found.get(part) == local.get(part), f"{key}: {part} differs from the file's")
        self.proxy.mode, self.proxy.most = "cut", max(len(plain) // 3, 2_000)
        found = of_store("c.pcapng")
        check(found["totals"] == local["totals"], "totals differ over cut connections")
        check(self.proxy.cuts > 0, "no connection was cut")
        self.proxy.mode = "pass"
        for url, expected in [
            ("s3://captures/none.pcap", "no such object"),
            ("s3://captures/a/c.pcapng?x=1", "not allowed"),
        ]:
            text = self.run(url, code=2).stderr
            check(url.split("?")[0] in text and expected in text, f"{url}: {text}")
        text = self.run("s3://captures/a/c.pcapng", "--max-input", "2000", "--format", "none", code=2).stderr
        check("s3://captures/a/c.pcapng: longer than 2000 bytes" in text, text)

    def outputs_of_runs(self):
        """A dataset in the store has the files of one in a folder; what makes it visible comes last."""
        self.run(str(self.capture), "-o", "local", "--format", "none")
        local = sorted(str(path.relative_to(self.folder / "local")) for path in (self.folder / "local").rglob("*") if path.is_file())
        self.run(str(self.capture), "-o", "s3://results/one", "--format", "none")
        check([f"one/{name}" for name in local] == self.store.keys("one/"), "other files than in a folder")
        check(self.store.puts("one/")[-1] == "one/run.json", f"{self.store.puts('one/')[-3:]}")
        text = self.run(str(self.capture), "-o", "s3://results/one", "--format", "none", code=2).stderr
        check("results of a run are there already" in text, text)
        self.run(str(self.capture), "-o", "s3://results/one", "--overwrite", "--format", "none")
        self.run(str(self.capture), "-o", "s3://results/ds", "--layout", "fleet", "--host-name", "h1")
        keys = self.store.keys("ds/")
        check(keys and all(re.fullmatch(r"ds/\w+/date=[\d-]+/host=h1/\w+\.parquet", key) for key in keys), f"{keys}")
        check(self.store.puts("ds/")[-1].startswith("ds/run/"), "run is not the last")
        # Killed while the store takes requests and answers none of them.
        self.proxy.mode = "stall"
        self.proxy.stalled = 0
        killed = subprocess.Popen(
            [self.program, str(self.capture), "-o", "s3://results/killed", "--overwrite", "--format", "none"],
            env=self.environment, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, cwd=self.folder,
        )
        until("an upload is under way", lambda: self.proxy.stalled)
        killed.kill()
        killed.wait()
        self.proxy.mode = "pass"
        time.sleep(0.3)
        check(not self.store.keys("killed/"), "a killed run is visible")
        left = [path for path in (self.folder / "tmp").iterdir() if str(killed.pid) not in path.name]
        check(not left, f"folders that stay: {left}")

    def continuous(self):
        """Parts arrive, also those of a time without a store; the last one at the end."""
        live = self.start("parts", "-o", "s3://results/live", "--spool", "spool", "--every", "2s", "--metrics", "127.0.0.1:9903")
        self.send(600, 2.5)
        until("the first part", lambda: self.store.keys("live/run/"))
        # A second run may not upload from the same folder.
        second = subprocess.run(
            [self.program, "live", "-i", RECEIVER, "--layout", "fleet", "-o", "s3://results/live", "--spool", "spool"],
            env=self.environment, text=True, capture_output=True, timeout=30, cwd=self.folder,
        )
        check(second.returncode == 2 and "another run uploads" in second.stderr, second.stderr)
        self.proxy.mode = "refuse"
        self.send(600, 5)
        until("a failed upload is said", lambda: "it is tried again" in live.err.read_text())
        self.proxy.mode = "pass"
        until("the store works again", lambda: "works again" in live.err.read_text())
        metrics = self.scrape()
        check(metrics['roce_live_parts_total{became="dropped"}'] == 0, "parts were dropped")
        check(metrics["roce_live_upload_failures_total"] >= 1, "no failure is counted")
        self.send(100, 0.2)
        time.sleep(0.3)
        took, text = self.end(live)
        parts = self.manifest(live)
        frames = sum(part["frames"] for part in parts)
        check(frames == 1300, f"{frames} frames in {len(parts)} parts, 1300 were sent; {text}")
        runs = {key.rsplit("/", 1)[1].removesuffix(".parquet") for key in self.store.keys("live/run/")}
        check(runs == {part["run_id"] for part in parts}, f"{len(runs)} runs in the store, {len(parts)} parts")
        for key in self.store.keys("live/"):
            check(re.fullmatch(r"live/\w+/date=[\d-]+/host=h7/\w+\.parquet", key), key)
        left = [path for path in (self.folder / "spool").rglob("*.parquet")]
        check(not left, f"uploaded parts stay: {left}")
        print(f"   {len(parts)} parts, {frames} frames, all in the store {took:.1f} s after SIGTERM")

    def scrape(self):
        import urllib.request

        text = urllib.request.urlopen("http://127.0.0.1:9903/metrics", timeout=10).read().decode()
        lines = (line.rsplit(" ", 1) for line in text.splitlines() if line.startswith("roce_live"))
        return {name: float(value) for name, value in lines}

    def killed(self):
        """A run that is killed in the middle of an upload leaves no half of a part; the next run uploads what waits."""
        live = self.start("killed", "-o", "s3://results/dead", "--spool", "spool2", "--every", "1s")
        self.send(200, 0.5)
        until("a part", lambda: self.store.keys("dead/run/"))
        self.proxy.mode = "stall"
        self.proxy.stalled = 0
        self.send(200, 1.5)
        until("an upload is under way", lambda: self.proxy.stalled)
        until("a second part waits", lambda: len(self.manifest(live)) >= len(self.store.keys("dead/run/")) + 2)
        self.end(live, signal.SIGKILL, code=None)
        written = {part["run_id"] for part in self.manifest(live)}
        visible = {key.rsplit("/", 1)[1] for key in self.store.keys("dead/run/")}
        check(len(visible) < len(written), "all parts were uploaded before the kill")
        keys = self.store.keys("dead/")
        for part in self.manifest(live):
            run, tables = f"{part['run_id']}.parquet", {key.split("/")[1] for key in keys if key.endswith(f"/{part['run_id']}.parquet")}
            if run in visible:
                whole = {table for table, rows in part["rows"].items() if rows}
                check(whole <= tables, f"{run} is visible without {whole - tables}")
            else:
                check("run" not in tables, f"{run} is half there: {tables}")
        self.proxy.mode = "pass"
        again = self.start("again", "-o", "s3://results/dead", "--spool", "spool2", "--every", "1s")
        wanted = {f"{run}.parquet" for run in written}
        until("the parts that waited", lambda: wanted <= {key.rsplit("/", 1)[1] for key in self.store.keys("dead/run/")})
        self.end(again)
        left = [path for path in (self.folder / "spool2").rglob("*") if path.is_file() and path.name != ".roce-analyze.lock"]
        check(not left, f"files that stay: {left}")

    def bounded(self):
        """Without a store the disk is bounded: the oldest parts go, which is counted and said. The end does not wait longer than it may."""
        keep = 150_000
        self.proxy.mode = "refuse"
        live = self.start(
            "bounded", "-o", "s3://results/full", "--spool", "spool3", "--every", "1s", "--keep", str(keep),
            "--metrics", "127.0.0.1:9903", "--upload-wait", "2s",
        )
        most = 0
        sender = threading.Thread(target=self.send, args=(3000, 9))
        sender.start()
        while sender.is_alive():
            files = [path for path in (self.folder / "spool3").rglob("*.parquet") if not path.name.startswith(".")]
            sizes = 0
            for path in files:
                try:
                    sizes += path.stat().st_size
                except OSError:
                    pass
            most = max(most, sizes)
            time.sleep(0.05)
        sender.join()
        metrics = until("dropped parts are counted", lambda: (found := self.scrape()).get('roce_live_parts_total{became="dropped"}') and found)
        largest = max(part["written_bytes"] for part in self.manifest(live))
        check(most <= keep + 2 * largest, f"{most} bytes on disk; --keep {keep}, a part has {largest}")
        check(metrics["roce_live_parts_waiting_bytes"] <= keep, f"{metrics}")
        took, text = self.end(live)
        check("were dropped by --keep, and were not uploaded" in text, text)
        check("the next run uploads them" in text, text)
        check(took < 8, f"the end took {took:.1f} s")
        check(not self.store.keys("full/"), "something is in the store")
        self.proxy.mode = "pass"
        dropped = metrics['roce_live_parts_total{became="dropped"}']
        print(f"   at most {most} bytes on disk with --keep {keep}; {dropped:.0f} parts dropped; end in {took:.1f} s")

    def folder_of_this_machine(self):
        """The same in a folder: parts each second, the oldest go."""
        live = self.start("local-parts", "-o", "file://" + str(self.folder / "here"), "--every", "1s", "--keep", "100kB")
        self.send(900, 5)
        _, text = self.end(live)
        check("were dropped by --keep" in text and "not uploaded" not in text, text)
        sizes = [path.stat().st_size for path in (self.folder / "here").rglob("*.parquet")]
        check(sizes and sum(sizes) <= 100_000, f"{sum(sizes)} bytes")

    def secrets(self):
        """No secret is in any output."""
        texts = self.outputs + [path.read_text() for path in self.folder.glob("*.err")]
        for text in texts:
            check(SECRET not in text, f"a secret is in: {text[:2000]}")


def inside(program, folder, capture):
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["ip", "link", "add", SENDER, "type", "veth", "peer", "name", RECEIVER], check=True)
    for name in (SENDER, RECEIVER):
        # Without addresses of their own, which they would announce.
        subprocess.run(["ip", "link", "set", name, "addrgenmode", "none", "up"], check=True)
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("", "tmp", "spool", "spool2", "spool3", "here"):
        (folder / name).mkdir(parents=True)
        # Live runs go on as nobody.
        (folder / name).chmod(0o777)
    all_of_it = Check(program, folder, capture)
    try:
        for part in ("inputs", "outputs_of_runs", "continuous", "killed", "bounded", "folder_of_this_machine", "secrets"):
            begun = time.monotonic()
            getattr(all_of_it, part)()
            print(f"   {part}: {time.monotonic() - begun:.1f} s", flush=True)
    finally:
        all_of_it.store.process.kill()
        all_of_it.store.process.wait()


def main():
    program, folder, capture = (Path(text).resolve() for text in sys.argv[1:4])
    if len(sys.argv) > 4:
        inside(program, folder, capture)
        return
    name = f"roce-store-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        done = subprocess.run(["ip", "netns", "exec", name, sys.executable, __file__, program, folder, capture, "inside"])
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
