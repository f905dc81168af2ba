# SPDX-License-Identifier: Apache-2.0
"""The link to an AR.Drone on plain sockets: its ports, foreign datagrams, and a control port that sends for ever."""

import contextlib
import select
import socket
import threading

import pytest
from patience import TIMEOUT_S, wait_until

from drone_bridge.ardrone.codec import COMMANDS, CONNECT, CONTROL, DISCONNECT, NAVDATA, WAKE_UP
from drone_bridge.ardrone.ports import DronePeer
from drone_bridge.net.connector import RECEIVED

HOST = "127.0.0.1"


class Drone:
    """Ports of a drone, and a link to them."""

    def __init__(self, stack):
        kinds = (socket.SOCK_DGRAM, socket.SOCK_DGRAM, socket.SOCK_STREAM)
        self.commands, self.navdata, self.control = (
            stack.enter_context(socket.socket(socket.AF_INET, kind)) for kind in kinds
        )
        for each in (self.commands, self.navdata, self.control):
            each.bind((HOST, 0))
            each.settimeout(TIMEOUT_S)
        self.control.listen(4)
        self.failures = []
        ports = tuple(each.getsockname()[1] for each in (self.commands, self.navdata, self.control))
        self.log = []  # transport, peer's port, direction, data
        self.link = DronePeer(HOST, ports, lambda error, delay_s: self.failures.append(error), self.wire_log)
        self.link.open()
        stack.callback(self.link.close)
        self.link.send(b"AT*COMWDG=1\r", COMMANDS)
        self.link.send(WAKE_UP, NAVDATA)
        self.commander = self.commands.recvfrom(64)[1]
        self.client = self.navdata.recvfrom(64)[1]

    def wire_log(self, transport, own, peer):
        return lambda direction, data, who=peer: self.log.append(
            (transport, who.rpartition(":")[2], direction, bytes(data))
        )

    def accept(self):
        self.link.send(CONNECT, CONTROL)
        return self.control.accept()[0]

    def received(self):
        """Return the next event of the link."""
        found = []
        wait_until(lambda: found.append(self.link.receive()) or found[-1], "an event")
        return found[-1]


@pytest.fixture
def drone():
    with contextlib.ExitStack() as stack:
        yield Drone(stack)


def test_navdata_of_the_drone_are_taken_and_those_of_others_are_not(drone):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.sendto(b"foreign", drone.client)
    drone.navdata.sendto(b"own", drone.client)
    assert (drone.received().data, drone.link.receive()) == (b"own", None)


def test_datagrams_from_the_port_of_commands_wake_nobody(drone):
    drone.commands.sendto(b"AT", drone.commander)
    assert select.select(drone.link.files(), [], [], 0.2)[0] == []
    assert drone.link.receive() is None


def test_each_connect_is_a_new_connection_and_disconnect_ends_it(drone):
    with drone.accept() as first, drone.accept() as second:
        first.settimeout(TIMEOUT_S)
        assert first.recv(1) == b""
        second.sendall(b"text")
        assert drone.received() == (b"text", CONTROL)
        drone.link.send(DISCONNECT, CONTROL)
        second.settimeout(TIMEOUT_S)
        assert second.recv(1) == b""


def test_a_wire_log_has_the_text_and_its_end(drone):
    with drone.accept() as client:
        client.sendall(b"text")
        assert drone.received() == (b"text", CONTROL)
    wait_until(lambda: drone.link.receive() or drone.log[-1][3] == b"", "the end")
    port = str(drone.control.getsockname()[1])
    logged = [entry for entry in drone.log if entry[0] == "tcp"]
    assert logged == [("tcp", port, RECEIVED, data) for data in (b"text", b"")]


def test_a_control_port_that_is_closed_is_no_failure(drone):
    drone.control.close()
    for _ in range(3):
        drone.link.send(CONNECT, CONTROL)
        assert drone.link.receive() is None
    drone.navdata.sendto(b"own", drone.client)
    assert drone.received().data == b"own"
    assert drone.failures == []


def test_navdata_come_through_beside_a_control_port_that_sends_for_ever(drone):
    def flood(client):
        with contextlib.suppress(OSError):
            while True:
                client.sendall(b"a:b = 1\n" * 512)

    with drone.accept() as client:
        flooding = threading.Thread(target=flood, args=(client,), daemon=True)
        flooding.start()
        wait_until(drone.link.receive, "the flood")
        drone.navdata.sendto(b"own", drone.client)
        sources = [drone.received().source for _ in range(20)]
        assert NAVDATA in sources
        drone.link.send(DISCONNECT, CONTROL)
        flooding.join(TIMEOUT_S)
        assert not flooding.is_alive()
