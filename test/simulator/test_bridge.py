# SPDX-License-Identifier: Apache-2.0
"""Process tests of simulator_bridge, with an emulator that behaves like the CUAUV server."""

import signal
import socket
import struct
import sys

from nav_msgs.msg import Odometry
from processes import Process, when_listening
from simulator_client import SimulatorClient

from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import Attribute

VEHICLE = 0
EMULATOR = (sys.executable, "-m", "drone_bridge.simulator.vehicle.emulator", "--port", 0)
BRIDGE = {"request_timeout": 20.0, "body_to_model": [1.0, 0.0, 0.0, 0.0]}


def test_a_server_that_dies_of_abrupt_closes_survives_the_bridge(ros, start_child, closing):
    emulator = when_listening(start_child(*EMULATOR, "--quirks", "real", "--fragile", "--running"))
    odom = ros.subscribe(Odometry, "odom")
    for _ in range(3):
        with Process.node("simulator_bridge", port=emulator.port, **BRIDGE) as bridge:
            bridge.wait_for_line("Connected to")
            odom.clear()
            odom.wait()
    rude = closing(SimulatorClient(emulator.port))
    rude.add(sim.StreamEntity(VEHICLE, 1, (Attribute.POSITION,)))
    rude.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    rude.close()
    assert emulator.wait() == -signal.SIGPIPE
    emulator.wait_for_line("killed by SIGPIPE")
