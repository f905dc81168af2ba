# SPDX-License-Identifier: Apache-2.0
"""The file of a fleet: ranges, ports that count up, and what is wrong with it in a sentence."""

import re
from pathlib import Path

import pytest

from drone_bridge.tools.fleet.command import main
from drone_bridge.tools.fleet.plan import FleetFileError, Overrides, expand, load

ROOT = Path(__file__).parent.parent


def fleet_of(tmp_path, text, **overrides):
    file = tmp_path / "fleet.yaml"
    file.write_text(text)
    return {vehicle.name: vehicle for vehicle in load(file, Overrides(**overrides))}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("drone", ["drone"]),
        ("drone[1-3]", ["drone1", "drone2", "drone3"]),
        ("drone[08-10]", ["drone08", "drone09", "drone10"]),
        ("10.0.0.[7-7]", ["10.0.0.7"]),
        ("[1-2]/base", ["1/base", "2/base"]),
    ],
)
def test_a_range_stands_for_its_members(text, expected):
    assert list(expand(text)) == expected


@pytest.mark.parametrize(
    ("text", "error"),
    [("a[3-1]", "counts down"), ("a[1-2]b[1-2]", "has 2 ranges"), ("a[1-99999]", "has 99999 members")],
)
def test_an_invalid_range_is_refused(text, error):
    with pytest.raises(ValueError, match=error):
        expand(text)


def test_every_vehicle_has_its_own_names_and_ports(tmp_path):
    fleet = fleet_of(
        tmp_path,
        """
        vehicles:
          drone[1-3]:
            protocol: testbed
            host: 10.0.0.[11-13]
            port: 8000
            parameters: {command_timeout: 1, hardware_id: "number [1-3]"}
          gui[1-2]: {protocol: dronegui, port: 5000, parameters: {navdata_port: 6000}, frame_prefix: ""}
        """,
    )
    assert list(fleet) == ["drone1", "drone2", "drone3", "gui1", "gui2"]
    assert fleet["drone2"].namespace == "/drone2"
    assert fleet["drone2"].parameters == {
        **{"host": "10.0.0.12", "port": 8001, "command_timeout": 1.0, "hardware_id": "number 2"},
        "frame_prefix": "drone2/",
    }
    assert type(fleet["drone2"].parameters["command_timeout"]) is float
    assert (fleet["gui2"].parameters["port"], fleet["gui2"].parameters["navdata_port"]) == (5001, 6001)
    assert fleet["gui2"].frame_prefix == ""


def test_launch_arguments_are_prefixes_or_defaults(tmp_path):
    text = "vehicles: {a: {protocol: robot}, b: {protocol: robot, host: 10.1.1.1, emulate: false}}"
    fleet = fleet_of(tmp_path, text, namespace="lab/", frame_prefix="lab/", host="10.0.0.1", control=True)
    assert (fleet["a"].namespace, fleet["a"].frame_prefix) == ("/lab/a", "lab/a/")
    assert [vehicle.parameters["host"] for vehicle in fleet.values()] == ["10.0.0.1", "10.1.1.1"]
    assert all(vehicle.control == {"pattern": "square"} and vehicle.emulate is None for vehicle in fleet.values())


def test_a_file_that_can_t_be_read_is_named_in_a_sentence(tmp_path, capsys):
    assert main([str(tmp_path / "absent.yaml")]) == 2
    assert f"{tmp_path / 'absent.yaml'} can't be read: No such file or directory." in capsys.readouterr().err


def test_vehicles_with_one_address_are_told_apart(tmp_path):
    text = """
        vehicles:
          rover[1-2]: {protocol: robot, parameters: {robot_name: "rover [1-2]"}}
          sub[1-2]: {protocol: simulator, parameters: {vehicle: "[1-2]"}}
          lander[1-2]: {protocol: telemetry, port: 7000, parameters: {transport: udp}}
    """
    assert len(fleet_of(tmp_path, text)) == 6


def test_emulators_agree_with_their_bridges(tmp_path):
    fleet = fleet_of(
        tmp_path,
        """
        vehicles:
          drone[1-2]:
            protocol: testbed
            port: 8000
            parameters: {attitude_layout: pose}
            emulate: {seed: "[7-8]", width: 160}
          gui: {protocol: dronegui, port: 5000, parameters: {navdata_port: 6000}, emulate: true}
          lander: {protocol: telemetry, port: 7000, emulate: true}
        """,
    )
    assert fleet["drone2"].emulate == {
        **{"host": "127.0.0.1", "port": 8001, "role": "listen", "layout": "pose"},
        **{"realtime": True, "seed": 8, "width": 160},
    }
    assert fleet["gui"].emulate["navdata-port"] == 6000
    assert fleet["lander"].parameters["transport"] == "udp"


