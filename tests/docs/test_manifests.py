"""The files of examples/deploy are what their own tools take, and the commands in them exist."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.pages import ROOT
from tests.docs.test_blocks import troubles_of

DEPLOY = ROOT / "examples" / "deploy"


def seconds(text: str, pattern: str) -> int:
    (found,) = re.findall(pattern, text)
    return int(found)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_takes_the_service(tmp_path: Path) -> None:
    text = (DEPLOY / "perdure.service").read_text(encoding="utf-8")
    unit = tmp_path / "perdure.service"
    unit.write_text(text.replace("/srv/myagent/.venv/bin/perdure", sys.executable), encoding="utf-8")
    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_service_waits_for_the_drain() -> None:
    text = (DEPLOY / "perdure.service").read_text(encoding="utf-8")
    assert seconds(text, r"TimeoutStopSec=(\d+)") > seconds(text, r"--grace (\d+)s")
    (command,) = re.findall(r"ExecStart=\S+/(perdure .*)", text)
    assert troubles_of(command) == []


def test_the_image_runs_a_command_that_exists() -> None:
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    words = [json.loads(found) for found in re.findall(r"^(?:ENTRYPOINT|CMD) (\[.*\])$", text, re.MULTILINE)]
    assert troubles_of(" ".join(word for line in words for word in line)) == []
    known = {"FROM", "RUN", "WORKDIR", "COPY", "USER", "STOPSIGNAL", "ENTRYPOINT", "CMD", "#"}
    assert {line.split()[0] for line in text.splitlines() if line} <= known


def kubectl(document: dict[str, Any]) -> dict[str, Any]:
    """A document as kubectl's own types read it. It asks no cluster; a field that it does not know is left out."""
    change = ["env", "READ=1"] if document["kind"] == "Deployment" else ["selector", "read=1"]
    done = subprocess.run(
        ["kubectl", "set", change[0], "--local", "-f", "-", change[1], "-o", "json"],
        input=json.dumps(document),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def lost(given: Any, read: Any, path: str = "") -> list[str]:
    """The fields that are given and were not read."""
    if isinstance(given, dict):
        unread = [f"{path}.{key}" for key in given if key not in read]
        return unread + [
            one for key in given.keys() & read.keys() for one in lost(given[key], read[key], f"{path}.{key}")
        ]
    if isinstance(given, list):
        return [one for at, item in enumerate(given) for one in lost(item, read[at], f"{path}[{at}]")]
    return []


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kubectl_reads_every_field_of_the_manifests() -> None:
    documents = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8")))
    for document in documents:
        asked = {key: value for key, value in document["spec"].items() if key != "selector"}
        assert lost(asked, kubectl(document)["spec"]) == []
    documents[0]["spec"]["template"]["spec"]["graceOfTheEnd"] = 1
    assert lost(documents[0], kubectl(documents[0])) == [".spec.template.spec.graceOfTheEnd"]


def test_the_manifests_are_whole_and_their_commands_exist() -> None:
    found = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8")))
    kinds = {(one["kind"], one["metadata"]["name"]) for one in found}
    assert kinds == {
        ("Deployment", "myagent-worker"),
        ("Deployment", "perdure-server"),
        ("Service", "perdure-server"),
    }
    for one in found:
        if one["kind"] != "Deployment":
            continue
        spec, template = one["spec"], one["spec"]["template"]
        assert spec["selector"]["matchLabels"] == template["metadata"]["labels"]
        (container,) = template["spec"]["containers"]
        assert troubles_of("perdure " + " ".join(container["args"])) == []
        if "--grace" in container["args"]:
            grace = int(container["args"][container["args"].index("--grace") + 1].removesuffix("s"))
            assert template["spec"]["terminationGracePeriodSeconds"] > grace
