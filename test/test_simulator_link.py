# SPDX-License-Identifier: Apache-2.0
"""The connections to a simulator: requests and answers on a real socket, in time, and all of them or none."""

import math
import socket
import threading
import time
from types import SimpleNamespace

import pytest

from drone_bridge.net.connector import LinkError, LinkTimeoutError, wait_readable
from drone_bridge.net.tcp import TcpStream
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.bridge import client
from drone_bridge.simulator.bridge.client import Channel, Pending, SimulatorEndpoint, SimulatorLink
from drone_bridge.simulator.bridge.desired_items import (
    MAX_DESIRED_ITEMS,
    Camera,
    CameraStream,
    DesiredItems,
    EntityStream,
)
from drone_bridge.simulator.topics.plans import CameraPlan
from drone_bridge.wire.events import LocalProtocolError

TIMEOUT_S = 5.0


@pytest.fixture
def running_s(monkeypatch):
    """For how long this process has been running since it stood still."""
    seconds = [math.inf]
    monkeypatch.setattr(client, "PROCESS", SimpleNamespace(running_s=lambda: seconds[0]))
    return seconds


@pytest.fixture
def pair(cancellation, running_s):
    """A channel, and the simulator's socket."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ours = socket.create_connection(listener.getsockname())
        theirs, _ = listener.accept()
    theirs.settimeout(TIMEOUT_S)
    stream = TcpStream(ours, cancellation)
    stream.acknowledge_at_once()
    with theirs:
        yield Channel(stream, 0.3), theirs
    stream.close()


def sent(channel, *requests):
    return [channel.send(request) for request in requests]


def read(channel):
    """Receive, and return the out-of-band messages."""
    wait_readable([channel.stream], TIMEOUT_S)
    return [event for event in channel.read() if not isinstance(event, Pending)]


def test_answers_go_to_who_asked_and_the_rest_is_handed_out(pair):
    channel, theirs = pair
    pending = sent(channel, sim.Reassure(), sim.ListEntities())
    theirs.sendall(sim.frame(sim.Ok()) + sim.frame(sim.Completed()) + sim.frame(sim.EntitiesListed((0,))))
    assert read(channel) == [sim.Completed()]
    assert [each.answer for each in pending] == [sim.Ok(), sim.EntitiesListed((0,))]
    assert (channel.outstanding, channel.due_s) == (0, float("inf"))


def test_an_overdue_answer_is_noticed_but_not_while_others_come(pair):
    channel, theirs = pair
    asked_s = time.monotonic()
    pending = sent(channel, sim.Reassure(), sim.Run())
    channel.check(asked_s)
    theirs.sendall(sim.frame(sim.Ok()))
    time.sleep(0.1)
    read(channel)
    assert channel.due_s > asked_s + 0.35
    with pytest.raises(LinkTimeoutError, match=r"has not answered RUN within 0\.3 s"):
        channel.check(channel.due_s)
    assert [each.answer for each in pending] == [sim.Ok(), None]


def test_an_answer_is_not_overdue_while_we_have_just_stood_still(pair, running_s):
    channel, _ = pair
    sent(channel, sim.Reassure())
    later_s = time.monotonic() + 60.0  # as after SIGSTOP and SIGCONT
    running_s[0] = time.monotonic() - later_s + 0.1
    assert channel.due_s > later_s
    channel.check(later_s)
    running_s[0] = math.inf
    with pytest.raises(LinkTimeoutError, match="has not answered REASSURE"):
        channel.check(later_s)


def test_the_end_names_unanswered_requests(pair):
    channel, theirs = pair
    sent(channel, sim.Spy())
    theirs.shutdown(socket.SHUT_WR)
    with pytest.raises(LinkError, match="instead of answering SPY"):
        read(channel)


def test_unsendable_requests_are_not_waited_for(pair):
    channel, _ = pair
    with pytest.raises(LocalProtocolError):
        sent(channel, sim.AddObject("wind", bytes(2000)))
    assert channel.outstanding == 0


# All connections, or none.


class Simulator:
    """Accepts connections in a thread, and refuses after a number of them."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=8)
        self.port = self.listener.getsockname()[1]
        self.accepted = []

    def accept(self, count):
        self.listener.settimeout(TIMEOUT_S)
        while len(self.accepted) < count:
            self.accepted.append(self.listener.accept()[0])

    def close(self):
        for connected in (*self.accepted, self.listener):
            connected.close()


@pytest.fixture
def simulator(closing):
    return closing(Simulator())


