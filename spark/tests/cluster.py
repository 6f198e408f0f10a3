"""A real Spark cluster on loopback for the tests: a master, and workers on 127.0.0.1 and 127.0.0.2, each with one core.

Processes are ended by their own ids, with the executors that they started.
"""

import os
import pathlib
import signal
import socket
import subprocess
import time

import pyspark

HOME = pathlib.Path(pyspark.__file__).parent

# Seconds until a process of the cluster is there.
PATIENCE = 90


def free_port(address="127.0.0.1"):
    """A port that nobody has now."""
    with socket.socket() as listener:
        listener.bind((address, 0))
        return listener.getsockname()[1]


# Java that lives for a minute or two: it starts faster without its second compiler and without threads that collect garbage.
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def settings():
    """Settings of a driver, for spark-submit and for sessions."""
    return {
        "spark.driver.extraJavaOptions": SHORT_LIVED,
        "spark.executor.extraJavaOptions": SHORT_LIVED,
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.driver.memory": "700m",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        "spark.log.level": "ERROR",
        "spark.ui.showConsoleProgress": "false",
        # A second address: where a worker is lost, the other one gets its tasks.
        "spark.speculation": "true",
        "spark.speculation.minTaskRuntime": "10s",
    }


class Cluster:
    """A master and its workers."""

    def __init__(self, folder, python):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        port = free_port()
        self.master_url = f"spark://127.0.0.1:{port}"
        self.environment = {
            **os.environ,
            "SPARK_HOME": str(HOME),
            "PYSPARK_PYTHON": python,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(self.folder / "local"),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": SHORT_LIVED,
            "SPARK_LOG_DIR": str(self.folder),
        }
        self.processes = {}
        self.start("master", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", port, "--webui-port", 0)
        self.wait("master", "I have been elected leader")

    def start(self, name, main, *arguments):
        """Starts a process of the cluster in a session of its own: executors are children of their workers."""
        log = open(self.folder / f"{name}.log", "w")
        command = [HOME / "bin/spark-class", main, *map(str, arguments)]
        environment = dict(self.environment)
        if name != "master":
            environment["SPARK_LOCAL_IP"] = name.partition("@")[2]
        self.processes[name] = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=environment, start_new_session=True
        )

    def add(self, *names, wait=True):
        """Starts workers, each named NAME@ADDRESS."""
        for name in names:
            address = name.partition("@")[2]
            work = self.folder / "work" / name
            self.start(
                name, "org.apache.spark.deploy.worker.Worker", "--host", address, "--port", 0, "--webui-port", 0,
                "--cores", 1, "--memory", "700m", "--work-dir", work, self.master_url,
            )  # fmt: skip
        for name in names if wait else ():
            self.wait(name, "Successfully registered with master")

    def wait(self, name, words):
        """Waits until a process has logged these words."""
        end = time.monotonic() + PATIENCE
        while words not in (self.folder / f"{name}.log").read_text(errors="replace"):
            if time.monotonic() > end or self.processes[name].poll() is not None:
                raise RuntimeError(f"{name} did not start: {(self.folder / f'{name}.log').read_text(errors='replace')[-2000:]}")
            time.sleep(0.05)

    def kill(self, name):
        """`kill -9` of a worker, and of the executor below it."""
        process = self.processes.pop(name)
        # The worker's session has the executor and its Python workers.
        for pid in self.session_of(process.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        process.wait()

    @staticmethod
    def session_of(leader):
        """Processes of a session, the leader first, and their children in sessions of their own."""
        parents, sessions = {}, {}
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)], sessions[int(entry.name)] = int(fields[1]), int(fields[3])
        found = [pid for pid, session in sessions.items() if session == leader]
        for pid in found:
            found += [child for child, parent in parents.items() if parent == pid and child not in found]
        return found

    def cpu_seconds(self):
        """Processor time of all workers with their executors and programs, and of the driver: this process with its Java. Those that ended count too."""
        parents, ticks = {}, {}
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            # ppid; utime, stime, and those of children that were waited for: proc(5).
            parents[int(entry.name)], ticks[int(entry.name)] = int(fields[1]), sum(map(int, fields[11:15]))

        def below(leader):
            found = [leader]
            for pid in found:
                found += [child for child, parent in parents.items() if parent == pid]
            return set(found)

        workers = set().union(*(below(process.pid) for process in self.processes.values()))
        driver = below(os.getpid()) - workers
        return tuple(sum(ticks.get(pid, 0) for pid in pids) / os.sysconf("SC_CLK_TCK") for pids in (workers, driver))

    def stop(self):
        """Ends everything."""
        for name in list(self.processes):
            self.kill(name)
