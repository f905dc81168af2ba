# SPDX-License-Identifier: Apache-2.0
"""`drone-bridge doctor`: detected faults with advice, and its exit status."""

import os
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from processes import executable
from repository import ROOT

from drone_bridge.kind import kinds
from drone_bridge.tools.doctor import command as doctor
from drone_bridge.tools.doctor import running_nodes
from drone_bridge.tools.doctor.command import reach


def test_without_faults_two_processes_discover_each_other(start_child, domain):
    # Without a log file, and with time to discover on a busy machine.
    env = {"ROS_LOG_DIR": "/dev/null/log", "DRONE_BRIDGE_DISCOVERY_SECONDS": "60"}
    examined = start_child(executable("drone-bridge"), "doctor", env=env)
    assert examined.wait() == 0, examined.output
    examined.wait_for_line("^ok discovery ")
    examined.wait_for_line("^ok running        no bridge or server in this domain$")
    assert bool(examined.count_lines("^ok topics")) == bool(os.environ.get("FASTDDS_DEFAULT_PROFILES_FILE"))


def test_saved_minutes_of_the_wire_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("DRONE_BRIDGE_WIRE", str(tmp_path))
    (tmp_path / "robot_bridge-1.mcap").touch()
    (finding,) = doctor.wire()
    assert finding.found == f"1 last minutes before a fault in {tmp_path}, the newest robot_bridge-1.mcap"


def test_a_shell_with_another_ros_is_named_and_no_node_is_started(monkeypatch):
    monkeypatch.setattr(doctor.environment, "foreign_ros", lambda: "Python finds another one first.")
    (finding,) = doctor.ros()
    assert (finding.is_fatal, finding.remedy) == (True, "Python finds another one first.")
    assert [*doctor.discovery(), *doctor.running()] == []


def test_the_wheels_are_named_if_a_shell_has_another_distribution(monkeypatch):
    monkeypatch.setenv("ROS_DISTRO", "humble")
    monkeypatch.setattr(doctor, "version", lambda package: {"ros-rclpy": "7.1"}[package])
    (finding,) = doctor.ros()
    assert str(finding).startswith("ok ROS 2          wheels, rclpy 7.1, rmw_")


def test_an_empty_folder_is_no_library(tmp_path, monkeypatch):
    """As pip leaves it if two packages shared it, and one was removed."""
    (tmp_path / "emptied").mkdir()
    (tmp_path / "namespace" / "module").mkdir(parents=True)
    (tmp_path / "namespace" / "module" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(doctor, "OPTIONAL", {"emptied": "pictures", "namespace": "bags"})
    libraries, missing = doctor.optional()
    assert libraries.found == "namespace"
    assert "no emptied: pictures" in missing.found


def test_a_domain_that_is_no_number_is_reported_and_the_rest_examined(monkeypatch, capsys):
    monkeypatch.setenv("ROS_DOMAIN_ID", "seven")
    assert doctor.main([]) == 1
    printed = capsys.readouterr().out
    assert "\nx  domain         ROS_DOMAIN_ID is 'seven' but " in printed
    assert "\nok libraries " in printed
    assert "running" not in printed


def test_nodes_of_this_domain_are_found_with_their_newest_reports(monkeypatch):
    listeners, nodes = [], [("rviz", "/"), ("robot_bridge", "/r1"), ("testbed_server", "/")]
    node = SimpleNamespace(
        create_subscription=lambda kind, topic, call, depth: listeners.append(call),
        get_node_names_and_namespaces=lambda: nodes,
    )

    def spin_until(_, is_done, timeout_s):
        if timeout_s == running_nodes.QUIET_S:
            nodes[3:] = [("telemetry_server", "/")]  # discovered later
        for message in ("old", "new"):
            statuses = [DiagnosticStatus(name=f"{name}: link", message=message) for name in ("r1/robot_bridge", "web")]
            listeners[0](DiagnosticArray(status=statuses))

    monkeypatch.setattr(running_nodes, "spin_until", spin_until)
    monkeypatch.setattr(running_nodes.rclpy, "create_node", lambda *_, **__: node)
    found = {each.name: (each.title, each.status and each.status.message) for each in running_nodes.inspect_nodes()}
    assert found == {
        "/r1/robot_bridge": ("tracked robot", "new"),
        "/testbed_server": (kinds()["testbed"].title, None),
        "/telemetry_server": (kinds()["telemetry"].title, None),
    }


def test_security_that_is_not_enforced_is_reported(monkeypatch):
    assert "security" not in {each.subject for each in reach()}
    monkeypatch.setenv("ROS_SECURITY_ENABLE", "true")
    assert "start unsecured" in next(each.found for each in reach() if each.subject == "security")
    monkeypatch.setenv("ROS_SECURITY_STRATEGY", "Enforce")
    assert "security" not in {each.subject for each in reach()}


PROFILES = ROOT / "config"


def topics():
    return next(each for each in reach() if each.subject == "topics")


def test_topics_that_reach_other_machines_are_a_warning_with_the_remedy(monkeypatch):
    monkeypatch.delenv("ROS_STATIC_PEERS", raising=False)
    monkeypatch.delenv("ROS_AUTOMATIC_DISCOVERY_RANGE", raising=False)
    monkeypatch.setenv("FASTDDS_DEFAULT_PROFILES_FILE", str(PROFILES / "fastdds.xml"))
    assert "all networks" in topics().found
    assert "localhost:=true" in topics().remedy
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "SUBNET")  # on request
    assert topics().remedy == ""
    monkeypatch.setenv("FASTDDS_DEFAULT_PROFILES_FILE", str(PROFILES / "fastdds_loopback.xml"))
    assert "this machine only" in topics().found
    monkeypatch.setenv("FASTDDS_DEFAULT_PROFILES_FILE", "/nowhere.xml")
    assert topics().is_fatal
    assert "FASTDDS_DEFAULT_PROFILES_FILE names /nowhere.xml" in topics().remedy
    monkeypatch.delenv("FASTDDS_DEFAULT_PROFILES_FILE")
    assert "localhost:=true" in topics().remedy


@pytest.mark.parametrize("error", [RuntimeError(), OSError(28, "No space left on device")])
def test_a_failed_start_of_a_node_has_a_reason(monkeypatch, error):
    monkeypatch.setattr(doctor, "_can_start_nodes", lambda: True)
    monkeypatch.setattr(doctor, "_receive_from_other_process", Mock(side_effect=error))
    (finding,) = doctor.discovery()
    assert type(error).__name__ in finding.found
    assert str(error) in finding.found
