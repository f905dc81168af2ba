# SPDX-License-Identifier: Apache-2.0
"""Number of functions on a value's path in a bridge: a command from its topic to the socket, and a measurement back.

Checks, control laws, estimators and codecs run beside them. Before velocities were one class and nodes one layer, 13
functions handed on a command of robot_bridge and 7 a measurement; 112 and 94 ran.
"""

import contextlib

import pytest
from geometry_msgs.msg import Twist
from path_trace import PathTrace, is_published, is_sent
from robot_peer import LAMP, RobotPeer
from ros_session import wait_until
from sensor_msgs.msg import BatteryState, Imu
from telemetry_documents import drone
from telemetry_peer import TelemetryPeer
from twists import twist

from drone_bridge.robot.bridge.node import RobotBridge
from drone_bridge.robot.codec import BindSubsystem, SensorReading, SensorUpdate
from drone_bridge.telemetry.bridge import TelemetryBridge

#: Limits for functions that hand a value on, between the turn of the link's loop and the socket or publisher.
MAX_HANDING_ON = 12
#: Functions that run in each of these turns are on the path. Those that run only in some do other work.
TURNS = 20


def telemetry(ros, port):
    ros.run(TelemetryBridge, transport="udp", port=port)
    peer = TelemetryPeer(port)
    return peer, lambda: peer.send(drone())


def robot(ros, port):
    peer = RobotPeer()
    ros.run(RobotBridge, port=peer.port)
    peer.wait_for(BindSubsystem, lambda packet: packet.id == LAMP)
    readings = SensorUpdate(tuple(SensorReading(number, 1000) for number in range(4)))
    return peer, lambda: peer.send(readings)


def check(trace, most):
    """Check how many functions hand a value on, and how many run in each turn in which one arrives."""
    handing_on = min((handing_on for _, handing_on in trace.arrivals), key=len)
    assert len(handing_on) <= MAX_HANDING_ON, sorted(handing_on.values())
    first, *others = (run for run, _ in trace.arrivals)
    on_the_path = [name for code, name in first.items() if all(code in run for run in others)]
    assert len(on_the_path) <= most, sorted(on_the_path)


@pytest.mark.parametrize(("start", "most"), [(telemetry, 89), (robot, 109)])
def test_a_command_passes_few_functions(ros, free_port, start, most):
    with PathTrace(is_sent, via=["session/arbiter:put"]) as trace, contextlib.ExitStack() as stack:
        peer, speak = start(ros, free_port)
        stack.callback(peer.close)
        speak()
        publisher = ros.publisher(Twist, "cmd_vel")

        def command():
            if start is telemetry:
                speak()  # otherwise the drone counts as silent
            publisher.publish(twist(forward=0.1))

        wait_until(lambda: command() or len(trace.arrivals) > TURNS, "commands", period_s=0.02)
    check(trace, most)


@pytest.mark.parametrize(
    ("start", "topic", "kind", "most"), [(telemetry, "imu/data", Imu, 95), (robot, "battery_state", BatteryState, 90)]
)
def test_a_measurement_passes_few_functions(ros, free_port, start, topic, kind, most):
    with PathTrace(is_published(topic)) as trace, contextlib.ExitStack() as stack:
        peer, speak = start(ros, free_port)
        stack.callback(peer.close)
        ros.subscribe(kind, topic)
        wait_until(lambda: speak() or len(trace.arrivals) > TURNS, "measurements", period_s=0.02)
    check(trace, most)
