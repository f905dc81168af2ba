# SPDX-License-Identifier: Apache-2.0
"""What demonstrations have in common."""

import os
import re

import pytest

from drone_bridge.tools.cli import REFUSED
from drone_bridge.tools.demo import composition
from drone_bridge.tools.demo.command import main
from drone_bridge.tools.demo.composition import isolate_ros_graph

NAMES = ("ROS_DOMAIN_ID", "ROS_AUTOMATIC_DISCOVERY_RANGE", "ROS_LOCALHOST_ONLY", "ROS_DISTRO")


@pytest.mark.parametrize(("distribution", "expected"), [("humble", "1"), ("jazzy", None), ("kilted", None)])
def test_a_demonstration_stays_on_this_machine(monkeypatch, distribution, expected):
    for name in NAMES:
        monkeypatch.setenv(name, "")  # so that all of them are put back
    monkeypatch.delenv("ROS_LOCALHOST_ONLY")
    monkeypatch.setenv("ROS_DISTRO", distribution)
    monkeypatch.delenv("FASTDDS_DEFAULT_PROFILES_FILE", raising=False)
    isolate_ros_graph()
    assert os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] == "LOCALHOST"
    assert os.environ.get("ROS_LOCALHOST_ONLY") == expected


def test_a_demonstration_keeps_a_profile_that_is_limited_to_loopback(monkeypatch):
    for name in NAMES:
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("FASTDDS_DEFAULT_PROFILES_FILE", "/share/drone_bridge/config/fastdds_loopback.xml")
    isolate_ros_graph()
    assert os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] == "SYSTEM_DEFAULT"


def test_another_middleware_does_not_read_that_profile(monkeypatch):
    for name in NAMES:
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("FASTDDS_DEFAULT_PROFILES_FILE", "/share/drone_bridge/config/fastdds_loopback.xml")
    monkeypatch.setenv("RMW_IMPLEMENTATION", "rmw_cyclonedds_cpp")
    isolate_ros_graph()
    assert os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] == "LOCALHOST"


def test_a_demonstration_avoids_domains_with_nodes(domain, ros, monkeypatch):
    monkeypatch.setattr(composition, "DOMAINS", (domain, 0))
    assert {composition.unused_domain() for _ in range(20)} == {0}


@pytest.mark.parametrize("number", ["0", "-1", "2.5", "x"])
def test_a_number_of_vehicles_is_at_least_one(number, capsys):
    with pytest.raises(SystemExit):
        main(["fleet", "--drones", number])
    assert f"--drones: must be a whole number of at least 1, not {number}" in capsys.readouterr().err


@pytest.mark.parametrize("what", ["testbed", "any"])
def test_a_folder_that_can_t_be_created_is_refused_with_the_reason(what, monkeypatch, capsys):
    for name in NAMES:
        monkeypatch.setenv(name, "")
    assert main([what, "--folder", "/proc/demo"]) == REFUSED
    assert re.search(r"^drone-bridge demo: '/proc/demo.*': No such file or directory\.$", capsys.readouterr().err)
