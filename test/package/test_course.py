# SPDX-License-Identifier: Apache-2.0
"""The marks of examples/course: a pilot that reaches the target, and one that does nothing."""

import os
import subprocess
import sys
from xml.etree import ElementTree

import pytest
from repository import ROOT

pytestmark = pytest.mark.exhaustive

FLIGHT = ROOT / "examples" / "course" / "flights.py"
CONTROLLER = f"drone-bridge run drone_controller --ros-args --params-file '{ROOT / 'config' / 'seek_target.yaml'}'"


@pytest.mark.parametrize(("pilot", "limit_s", "failures"), [(CONTROLLER, "60", "0"), ("sleep 600", "2", "1")])
def test_a_flight_is_marked_by_whether_it_reaches_the_target(pilot, limit_s, failures, domain, tmp_path):
    command = [
        sys.executable,
        "-m",
        "pytest",
        f"{FLIGHT}::test_target_is_reached_in_time[1-0 0 0]",
        "--junitxml=marks.xml",
    ]
    environment = {**os.environ, "TEAM": str(domain), "PILOT": pilot, "LIMIT_S": limit_s}
    subprocess.run([*command, "--rootdir=."], cwd=tmp_path, env=environment, check=False)
    suite = ElementTree.parse(tmp_path / "marks.xml").getroot().find("testsuite")
    assert (suite.get("tests"), suite.get("failures")) == ("1", failures)
    assert (tmp_path / "flight_1_0_0_0.csv").stat().st_size > 1000
