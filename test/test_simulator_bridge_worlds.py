# SPDX-License-Identifier: Apache-2.0
"""What simulator_bridge leaves behind: a vehicle that stands, and a simulator that lives on."""

import math
import signal
import sys

import pytest
from geometry_msgs.msg import Twist, Vector3
from processes import Process, executable, when_listening
from ros_session import Inbox, wait_until
from simulator_client import SimulatorClient
from simulator_fixtures import VEHICLE, bridge, make_peer

from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import Attribute

MARK = (VEHICLE, "drone_bridge.world")
BODY_TO_MODEL = (VEHICLE, "drone_bridge.btom")
EAST = (math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5))
#: A bridge that gives a simulator on a busy machine more time to notice that it is left.
PATIENT_BRIDGE = """
from drone_bridge.net import link_loop, tcp_connections
from drone_bridge.simulator.bridge import node

link_loop.STOP_TIMEOUT_S = tcp_connections.LEAVE_S = 4.0
raise SystemExit(node.main())
"""


@pytest.fixture
def peer(closing):
    return closing(make_peer())


def test_what_a_killed_bridge_has_left_moving_stands_once_another_connects(ros, start_child, closing):
    """With real ones."""
    emulator = when_listening(start_child(executable("simulator_emulator"), "--port", 0))
    client = closing(SimulatorClient(emulator.port))
    commands = ros.publisher(Twist, "cmd_vel", subscribers=0)

    def join():
        node = bridge(emulator, command_timeout=60.0, entities=[""], cameras=[""], triggers=[""])
        node.wait_for_line("Connected to")
        return node

    def velocity():
        return client.get(sim.GetEntity(VEHICLE, Attribute.VELOCITY)).value

    def moves():
        commands.publish(Twist(linear=Vector3(x=0.5)))
        return any(velocity())

    with join() as first:
        client.ask(sim.Run(0))
        wait_until(moves, "motion", period_s=0.05)
        first.send(signal.SIGKILL)
        first.wait()
    assert any(velocity())
    with join():
        wait_until(lambda: not any(velocity()), "a vehicle that stands")


def test_a_simulator_can_go_on_writing_to_a_bridge_that_ends(peer):
    written = Inbox()

    def write(client):
        if client not in (requests, streams):  # but the one that tried SPY, which may still be leaving
            return
        try:
            for _ in range(3):  # the first one gets a connection reset that has been closed
                client.socket.sendall(sim.frame(sim.Completed()))
        except OSError as error:
            written.put(error)
        else:
            written.put(None)

    with Process(sys.executable, "-c", PATIENT_BRIDGE, "--ros-args", "-p", f"port:={peer.port}"):
        requests, streams = peer.wait_until_settled()
        assert requests is not streams
        peer.parting = write
    assert [written.wait(), written.wait()] == [None, None]
