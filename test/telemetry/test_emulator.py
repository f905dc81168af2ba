# SPDX-License-Identifier: Apache-2.0
"""The emulator as a process: its telemetry on a socket, its output, its exit code."""

import pytest
from processes import Process
from telemetry_operator import TelemetryOperator

from drone_bridge.telemetry.codec import ControllerConnection, DroneCommand

MODULE = "drone_bridge.telemetry.vehicle.emulator"


class Bridge(TelemetryOperator):
    """Destination of the emulator's telemetry."""

    def __init__(self):
        super().__init__()
        self.protocol = ControllerConnection()

    def receive(self):
        """Return the next event."""
        self.protocol.receive_data(self.receive_bytes())
        return self.protocol.next_event()

    def next_source(self):
        """Return the source of the next document."""
        self.receive_bytes()
        return self._drone

    def call(self, port, document):
        """Send first, to a waiting drone."""
        self._socket.sendto(document, ("127.0.0.1", port))

    def collect(self, count):
        return [self.receive() for _ in range(count)]

    def command(self, **command):
        self.send(self.protocol.send(DroneCommand(**command)))


@pytest.fixture
def bridge(closing):
    return closing(Bridge())


@pytest.fixture
def emulate(bridge, start_child):
    return lambda *arguments: start_child(MODULE, "--port", bridge.port, *arguments, make=Process.module)


def test_telemetry_is_sent_25_times_per_second_with_every_fifth_an_image(emulate, bridge):
    drone = emulate("--seed", "2")
    drone.wait_for_line(rf"^sending to 127\.0\.0\.1:{bridge.port}$")

    bridge.receive()
    telemetry = bridge.collect(25)
    assert telemetry[-1].timestamp - telemetry[0].timestamp == pytest.approx(24 / 25)
    assert sum(one.camera.jpeg is not None for one in telemetry) == 5
    assert not any(one.landed for one in telemetry)


def test_with_a_socket_for_each_document_ports_differ(emulate, bridge):
    emulate("--no-images", "--fresh-sockets")
    assert len({bridge.next_source() for _ in range(5)}) > 1


def test_a_bad_landing_does_not_end_it_and_its_exit_status_is_1(emulate, bridge):
    drone = emulate("--until-landed", "--height", "2", "--speed", "5", "--no-images", "--lie", "velocity-zero")
    assert bridge.receive().velocity == (0.0, 0.0, 0.0)
    bridge.command(thrust=-1.0)
    drone.wait_for_line("^touchdown on the ground at .* vertical speed 2.* bad$")
    bridge.command(thrust=1.0)
    drone.wait_for_line("^took off: ")
    assert drone.stop() == 1
    drone.wait_for_line("^ended: t=.* s, flying")