@pytest.mark.parametrize(("has_probe", "count"), [(False, 2), (True, 3)])
def test_as_many_connections_are_opened_as_are_asked_for(cancellation, simulator, has_probe, count):
    endpoint = SimulatorEndpoint("127.0.0.1", simulator.port, cancellation, print, has_probe=has_probe)
    link = endpoint.open()
    simulator.accept(count)
    assert len(link.all) == count
    assert (link.probe is not None) == has_probe
    link.close()
    for connected in simulator.accepted:
        assert connected.recv(1) == b""


# Desired items.


def desired(*configured):
    items = DesiredItems()
    items.begin_anew(configured)
    return items


def test_there_is_a_limit_to_desired_items():
    items = desired(*(EntityStream(number, 1) for number in range(MAX_DESIRED_ITEMS)))
    with pytest.raises(ValueError, match=f"limit of {MAX_DESIRED_ITEMS}"):
        items.add(EntityStream(0, 1))


def test_removing_a_camera_removes_its_streams():
    camera = Camera(CameraPlan("front", 0))
    stream, other = CameraStream(camera, 1, 1), EntityStream(1, 1)
    items = desired()
    for number, item in enumerate((camera, stream, other)):
        items.add(item)
        items.mark_added(item, number)
    items.removed(sim.ItemType.CAMERA, 0, is_ours=True)
    assert list(items) == [other]
    assert items.find(sim.ItemType.CAMERA_STREAM, 1) is None
    assert items.find(sim.ItemType.ENTITY_STREAM, 2) is other


def test_configured_items_are_requested_again_when_an_entity_goes():
    configured, service = EntityStream(1, 1), EntityStream(1, 1)
    items = desired(configured)
    items.add(service)
    items.mark_added(configured, 0)
    items.mark_added(service, 1)
    items.removed(sim.ItemType.ENTITY, 1)
    assert list(items) == [configured]
    assert configured.id is None


def test_configured_items_come_back_in_another_world_whoever_removed_the_entity():
    stream, trigger = EntityStream(1, 1), EntityStream(2, 1)
    items = desired(stream, trigger)
    items.mark_added(stream, 0)
    items.removed(sim.ItemType.ENTITY, 1, is_ours=True)
    assert list(items) == [stream, trigger]
    assert stream.id is None
    # But not a stream that somebody had us remove.
    items.mark_added(trigger, 1)
    items.removed(sim.ItemType.ENTITY_STREAM, 1, is_ours=True)
    assert list(items) == [stream]


def test_only_cameras_survive_a_new_connection():
    camera, stream = Camera(CameraPlan("front", 0)), EntityStream(0, 1)
    items = desired(camera, stream)
    items.mark_added(camera, 7)
    items.mark_added(stream, 8)
    items.reconnect()
    assert (camera.id, stream.id) == (7, None)
    assert items.find(sim.ItemType.CAMERA, 7) is camera
    assert items.find(sim.ItemType.ENTITY_STREAM, 8) is None
    items.begin_anew([])
    assert not list(items)
    assert items.find(sim.ItemType.CAMERA, 7) is None


# The end.


def connected(listener, cancellation):
    ours = socket.create_connection(listener.getsockname())
    theirs, _ = listener.accept()
    theirs.settimeout(TIMEOUT_S)
    return TcpStream(ours, cancellation), theirs


def test_a_simulator_that_is_left_can_write_until_it_has_noticed(cancellation):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        pairs = [connected(listener, cancellation) for _ in range(2)]
    ours, theirs = zip(*pairs, strict=True)
    link = SimulatorLink(*ours, None)
    step = sim.frame(sim.EntityData(0, (5,), (True,)))
    for connection in theirs:
        connection.sendall(step)  # which nobody reads any more
    words = [sim.frame(sim.Reassure()), sim.frame(sim.Pause())]
    leaving = threading.Thread(target=link.leave, args=(words, TIMEOUT_S))
    leaving.start()
    heard = []
    for connection in theirs:
        with connection:
            heard.append(b"".join(iter(lambda connection=connection: connection.recv(100), b"")))
            for _ in range(3):
                connection.sendall(step)
    leaving.join(TIMEOUT_S)
    assert not leaving.is_alive()
    assert heard == [b"".join(words), b""]


def test_a_simulator_that_does_not_notice_is_left_anyway(cancellation):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        pairs = [connected(listener, cancellation) for _ in range(2)]
    link = SimulatorLink(pairs[0][0], pairs[1][0], None)
    link.leave([], 0.05)
    for _, theirs in pairs:
        with theirs:
            assert theirs.recv(1) == b""
