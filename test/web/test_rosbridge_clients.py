# SPDX-License-Identifier: Apache-2.0
"""Unmodified clients of rosbridge at web_bridge. The emulator's trajectory is the judge."""

import json
import re
import signal
import sys
from pathlib import Path

import pytest
from ports import free_port
from processes import Process, executable
from ros_session import module_ros, wait_until
from web_viewer import connect, web_bridge
from websockets.exceptions import InvalidStatus
from witnesses import flight, wait_for

pytest.importorskip("roslibpy", reason="rosdep has no key for it")

CLIENTS = Path(__file__).parent / "clients"
SPEED = 0.3
#: Longest way of the robot after its program was killed, m: a command's timeout, and as much for a busy machine.
STOPS_WITHIN = 2 * 0.5 * SPEED

ros = module_ros()


@pytest.fixture(scope="module")
def way(tmp_path_factory):
    """Trajectory of a robot with its bridge and the page."""
    port, file = free_port(), tmp_path_factory.mktemp("robot") / "way.csv"
    emulator = executable("drone-bridge"), "emulate", "robot", "--port", port, "--no-discovery", "--trajectory", file
    with Process(*emulator), Process.node("robot_bridge", host="127.0.0.1", port=port) as bridge:
        bridge.wait_for_line("granted subsystem 0")
        yield file


@pytest.fixture(scope="module")
def web(way):
    with web_bridge() as process:
        yield process


def port_of(web):
    return web.address.rpartition(":")[2].strip("/")


def stands(file):
    """Return whether the robot has stood for a second."""
    *_, last = rows = flight(file)
    return {row["x"] for row in rows if row["time"] > last["time"] - 1.0} == {last["x"]}


def test_a_program_drives_until_it_is_killed(way, web, ros):
    begin = flight(way)[-1]["x"]
    with Process(sys.executable, CLIENTS / "drive.py", port_of(web)) as program:
        program.wait_for_line("/battery_state.* /cmd_vel.* /odom")
        wait_for(way, lambda row: row["x"] > begin + 0.3, "a drive")
        program.wait_for_line(r"odom 0\.[1-9]")
        program.stop(signal.SIGKILL)
        killed_at = flight(way)[-1]["x"]
        wait_until(lambda: stands(way), "a robot that stands", period_s=0.2)
    assert flight(way)[-1]["x"] - killed_at < STOPS_WITHIN
    wait_until(lambda: not ros.node.get_publishers_info_by_topic("/cmd_vel"), "the end of its publisher")


def test_a_program_holds_and_only_a_person_resumes(way, web, ros):
    begin = flight(way)[-1]
    with Process(sys.executable, CLIENTS / "drive.py", port_of(web), "hold") as program:
        program.wait_for_line("hold True: True")
        program.wait_for_line("hold False: A program can't resume")
        program.wait_for_line("odom")
        wait_for(way, lambda row: row["time"] > begin["time"] + 2.0, "two seconds")
        assert flight(way)[-1]["x"] == begin["x"]
        wait_until(lambda: ros.switch("robot_bridge/hold", False).success, "a resume by a person")
        wait_for(way, lambda row: row["x"] > begin["x"] + 0.1, "a drive")
        program.stop(signal.SIGKILL)


@pytest.mark.parametrize("ends", ["program", "server"])
def test_its_goals_end_with_its_connection(way, ros, ends):
    begin = flight(way)[-1]["x"]
    with Process.node("rover_controller") as controller, web_bridge() as web:
        controller.wait_for_line("Following the odometry")
        with Process(sys.executable, CLIENTS / "drive.py", port_of(web), "goal") as program:
            wait_for(way, lambda row: row["x"] > begin + 0.2, "a drive")
            (program if ends == "program" else web).stop(signal.SIGKILL if ends == "program" else signal.SIGTERM)
            controller.wait_for_line("go_to: .*ancel")
            program.stop(signal.SIGKILL)
        wait_until(lambda: stands(way), "a robot that stands", period_s=0.2)


def test_a_value_of_a_wrong_type_never_reaches_the_wire(way, web):
    with connect(f"ws://{web.address}", proxy=None) as client:
        for x in ("fast", None, [1.0], {"x": 1.0}, True):
            about = {"op": "publish", "topic": "/cmd_vel", "type": "geometry_msgs/Twist"}
            client.send(json.dumps({**about, "msg": {"linear": {"x": x}}}))
            assert "linear.x is" in json.loads(client.recv(30.0))["msg"]


@pytest.mark.parametrize(
    ("parameters", "protocols"),
    [({"rosbridge": False}, None), ({"host": "0.0.0.0", "secret": "a"}, None), ({}, ["wamp"])],
)
def test_rosbridge_is_off_where_it_should_be(parameters, protocols):
    with web_bridge(**parameters) as web:
        address = re.sub(r"^[^:]*", "127.0.0.1", web.address)
        with pytest.raises(InvalidStatus, match="400"):
            connect(f"ws://{address}", subprotocols=protocols, proxy=None)
