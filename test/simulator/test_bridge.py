# SPDX-License-Identifier: Apache-2.0
"""Process tests of simulator_bridge, with an emulator that behaves like the CUAUV server."""

import signal
import socket
import struct
import sys

import pytest
from nav_msgs.msg import Odometry
from processes import Process, when_listening
from simulator_client import SimulatorClient

from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import Attribute

VEHICLE = 0
COMMAND = (sys.executable, "-m", "drone_bridge.simulator.emulator", "--port", 0, "--scene", "buoys")
# From the principal axes to the model: a quarter turn about z, then a tilt of 0.6 rad about x.


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
