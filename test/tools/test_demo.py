# SPDX-License-Identifier: Apache-2.0
"""Demonstrations: where they run, and each of them flown, recorded, drawn and reported."""

import os
import re

import place
import pytest
import yaml
from repository import ROOT

from drone_bridge.telemetry.vehicle.emulator.world import Touchdown
from drone_bridge.tools.cli import REFUSED
from drone_bridge.tools.demo import composition
from drone_bridge.tools.demo.command import Demonstration, main

NAMES = ("ROS_DOMAIN_ID", "ROS_AUTOMATIC_DISCOVERY_RANGE", "ROS_LOCALHOST_ONLY", "ROS_DISTRO")
LOOPBACK_PROFILE = "/share/drone_bridge/config/fastdds_loopback.xml"
FLIGHTS = {
    path.stem: Demonstration(**yaml.safe_load(path.read_text())) for path in (ROOT / "config" / "demo").glob("*.yaml")
}


@pytest.mark.parametrize(
    ("variables", "reach", "localhost_only"),
    [
        ({"ROS_DISTRO": "humble"}, "LOCALHOST", "1"),
        ({"ROS_DISTRO": "kilted"}, "LOCALHOST", None),
        ({"FASTDDS_DEFAULT_PROFILES_FILE": LOOPBACK_PROFILE}, "SYSTEM_DEFAULT", None),
        # Another middleware does not read that profile.
        (
            {"FASTDDS_DEFAULT_PROFILES_FILE": LOOPBACK_PROFILE, "RMW_IMPLEMENTATION": "rmw_cyclonedds_cpp"},
            "LOCALHOST",
            None,
        ),
    ],
)
def test_a_demonstration_stays_on_this_machine(monkeypatch, variables, reach, localhost_only):
    for name in NAMES:
        monkeypatch.setenv(name, "")  # so that all of them are put back
    monkeypatch.delenv("ROS_LOCALHOST_ONLY")
    monkeypatch.delenv("FASTDDS_DEFAULT_PROFILES_FILE", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    composition.isolate_ros_graph()
    assert os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] == reach
    assert os.environ.get("ROS_LOCALHOST_ONLY") == localhost_only


def test_a_demonstration_avoids_domains_with_nodes(domain, ros, monkeypatch):
    other = place.domains()[0]  # no other program on this machine has it
    monkeypatch.setattr(composition, "DOMAINS", (domain, other))
    assert {composition.unused_domain() for _ in range(20)} == {other}


@pytest.mark.parametrize("name", FLIGHTS)
def test_a_folder_that_can_t_be_created_is_refused_with_the_reason(name, monkeypatch, capsys):
    for variable in NAMES:
        monkeypatch.setenv(variable, "")
    assert main([name, "--folder", "/proc/demo"]) == REFUSED
    assert re.search(r"^drone-bridge demo: '/proc/demo.*': No such file or directory\.$", capsys.readouterr().err)


@pytest.mark.parametrize(("on_rover", "error_m"), [(True, 0.1), (True, 0.9), (False, 0.1)])
def test_a_touchdown_ends_the_landing_and_a_bad_one_is_known(on_rover, error_m):
    landed = Touchdown(12.34, on_rover=on_rover, position_error=error_m, vertical_speed=0.56, relative_speed=0.07)
    (found,) = re.finditer(
        FLIGHTS["landing"].ended, f"[telemetry-2] {landed.describe()}\n[telemetry-2] t=13.0 s, landed\n"
    )
    assert found[0] == landed.describe()
    assert bool(found["bad"]) == (not landed.is_good)
