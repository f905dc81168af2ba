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


def check(trace, give, most):
    """Give values until few enough functions have run in each turn in which one arrived.

    Those that run only in some turns do other work, and on a busy machine in many of them.
    """

    def is_short():
        give()
        runs = [set(run) for run, _ in tuple(trace.arrivals)]
        return runs and len(set.intersection(*runs)) <= most

    wait_until(is_short, f"a path of at most {most} functions", period_s=0.02)
    handing_on = min((handing_on for _, handing_on in trace.arrivals), key=len)
    assert len(handing_on) <= MAX_HANDING_ON, sorted(handing_on.values())


@pytest.mark.parametrize(("start", "most"), [(telemetry, 85), (robot, 110)])
def test_a_command_passes_few_functions(ros, free_port, start, most):
    beside = ["net/link_loop:_read"]  # on some machines, in each turn
    with PathTrace(is_sent, ["session/arbiter:put"], beside) as trace, contextlib.ExitStack() as stack:
        peer, speak = start(ros, free_port)
        stack.callback(peer.close)
        speak()
        publisher = ros.publisher(Twist, "cmd_vel")

        def command():
            if start is telemetry:
                speak()  # otherwise the drone counts as silent
            publisher.publish(twist(forward=0.1))

        check(trace, command, most)


@pytest.mark.parametrize(
    ("start", "topic", "kind", "most"), [(telemetry, "imu/data", Imu, 95), (robot, "battery_state", BatteryState, 87)]
)
def test_a_measurement_passes_few_functions(ros, free_port, start, topic, kind, most):
    with PathTrace(is_published(topic), beside=["net/wire_log:tap"]) as trace, contextlib.ExitStack() as stack:
        peer, speak = start(ros, free_port)
        stack.callback(peer.close)
        ros.subscribe(kind, topic)
        check(trace, speak, most)
