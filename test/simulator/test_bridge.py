# SPDX-License-Identifier: Apache-2.0
"""Process tests of simulator_bridge, with an emulator that behaves like the CUAUV server."""

import math
import signal
import socket
import struct
import sys
import time

import pytest
from geometry_msgs.msg import Twist, Vector3
from nav_msgs.msg import Odometry
from processes import Process, when_listening
from ros_session import wait_until
from simulator_client import SimulatorClient

from drone_bridge import srv
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import Attribute

VEHICLE = 0
COMMAND = (sys.executable, "-m", "drone_bridge.simulator.emulator", "--port", 0, "--scene", "buoys")
# From the principal axes to the model: a quarter turn about z, then a tilt of 0.6 rad about x.
BODY_TO_MODEL = "0.6755 0.2090 0.2090 0.6755"
LEARNED = r"principal axes to its model is \(w"
EAST = (math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5))  # of the model


@pytest.fixture
def emulate(start_child):
    return lambda *arguments: when_listening(start_child(*COMMAND, *arguments))


@pytest.fixture
def connect(closing):
    return lambda emulator: closing(SimulatorClient(emulator.port))


def bridge(emulator, **parameters):
    parameters = {"request_timeout": 20.0, **parameters}
    process = Process.node("simulator_bridge", port=emulator.port, **parameters)
    process.wait_for_line("Connected to")  # services return an error until then
    return process


def call(ros, name, service, /, **fields):
    response = ros.call_again(service, f"simulator_bridge/{name}", service.Request(**fields))
    assert response.success, response.message
    return response


def velocity(client):
    return client.get(sim.GetEntity(VEHICLE, Attribute.VELOCITY)).value


def steer(client, publisher):
    """Command 1 m/s ahead until the vehicle has a velocity, and return it."""
    command = Twist(linear=Vector3(x=1.0))
    wait_until(lambda: publisher.publish(command) or math.hypot(*velocity(client)) > 0.1, "a velocity", period_s=0.05)
    return velocity(client)


def near(*values):
    return pytest.approx(values, abs=1e-3)


def test_a_vehicle_turned_while_paused_has_a_known_heading_and_is_steered(ros, emulate, connect):
    emulator = emulate("--quirks", "real", "--btom", BODY_TO_MODEL)
    client = connect(emulator)
    client.get(sim.SetEntity(VEHICLE, Attribute.ORIENTATION, EAST))
    before = client.get(sim.GetEntity(VEHICLE, Attribute.ORIENTATION)).value
    odom = ros.subscribe(Odometry, "odom")
    with bridge(emulator) as process:
        process.wait_for_line(LEARNED)
        assert client.get(sim.GetEntity(VEHICLE, Attribute.ORIENTATION)).value == near(*before)  # as it was
        assert steer(client, ros.publisher(Twist, "cmd_vel")) == near(0, 1, 0)  # east

        def is_published():
            call(ros, "run", srv.Run, steps=1, wait=True)
            return len(odom)

        wait_until(is_published, "odometry")
        q = odom.wait().pose.pose.orientation
        assert abs(q.w) == pytest.approx(1.0, abs=0.01)  # east is where ROS looks without a rotation
        refused = ros.call_again(srv.RemoveItem, "simulator_bridge/remove", srv.RemoveItem.Request(type=0, id=99))
        assert (refused.success, refused.code) == (False, 0)
        assert refused.message == "No entity with given ID."
        assert process.stop() == 0
    assert velocity(client) == near(0, 0, 0)


def test_a_vehicle_whose_simulator_is_restarted_and_unpaused_at_once_is_steered(ros, emulate, connect):
    """Its rotation can't be learned again, as it is never paused. It is at its first place, far from its last one."""
    world = ("--quirks", "real", "--btom", BODY_TO_MODEL)
    emulator = emulate(*world)
    port, odom = emulator.port, ros.subscribe(Odometry, "odom")
    with bridge(emulator) as process:
        process.wait_for_line(LEARNED)
        call(ros, "run", srv.Run)
        publisher = ros.publisher(Twist, "cmd_vel")
        for restarts in range(1, 4):
            client = connect(emulator)
            odom.clear()
            client.get(sim.SetEntity(VEHICLE, Attribute.POSITION, (50.0, 20.0, 5.0)))
            client.get(sim.SetEntity(VEHICLE, Attribute.ORIENTATION, EAST))
            odom.wait(lambda message: message.pose.pose.position.y > 40.0)
            client.close()
            emulator.send(signal.SIGKILL)
            emulator.wait()
            emulator = emulate("--port", port, "--running", *world)
            process.wait_for_count("Connected to", 1 + restarts)
            north, *others = steer(connect(emulator), publisher)  # as at its start
            assert north > 0.1
            assert others == near(0, 0)
        assert process.count_lines("can't be learned") == 0


def test_server_that_crashes_on_closed_connections_survives_suspension(ros, emulate):
    emulator = emulate("--quirks", "real", "--fragile", "--running")
    odom = ros.subscribe(Odometry, "odom")
    with bridge(emulator, body_to_model=[1.0, 0.0, 0.0, 0.0], request_timeout=0.5) as process:
        publisher = ros.publisher(Twist, "cmd_vel")
        odom.wait()
        emulator.send(signal.SIGSTOP)
        process.wait_for_line("has not answered")
        time.sleep(1.0)  # after which a bridge would have closed it
        emulator.send(signal.SIGCONT)
        process.wait_for_line("responds again")
        odom.clear()
        odom.wait()
        command = Twist(linear=Vector3(x=1.0))

        def is_followed():
            publisher.publish(command)
            odom.clear()
            return odom.wait().twist.twist.linear.x > 0.5

        wait_until(is_followed, "a velocity", period_s=0.05)
        assert process.count_lines("Connected to") == 1
    assert emulator.is_running


def test_a_server_that_dies_of_abrupt_closes_survives_the_bridge(ros, emulate, connect):
    emulator = emulate("--quirks", "real", "--fragile", "--running")
    odom = ros.subscribe(Odometry, "odom")
    for _ in range(3):
        with bridge(emulator, body_to_model=[1.0, 0.0, 0.0, 0.0]):
            odom.clear()
            odom.wait()
    rude = connect(emulator)
    rude.add(sim.StreamEntity(VEHICLE, 1, (Attribute.POSITION,)))
    rude.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    rude.close()
    assert emulator.wait() == -signal.SIGPIPE
    emulator.wait_for_line("killed by SIGPIPE")
