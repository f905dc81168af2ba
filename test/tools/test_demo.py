# SPDX-License-Identifier: Apache-2.0
"""Demonstrations: where they run, and each of them flown, recorded, drawn and reported."""

import os
import re
from types import SimpleNamespace
from unittest.mock import Mock

import place
import pytest
import yaml
from repository import ROOT

from drone_bridge.telemetry.vehicle.emulator.world import Touchdown
from drone_bridge.tools.cli import REFUSED
from drone_bridge.tools.demo import command, composition
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


class Flight(composition.Composition):
    """Flight whose output is played, a line each time that the demonstration sleeps."""

    is_running = True

    def __init__(self, lines, ends_well):
        self.now_s, self._left, self._lines, self._ends_well = 0.0, lines, [], ends_well

    def sleep(self, seconds):
        self.now_s += seconds
        self._lines += [f"{line}\n" for line in self._left[:1]]
        self._left = self._left[1:]

    def stop(self):
        return self._ends_well


@pytest.mark.parametrize(
    ("lines", "ends_well", "status", "printed"),
    [
        (["on the way", "landed, good"], True, 0, "landed, good\n  recorded  "),
        (["landed, bad"], True, 1, "landed, bad\n  recorded  "),
        (["landed, good"], False, 1, "The flight failed: not every process exited cleanly"),
        (["[launch] bridge-1 died"], True, 1, "died\n\nThe flight failed: it did not get to its target"),
        ([], True, 1, "it did not get to its target"),
    ],
)
def test_a_demonstration_ends_with_its_flight(monkeypatch, tmp_path, capsys, lines, ends_well, status, printed):
    fly = Mock(return_value=(flight := Flight(lines, ends_well)))
    monkeypatch.setattr(composition, "Composition", fly)
    monkeypatch.setattr(composition, "isolate_ros_graph", lambda: None)
    monkeypatch.setattr(command, "time", SimpleNamespace(monotonic=lambda: flight.now_s, sleep=flight.sleep))
    monkeypatch.setattr(command, "suspend_key", Mock())
    monkeypatch.setattr("drone_bridge.tools.report.command.write_report", lambda bag, path: path)
    monkeypatch.setenv("ROS_DOMAIN_ID", "7")
    (tmp_path / "old").touch()
    shown = Demonstration("A story.", "", "robot.launch.xml", {"seed": 7}, "landed, (good|(?P<bad>bad))")
    assert command.show(shown, tmp_path) == status
    assert printed in "".join(capsys.readouterr())
    assert flight.now_s >= (command.LINGER_S if "landed" in str(lines) else 0.0 if lines else command.TIMEOUT_S)
    assert not (tmp_path / "old").exists()
    assert fly.call_args.args == ("robot.launch.xml", tmp_path / "log.txt")
    assert {"record": True, "bag": tmp_path / "bag", "seed": 7}.items() <= fly.call_args.kwargs.items()
    assert "robot_port" in fly.call_args.kwargs
