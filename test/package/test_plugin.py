# SPDX-License-Identifier: Apache-2.0
"""A protocol of another package: test/plugin, installed into a prefix of its own, is taken as ours are."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from composition import RUNNER
from geometry_msgs.msg import PointStamped, TwistStamped
from ports import free_ports
from processes import executable
from repository import ROOT
from ros_session import module_ros, repeating
from web_page import address_of
from web_viewer import Pilot

#: Timeout of the tests of one file.
CHECK_S = 280.0
ros = module_ros()


@pytest.fixture(scope="module", params=["pip", pytest.param("colcon", marks=pytest.mark.exhaustive)])
def environment(tmp_path_factory, request):
    """The environment with the plugin in a prefix of its own, installed without a look at the network."""
    folder = tmp_path_factory.mktemp("plugin")
    source, prefix = folder / "source", folder / "prefix"
    shutil.copytree(ROOT / "test" / "plugin", source, ignore=shutil.ignore_patterns("__pycache__"))
    if request.param == "pip":
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet"]
        install = ["install", "--no-deps", "--no-build-isolation", "--no-index", "--prefix", prefix, source]
        subprocess.run([*pip, *install], check=True, timeout=300, env={**os.environ, "PYTHONPATH": ""})
    else:
        build = ["colcon", "--log-base", folder / "log", "build", "--base-paths", source]
        build += ["--build-base", folder / "build", "--install-base", prefix, "--merge-install"]
        subprocess.run(build, check=True, timeout=300, cwd=folder, stdout=subprocess.DEVNULL)
    (library,) = prefix.glob("lib/python*/site-packages")
    paths = {"PYTHONPATH": library, "AMENT_PREFIX_PATH": prefix}
    return {name: os.pathsep.join([str(first), os.environ.get(name, "")]) for name, first in paths.items()}


# What goes by the entry point is asked of both prefixes, what the nodes do of one.
of_pip = pytest.mark.parametrize("environment", ["pip"], indirect=True)


@pytest.fixture
def start(environment, start_child):
    """start(*command) runs a program in that environment."""
    return lambda *command: start_child(*command, env=environment)


@pytest.fixture
def drone_bridge(start):
    return lambda *words: start(executable("drone-bridge"), *words)


def emulated(drone_bridge, *options):
    """Start an emulated kestrel; return it and its port."""
    child = drone_bridge("emulate", "kestrel", "--port", "0", *options)
    return child, int(child.wait_for_line(r"listening on 127\.0\.0\.1:(\d+)")[1])


def node(start, environment, name, *remaps, **parameters):
    library = environment["AMENT_PREFIX_PATH"].partition(os.pathsep)[0]
    given = [word for key, value in parameters.items() for word in ("-p", f"{key}:={value}")]
    return start(f"{library}/lib/kestrel_bridge/{name}", "--ros-args", *given, *remaps)


@of_pip
def test_the_promises_of_every_kind_hold(drone_bridge):
    """Of `check`, from where it is installed."""
    asked = drone_bridge("check", "kestrel", "-m", "not by_mechanism")
    assert asked.wait(CHECK_S) == 0, asked.output
    assert asked.count_lines(r"\d+ passed") == 1


@of_pip
@pytest.mark.exhaustive
@pytest.mark.parametrize("file", sorted(path.stem for path in (ROOT / "test" / "conformance").glob("test_*.py")))
def test_the_conformance_suite_passes(drone_bridge, file):
    asked = drone_bridge("check", "kestrel", "-m", "", "-k", file)
    assert asked.wait(CHECK_S) == 0, asked.output
    assert asked.count_lines(r"\d+ passed") == 1


@of_pip
def test_a_question_that_cannot_be_asked_is_a_failure_with_a_sentence(drone_bridge, environment):
    prefix = Path(environment["AMENT_PREFIX_PATH"].partition(os.pathsep)[0])
    server = prefix / "lib" / "kestrel_bridge" / "kestrel_server"
    hidden = server.rename(server.with_name("hidden"))
    try:
        asked = drone_bridge("check", "kestrel", "-k", "test_a_server_on_hold")
        assert asked.wait(CHECK_S) == 1, asked.output
    finally:
        hidden.rename(server)
    asked.wait_for_line("kestrel_bridge has no executable kestrel_server")


@of_pip
def test_through_the_relay_a_client_flies_the_drone_as_it_does_directly(start, drone_bridge, environment):
    (server_port,) = free_ports(1)
    emulator, port = emulated(drone_bridge)
    node(start, environment, "kestrel_bridge", port=port)
    node(start, environment, "kestrel_server", port=server_port)
    operator = drone_bridge("operate", "kestrel", "--port", server_port, "--plan", "2s forward 1, 1s")
    assert operator.wait() == 0, operator.output
    assert float(emulator.wait_for_line(r"standing at (\S+)")[1]) > 0.5
    assert "height=1" in operator.output  # the state came through, too: about 1 m, in cm


def test_launch_file_starts_bridge_emulator_and_page_with_a_wire_log(start, drone_bridge, ros, tmp_path):
    (port,) = free_ports(1)
    mine = tmp_path / "mine.yaml"
    mine.write_text(f"/**/kestrel_bridge:\n  ros__parameters: {{wire_log: {tmp_path}/wire}}\n")
    words = (f"kestrel_port:={port}", "emulate:=true", "namespace:=launched")
    words += ("view:=true", "view_port:=0", f"params_file:={mine}")
    launched = start(*RUNNER, "launch", "kestrel_bridge", "kestrel", *words)
    ros.subscribe(PointStamped, "/launched/height").wait()
    with Pilot(address_of(launched)) as pilot:
        topic = "/launched/cmd_vel_stamped"
        expected = {"axes": ["x", "y", "z", "yaw"], "holds": ["/launched/kestrel_bridge/hold"]}
        # A service is discovered apart from the topics of its node.
        pilot.wait_for(
            lambda: expected.items() <= pilot.vehicles.get(topic, {}).items(), "the kestrel and its hold on the page"
        )
        commands = ros.subscribe(TwistStamped, topic)
        pilot.take(topic)
        with repeating(lambda _: pilot.steer(x=0.5)):
            assert commands.wait(lambda command: command.twist.linear.x).twist.linear.x == pytest.approx(0.5)
    assert launched.stop(signal.SIGINT) == 128 + signal.SIGINT
    shown = [drone_bridge("wire", "show", log) for log in tmp_path.glob("wire/*")]
    assert [each.wait() for each in shown] == [0] * len(shown)
    assert any(": kestrel over udp, " in each.output and " Steer left=" in each.output for each in shown)


def test_it_takes_as_little_code_as_we_promise():
    files = (ROOT / "test" / "plugin").rglob("*.py")
    lines = [line for file in files for line in file.read_text().splitlines()]
    written = sum(bool(line.strip()) and not line.strip().startswith("#") for line in lines)
    assert written <= 820  # docstrings and sessions too
