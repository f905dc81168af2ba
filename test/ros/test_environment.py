# SPDX-License-Identifier: Apache-2.0
"""Missing parts of the environment, by the installed files."""

import os
import pwd
import sys
import tempfile
from pathlib import Path
from unittest.mock import Mock

import pytest

from drone_bridge.ros.process import environment
from drone_bridge.ros.process.environment import (
    RANGE,
    complete_environment,
    discovery_problem,
    domain_of,
    domain_problem,
    missing_middleware,
    name_home,
)
from drone_bridge.tools.record.settings import new_bag

LIBRARIES = (
    "librmw_fastrtps_cpp.so",
    "librmw_cyclonedds_cpp.so",
    "librmw_fastrtps_shared_cpp.so",
    "librmw_dds_common__rosidl_typesupport_cpp.so",
    "librmw_dds_common__rosidl_typesupport_introspection_cpp.so",
)


def test_of_a_middleware_that_is_missing_those_that_there_are_are_named(tmp_path, monkeypatch):
    (tmp_path / "lib").mkdir()
    for name in LIBRARIES:
        (tmp_path / "lib" / name).touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setenv("AMENT_PREFIX_PATH", "/nowhere")
    monkeypatch.setenv("RMW_IMPLEMENTATION", "rmw_zenoh_cpp")
    assert missing_middleware() == (
        "RMW_IMPLEMENTATION is rmw_zenoh_cpp, which is not installed here; there is rmw_cyclonedds_cpp and "
        "rmw_fastrtps_cpp. Unset the variable, or install that middleware."
    )
    monkeypatch.setenv("RMW_IMPLEMENTATION", "rmw_fastrtps_shared_cpp")
    assert missing_middleware()
    for there in ("rmw_cyclonedds_cpp", ""):
        monkeypatch.setenv("RMW_IMPLEMENTATION", there)
        assert missing_middleware() is None


@pytest.mark.parametrize("home_of_docker", [False, True])
def test_a_user_without_home_and_passwd_entry_gets_a_folder(tmp_path, monkeypatch, capsys, home_of_docker):
    monkeypatch.setattr(pwd, "getpwuid", Mock(side_effect=KeyError("getpwuid(): uid not found")))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("HOME", "unset by the test")
    monkeypatch.delenv("HOME")
    with pytest.raises(RuntimeError):
        Path.home()
    if home_of_docker:
        monkeypatch.setenv("HOME", str(tmp_path / "absent"))  # stands for /, which this user can't write
    name_home()
    home = tmp_path / f"drone_bridge_{os.getuid()}"
    assert Path.home() == home
    assert home.stat().st_mode & 0o777 == 0o700
    assert str(home) in capsys.readouterr().err
    assert new_bag().is_relative_to(home)
    name_home()
    assert not capsys.readouterr().err
    home.joinpath("drone_bridge_bags").rmdir()
    home.rmdir()
    home.symlink_to("/")  # of somebody else
    monkeypatch.delenv("HOME")
    name_home()
    assert Path.home().parent == tmp_path
    assert Path.home() != home


@pytest.mark.parametrize("domain", ["", "0", "232", " 7 ", "233", "seven", "-1"])
def test_a_domain_is_a_number(domain, monkeypatch):
    monkeypatch.setenv("ROS_DOMAIN_ID", domain)
    assert (domain_problem() is None) == (domain in ("", "0", "232", " 7 "))


@pytest.mark.parametrize(("domain", "number"), [("", 0), ("7", 7), (" 7 ", 7), ("seven", 0)])
def test_a_domain_is_read_as_it_is_checked(domain, number):
    assert domain_of({"ROS_DOMAIN_ID": domain}) == number


def test_no_program_starts_in_a_domain_that_is_none(monkeypatch):
    monkeypatch.setenv("ROS_DOMAIN_ID", "300")
    with pytest.raises(SystemExit, match="ROS_DOMAIN_ID is '300' but must be a whole number from 0 to 232"):
        complete_environment()


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({}, ""),
        ({"ROS_DISCOVERY_SERVER": "192.0.2.10:11811"}, "ROS_DISCOVERY_SERVER is 192.0.2.10:11811"),
        ({RANGE: "OFF"}, f"{RANGE} is OFF"),
        ({RANGE: "SUBNET"}, ""),
    ],
)
def test_a_variable_that_keeps_nodes_apart_is_named(variables, named, monkeypatch):
    for variable in ("ROS_DISCOVERY_SERVER", RANGE):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    assert discovery_problem().startswith(named)
    assert bool(discovery_problem()) == bool(named)


INDEX = "share/ament_index/resource_index"


@pytest.mark.parametrize(("listed", "is_refused"), [("own", False), ("other own", False), ("other", True), ("", False)])
def test_another_ros_is_refused_only_without_the_own_one(tmp_path, monkeypatch, listed, is_refused):
    for name, marker in (("own", "rosidl_interfaces/drone_bridge"), ("other", "packages/rclpy")):
        (tmp_path / name / INDEX / marker).parent.mkdir(parents=True)
        (tmp_path / name / INDEX / marker).touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "own"))
    monkeypatch.setattr(environment, "find_spec", lambda name: None)
    monkeypatch.setenv("AMENT_PREFIX_PATH", os.pathsep.join(str(tmp_path / name) for name in listed.split()))
    refusal = environment.foreign_ros()
    assert bool(refusal) == is_refused
    assert not is_refused or f"AMENT_PREFIX_PATH has {tmp_path / 'other'}" in refusal
