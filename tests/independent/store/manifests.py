#!/usr/bin/env python3
"""The manifest and the unit that run the program on every node: Kubernetes' own schema, the rights that they have, and options that exist.

    manifests.py PROGRAM
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import kubernetes_validate
import yaml

MANIFEST = Path("deploy/kubernetes/live.yaml")
UNIT = Path("packages/systemd/roce-analyze-live.service")
VERSION = "1.31"
# What a live run takes to open devices and to become another user; nothing that reaches into other processes or mounts.
ALLOWED = {"NET_RAW", "SETUID", "SETGID", "SETPCAP", "CHOWN"}


def check(holds, text):
    if not holds:
        raise SystemExit(f"error: {text}")


def manifest(program):
    documents = list(yaml.safe_load_all(MANIFEST.read_text()))
    for document in documents:
        # Fails aloud for unknown fields, too.
        kubernetes_validate.validate(document, VERSION, strict=True)
    sets = [document for document in documents if document["kind"] == "DaemonSet"]
    check(len(sets) == 1, f"{len(sets)} DaemonSets")
    pod = sets[0]["spec"]["template"]["spec"]
    check(not pod.get("hostPID") and not pod.get("hostIPC"), "other processes of the host are visible")
    check(pod["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault", "no seccomp profile")
    (container,) = pod["containers"]
    rights = container["securityContext"]
    check(rights["privileged"] is False and rights["allowPrivilegeEscalation"] is False, "privileged")
    check(rights["readOnlyRootFilesystem"] is True, "the root file system can be written")
    check(rights["capabilities"]["drop"] == ["ALL"], "capabilities are not dropped")
    check(set(rights["capabilities"]["add"]) <= ALLOWED, f"{rights['capabilities']['add']}")
    check(container["resources"]["limits"]["memory"], "memory has no limit")
    port = int(next(text for text in container["args"] if text.startswith("--metrics=")).rsplit(":", 1)[1])
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        get = container[probe]["httpGet"]
        check((get["port"], get["path"]) == (port, "/-/healthy"), f"{probe}: {get}")
    wait = next(text for text in container["args"] if text.startswith("--upload-wait=")).split("=")[1]
    check(pod["terminationGracePeriodSeconds"] >= int(wait.removesuffix("s")) + 10, "the end comes before the last upload")
    mounts = {mount["name"] for mount in container["volumeMounts"]}
    check(mounts == {volume["name"] for volume in pod["volumes"]}, "volumes and mounts differ")
    check("--no-sandbox" not in container["args"], "without the sandbox")
    options(program, container["args"][0], container["args"][1:])
    names = {name for text in container["args"] for name in re.findall(r"\$\((\w+)\)", text)}
    given = {one["name"] for one in container["env"]}
    given |= {key for document in documents if document["kind"] == "ConfigMap" for key in document["data"]}
    check(names <= given, f"not given: {names - given}")


def options(program, command, arguments):
    """Every option is one of the program's."""
    text = subprocess.run([program, command, "--help"], capture_output=True, text=True, check=True).stdout
    for argument in arguments:
        option = argument.split("=")[0]
        check(re.search(rf"(^|[\s,]){re.escape(option)}\b", text), f"{command} has no option {option}")


def unit(program):
    text = UNIT.read_text()
    line = next(line for line in text.splitlines() if line.startswith("ExecStart="))
    words = line.split()[1:]
    options(program, words[0], [word for word in words if word.startswith("-")])
    check("CapabilityBoundingSet=CAP_NET_RAW\n" in text and "KillMode=mixed" in text, "rights of the unit")
    if not shutil.which("systemd-analyze"):
        print("   SKIPPED: the unit by systemd-analyze: it is not installed")
        return
    with tempfile.TemporaryDirectory() as folder:
        there = Path(folder) / UNIT.name
        there.write_text(text.replace("/usr/bin/roce-analyze", str(Path(program).resolve())))
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", there], capture_output=True, text=True)
        complaints = [line for line in done.stderr.splitlines() if UNIT.name in line]
        check(done.returncode == 0 and not complaints, f"systemd-analyze verify: {done.stderr}")
    print("   the unit, by systemd-analyze verify; the manifest, by the schema of Kubernetes", VERSION)


manifest(sys.argv[1])
unit(sys.argv[1])