@pytest.mark.parametrize(
    ("text", "line", "error"),
    [
        ("", None, "is empty"),
        ("vehicles: {", 1, "not YAML"),
        ("vehicles: {}", 1, "'vehicles' is empty"),
        ("drones: {}", 1, "the file has no key 'drones'; it has vehicles"),
        ("vehicles:\n  a: 3", 2, "'a' has to be a map"),
        ("vehicles:\n  a: {port: 3}", 2, "'a' has no protocol"),
        ("vehicles:\n  a:\n    protocol: mavlink", 3, "protocol is 'mavlink', and is one of testbed"),
        ("vehicles:\n  a:\n    protocol: [robot]", 3, "protocol is '['robot']', and is one of testbed"),
        (
            "vehicles:\n  drone-1: {protocol: robot}",
            2,
            "can't have the namespace '/drone-1': namespace must not contain",
        ),
        ("vehicles:\n  a:\n    protocol: robot\n    prot: 1", 4, "'a' has no key 'prot'; it has protocol"),
        ("vehicles:\n  a[2-1]: {protocol: robot}", 2, "counts down"),
        ("vehicles:\n  a: {protocol: robot}\n  a: {protocol: robot}", 3, "the key 'a' of 'vehicles' is repeated"),
        (
            "vehicles:\n  a[1-2]: {protocol: robot, port: 9}\n  a2: {protocol: robot}",
            3,
            "there is a vehicle 'a2' already",
        ),
        ("vehicles:\n  a: {protocol: robot}\n  b: {protocol: robot, namespace: a}", 3, "'b' has the namespace of 'a'"),
        ("vehicles:\n  a[1-2]: {protocol: robot}", 2, "'a2' has the address 127.0.0.1:25600, and so has 'a1'"),
        (
            "vehicles:\n  a: {protocol: robot, port: 9, host: localhost}\n  b: {protocol: testbed, port: 9}",
            3,
            "'b' (testbed) has the TCP address 127.0.0.1:9, and so has 'a' (robot).",
        ),
        (
            "vehicles:\n  a[1-2]: {protocol: dronegui, port: 5000}",
            2,
            "'a2' has the navdata_port 5561, and so has 'a1'",
        ),
        ("vehicles:\n  a[1-2]:\n    protocol: telemetry\n    port: 5000", 2, "'a2' has the transport 'topic', whose"),
        ("vehicles:\n  a[1-3]:\n    protocol: robot\n    host: h[1-2]", 4, "host has 2 values for 3 vehicles"),
        ("vehicles:\n  a[1-3]:\n    protocol: robot\n    port: 65534", 4, "counts up from 65534 to 65536"),
        ("vehicles:\n  a:\n    protocol: robot\n    port: many", 4, "port is 'many', and has to be of the type int"),
        ("vehicles:\n  a:\n    protocol: robot\n    emulate: perhaps", 4, "emulate is 'perhaps'"),
        (
            "vehicles:\n  a:\n    protocol: robot\n    parameters:\n      comand_timeout: 1.0",
            5,
            "robot_bridge has no parameter comand_timeout",
        ),
        (
            "vehicles:\n  a:\n    protocol: robot\n    parameters:\n      command_timeout: 100",
            5,
            "command_timeout is 100.0, and has to be from 0.01 to 60",
        ),
        (
            "vehicles:\n  a:\n    protocol: testbed\n    parameters: {sync: never}",
            4,
            "sync is 'never', and has to be one of latest, lockstep",
        ),
        ("vehicles:\n  a:\n    protocol: robot\n    control: {pattern: zigzag}", 4, "pattern is 'zigzag'"),
        (
            "vehicles:\n  a:\n    protocol: robot\n    emulate: {speed: 1}",
            4,
            "the emulator refuses its options: unrecognized arguments: --speed=1",
        ),
        ("vehicles:\n  a:\n    protocol: testbed\n    emulate: {width: big}", 4, "--width: invalid int value: 'big'"),
        ("vehicles:\n  a: &x {protocol: robot}\n  b: *x", None, "aliases"),
    ],
)
def test_errors_name_the_line(tmp_path, text, line, error):
    with pytest.raises(FleetFileError) as raised:
        fleet_of(tmp_path, text)
    sentence = str(raised.value)
    assert error in sentence
    assert sentence.startswith(f"{tmp_path / 'fleet.yaml'}:{line}: " if line else str(tmp_path / "fleet.yaml"))
    assert sentence.endswith((".", "'vehicles'."))


@pytest.mark.parametrize("path", sorted((ROOT / "config" / "fleets").glob("*.yaml")), ids=lambda path: path.name)
def test_the_shipped_fleet_files_are_valid(path):
    assert load(path)


def test_a_parameter_file_that_is_wrong_is_refused_or_named(tmp_path, capsys):
    fleet_file, mine = tmp_path / "fleet.yaml", tmp_path / "mine.yaml"
    fleet_file.write_text("vehicles:\n  a: {protocol: robot, control: true}\n  b: {protocol: testbed}")
    words = [str(fleet_file), "--dry-run", "--ros-args", "--params-file", str(mine)]
    mine.write_text("/**:\n  ros__parameters: [1")
    assert main(words) == 2
    assert f"{mine}:2: this is not YAML" in capsys.readouterr().err
    mine.write_text("/**:\n  ros__parameters: {pattern: square, patern: square}")
    assert main(words) == 0
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert "no node that '/**' names has a parameter 'patern', did you mean 'pattern'?" in said[0]


DEPLOYMENT = (ROOT / "docs" / "deploy.md").read_text()


def test_the_page_on_deployment_makes_the_fleet_file_that_its_unit_names(tmp_path):
    instance = re.search(r"systemctl enable --now drone_bridge@(\w+)", DEPLOYMENT)[1]
    path, text = re.search(r"sudo tee (\S+) <<'END'\n(.*?)^END$", DEPLOYMENT, re.M | re.S).groups()
    unit = (ROOT / "config" / "systemd" / "drone_bridge@.service").read_text()
    assert path in re.search(r"^ExecStart=(.*)$", unit, re.M)[1].replace("%i", instance)
    assert fleet_of(tmp_path, text).keys() == {"rover"}
