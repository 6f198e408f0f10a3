#!/usr/bin/env python3
"""OTLP in both directions, by OpenTelemetry's own exporters and messages: theirs send to `metrics serve --otlp`, over HTTP and gRPC; what
`--push` sends is decoded by their classes.

    check.py PROGRAM FOLDER

PROGRAM is roce-analyze, FOLDER takes everything that is written.
"""

import http.server
import queue
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter as HttpExporter
from opentelemetry.metrics import Observation
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricExportResult, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource

TOKEN = "a-token-of-the-check"


def fail(text):
    sys.exit(f"error: {text}")


class Receiver:
    """A receiver of OTLP/HTTP that is busy once, and then takes everything."""

    def __init__(self):
        requests = self.requests = queue.Queue()
        self.heads = []
        heads = self.heads

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                heads.append((self.path, dict(self.headers.items())))
                is_first = len(heads) == 1
                self.send_response(503 if is_first else 200)
                if is_first:
                    self.send_header("Retry-After", "1")
                else:
                    requests.put(body)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self):
        return f"http://127.0.0.1:{self.server.server_address[1]}"


def recorded_host(root):
    """A recorded host with one counter."""
    port = root / "sys/class/infiniband/mlx5_0/ports/1"
    (port / "counters").mkdir(parents=True)
    (port / "hw_counters").mkdir()
    (port / "state").write_text("4: ACTIVE\n")
    (port / "hw_counters/out_of_sequence").write_text("1187\n")


def send(exporter, value, name):
    """Exports one depth of queue 3 of swp1 at leaf1, and a counter of marks, as their SDK does."""
    results = []
    whole = exporter.export

    def export(*arguments, **options):
        results.append(whole(*arguments, **options))
        return results[-1]

    exporter.export = export
    reader = PeriodicExportingMetricReader(exporter, export_interval_millis=3_600_000)
    provider = MeterProvider([reader], Resource({"host.name": name}))
    meter = provider.get_meter("check")
    place = {"interface": "swp1", "tc": 3}
    meter.create_observable_gauge(
        "nvswitch_interface_tc_curr_occupancy", [lambda _: [Observation(value, place)]], unit="By"
    )
    marks = meter.create_counter("nvswitch_interface_tc_tx_ecn_marked_tc")
    marks.add(value + 1, place)
    provider.force_flush()
    provider.shutdown()
    return results[0]


def main():
    program, folder = sys.argv[1], Path(sys.argv[2])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    recorded_host(folder / "host")
    (folder / "tokens").write_text(TOKEN + "\n")
    receiver = Receiver()
    command = [program, "metrics", "serve", "--listen", "127.0.0.1:0", "--read", folder / "host", "--counters-only"]
    command += ["--no-sandbox", "--otlp", "--otlp-tokens", folder / "tokens"]
    command += ["--push", receiver.url(), "--push-every", "1s", "--push-token", folder / "tokens"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        for line in server.stderr:
            found = re.search(r"serving (http://(\S+))/metrics", line)
            if found:
                break
        else:
            fail("the server did not start")
        threading.Thread(target=server.stderr.read, daemon=True).start()
        check(found[1], found[2], receiver)
    finally:
        server.terminate()
        server.wait(10)


def check(url, address, receiver):
    headers = {"authorization": f"Bearer {TOKEN}"}
    endpoint = f"{url}/v1/metrics"
    exporters = [
        HttpExporter(endpoint, headers=headers, compression=Compression.NoCompression),
        HttpExporter(endpoint, headers=headers, compression=Compression.Gzip),
        GrpcExporter(address, insecure=True, headers=headers),
    ]
    for value, exporter in enumerate(exporters, 90_000):
        name = f"leaf{value}"
        result = send(exporter, value, name)
        if result != MetricExportResult.SUCCESS:
            fail(f"{type(exporter).__name__}: {result}")
        text = urllib.request.urlopen(f"{url}/metrics", timeout=10).read().decode()
        place = f'switch="{name}",interface="swp1",queue="3",kind="port"'
        for line in [
            f"roce_switch_queue_depth_bytes{{{place}}} {value}",
            f"roce_switch_queue_ecn_marked_packets_total{{{place}}} {value + 1}",
        ]:
            if line not in text.splitlines():
                fail(f"{type(exporter).__name__}: no {line}")
    refused = send(GrpcExporter(address, insecure=True, timeout=2), 1, "nobody")
    if refused == MetricExportResult.SUCCESS:
        fail("a call without a token was taken")

    pushed = None
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        request = ExportMetricsServiceRequest()
        request.ParseFromString(receiver.requests.get(timeout=30))
        pushed = values(request)
        if pushed.get("roce_switch_queue_depth_bytes"):
            break
    path, head = receiver.heads[0]
    if path != "/v1/metrics" or head.get("authorization") != f"Bearer {TOKEN}":
        fail(f"pushed to {path} with {head}")
    attributes = {pair.key: pair.value.string_value for pair in request.resource_metrics[0].resource.attributes}
    if attributes.get("service.name") != "roce-analyze" or not attributes.get("host.name"):
        fail(f"resource: {attributes}")
    expected = {
        "roce_port_out_of_sequence_packets_total": (1187, {"device": "mlx5_0", "port": "1"}),
        "roce_port_up": (1, {"device": "mlx5_0", "port": "1"}),
    }
    for name, point in expected.items():
        if point not in pushed.get(name, []):
            fail(f"pushed {name}: {pushed.get(name)}, expected {point}")
    print(f"OTLP: 3 exporters were taken, {len(pushed)} metrics were pushed and decoded")


def values(request):
    """Points by metric: value and attributes. A count is a cumulative, monotonic sum."""
    found = {}
    for metric in (m for all in request.resource_metrics for scope in all.scope_metrics for m in scope.metrics):
        kind = metric.WhichOneof("data")
        if metric.name.endswith("_total") != (kind == "sum"):
            fail(f"{metric.name} is a {kind}")
        if kind == "sum" and not (metric.sum.is_monotonic and metric.sum.aggregation_temporality == 2):
            fail(f"{metric.name} is no count")
        if kind == "histogram":
            continue
        for point in getattr(metric, kind).data_points:
            if abs(point.time_unix_nano / 1e9 - time.time()) > 60:
                fail(f"{metric.name} has the time {point.time_unix_nano}")
            attributes = {pair.key: pair.value.string_value for pair in point.attributes}
            found.setdefault(metric.name, []).append((point.as_double, attributes))
    return found


main()
