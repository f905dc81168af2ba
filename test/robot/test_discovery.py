# SPDX-License-Identifier: Apache-2.0
"""Discovery between real sockets on the loopback interface, where delivery is immediate."""

import contextlib
import socket
import threading

import pytest
from patience import TIMEOUT_S, wait_until

from drone_bridge.net.connector import LinkCancelledError, LinkError
from drone_bridge.robot import discovery
from drone_bridge.robot.discovery import (
    ANY_INTERFACE,
    DISCOVERY_GROUP,
    DISCOVERY_QUERY,
    JOIN_PERIOD_S,
    MAX_NAME_BYTES,
    MAX_ROBOTS,
    QUERIES,
    DiscoveredPeer,
    DiscoveryResponder,
    DiscoveryRoute,
    DiscoverySearch,
    FoundRobot,
)

LOOPBACK = "127.0.0.1"


@pytest.fixture
def respond(closing):
    """Return a factory: respond(port=0) returns a robot's responder."""
    return lambda port=0, address=DISCOVERY_GROUP, interface=LOOPBACK: closing(
        DiscoveryResponder(DiscoveryRoute(address, port, interface))
    )


@pytest.fixture
def plain():
    """Passive UDP socket."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        opened.bind((LOOPBACK, 0))
        opened.settimeout(TIMEOUT_S)
        opened.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(LOOPBACK))
        yield opened


@pytest.fixture
def search(plain, closing):
    """Search of 3 s from time 0, with requests to the plain socket."""
    return closing(DiscoverySearch(DiscoveryRoute(LOOPBACK, plain.getsockname()[1]), 3.0, 0.0))


# The robot's side.


@pytest.mark.parametrize("address", [DISCOVERY_GROUP, LOOPBACK])
@pytest.mark.parametrize("interface", [LOOPBACK, ANY_INTERFACE])
def test_the_reply_is_the_bare_name_from_the_queried_port(respond, plain, address, interface):
    responder = respond(interface=interface)
    plain.sendto(b"find robots", (address, responder.port))
    responder.send(b"saber", wait_until(responder.receive, "the query"))
    assert plain.recvfrom(100) == (b"saber", (LOOPBACK, responder.port))


def test_other_datagrams_are_not_answered(respond, plain):
    responder = respond()
    for query in (b"find robots\n", b"find robots\0", b"Find robots", b"find robot", b"", b"x" * 2000):
        plain.sendto(query, (LOOPBACK, responder.port))
        assert responder.receive() is None


def test_several_robots_share_the_group(respond, plain):
    first = respond()
    second = respond(first.port)
    plain.sendto(DISCOVERY_QUERY, (DISCOVERY_GROUP, first.port))
    for each in (first, second):
        assert wait_until(each.receive, "the query") == plain.getsockname()


def test_listening_on_an_address_of_another_machine_is_an_error():
    with pytest.raises(LinkError, match=r"192\.0\.2\.1 is no address of this machine; 0.0.0.0 is all"):
        DiscoveryResponder(DiscoveryRoute(port=0, interface="192.0.2.1"))


@pytest.mark.parametrize("interface", [LOOPBACK, ANY_INTERFACE])
def test_interfaces_that_appear_later_join_the_group(respond, monkeypatch, interface):
    joined, now_s = [], [100.0]
    monkeypatch.setattr(discovery, "_join", lambda *arguments: joined.append(arguments[1:]))
    monkeypatch.setattr(discovery, "elapsed_s", lambda: now_s[0])
    responder = respond(interface=interface)
    for _ in range(4):
        responder.receive()
        now_s[0] += JOIN_PERIOD_S / 2 + 0.1
    assert joined == [(DISCOVERY_GROUP, ANY_INTERFACE)] * 2


# The driver's side.


def test_a_query_is_repeated_since_any_may_be_lost(plain, search):
    for now_s in (0.0, 0.5, 1.0, 1.5, 2.0, 2.5):
        search.poll(now_s)
    for _ in range(QUERIES):
        query, source = plain.recvfrom(100)
        assert query == b"find robots"
    plain.setblocking(False)
    with pytest.raises(BlockingIOError):
        plain.recv(100)
    plain.sendto(b"saber", source)
    assert wait_until(lambda: search.poll(2.9), "the reply") == [FoundRobot(LOOPBACK, "saber")]


def test_each_robot_is_found_once_and_invalid_names_are_ignored(plain, search):
    search.poll(0.0)
    _, source = plain.recvfrom(100)
    for datagram in (b"", b"x" * (MAX_NAME_BYTES + 1), b"x" * 60_000, b"caf\xe9", b"caf\xe9", b"end"):
        plain.sendto(datagram, source)
    wait_until(lambda: FoundRobot(LOOPBACK, "end") in search.poll(0.1), "the last reply")
    assert list(search.found) == [FoundRobot(LOOPBACK, "caf\ufffd"), FoundRobot(LOOPBACK, "end")]


def test_a_flood_of_names_is_cut_off(plain, search):
    search.poll(0.0)
    _, source = plain.recvfrom(100)
    for number in range(MAX_ROBOTS + 10):
        plain.sendto(f"robot {number}".encode(), source)
        search.poll(0.1)
    wait_until(lambda: not search.poll(0.1) and len(search.found) == MAX_ROBOTS, "the replies")


def test_a_query_to_a_closed_port_gets_no_reply(closing, free_port):
    """The system reports it at the next poll."""
    search = closing(DiscoverySearch(DiscoveryRoute(LOOPBACK, free_port), 3.0, 0.0))
    assert search.poll(0.0) == search.poll(1.0) == search.poll(2.0) == []


def test_an_interface_without_the_configured_address_is_an_error():
    with pytest.raises(LinkError, match="discovery_interface must be an address of this machine"):
        DiscoverySearch(DiscoveryRoute(interface="192.0.2.1"), 3.0, 0.0)


@pytest.mark.parametrize("arguments", [{"address": "saber.local"}, {"interface": "eth0"}])
def test_a_route_by_host_names_is_refused(arguments):
    with pytest.raises(ValueError, match="IPv4"):
        DiscoveryRoute(**arguments)


# Connecting by name.


#: Another robot's address.
OTHER = "127.0.0.2"


@pytest.fixture
def connect(plain, cancellation):
    """Return a factory: connect(name, port, on_failure, on_other) returns a link that queries the plain socket."""
    route = DiscoveryRoute(LOOPBACK, plain.getsockname()[1])
    return lambda name, port=1, on_failure=lambda *_: None, on_other=None: DiscoveredPeer(
        name, port, on_failure, route=route, timeout_s=0.5, on_other=on_other, cancellation=cancellation
    )


def test_a_robot_is_connected_to_by_name(plain, connect):
    with socket.create_server((LOOPBACK, 0)) as server:
        link = connect("rapier", server.getsockname()[1])
        thread = threading.Thread(target=link.open)
        thread.start()
        plain.settimeout(0.05)
        while thread.is_alive():  # it asks again after 0.5 s
            with contextlib.suppress(TimeoutError):
                query, source = plain.recvfrom(100)
                assert query == DISCOVERY_QUERY
                plain.sendto(b"rapier", source)
        assert str(link.receive().source).startswith(LOOPBACK)
        assert link._known == LOOPBACK
        link.close()


@pytest.fixture
def resolve(monkeypatch):
    """resolve(link, *robots) returns the address to which a link connects if these (address, name) have replied."""

    def resolve(link, *robots):
        def wait(name, search):
            search.found.update(dict.fromkeys(FoundRobot(*each) for each in robots))

        monkeypatch.setattr(link, "_wait_for", wait)
        (*_, (address, _)) = link._resolve()[0]
        link._known = address
        return address

    return resolve


def test_a_robot_is_told_from_others_by_its_name(connect, resolve):
    assert resolve(connect("rapier"), (LOOPBACK, "saber"), (OTHER, "rapier")) == OTHER


def test_several_robots_of_one_name_are_not_connected_to(connect, resolve):
    link = connect("saber")
    with pytest.raises(OSError, match=r"2 robots of this name answered: 127\.0\.0\.1, 127\.0\.0\.2"):
        resolve(link, (LOOPBACK, "saber"), (OTHER, "saber"))


def test_the_known_robot_is_preferred_and_another_is_reported(connect, resolve):
    others = []
    link = connect("saber", on_other=lambda *addresses: others.append(addresses))
    assert resolve(link, (LOOPBACK, "saber")) == LOOPBACK
    assert resolve(link, (OTHER, "saber"), (LOOPBACK, "saber")) == LOOPBACK
    assert others == []
    for _ in range(2):
        assert resolve(link, (OTHER, "saber")) == OTHER
    assert others == [(LOOPBACK, OTHER)]


def test_a_program_connects_to_no_other_robot(connect, resolve):
    link = connect("saber")
    assert resolve(link, (LOOPBACK, "saber")) == LOOPBACK
    with pytest.raises(OSError, match=r"another robot of this name answered, at 127\.0\.0\.2 instead"):
        resolve(link, (OTHER, "saber"))


@pytest.mark.parametrize(
    ("robots", "others"), [((), "nor any other"), (((LOOPBACK, "saber"),), "but these did: 'saber'")]
)
def test_other_robots_that_reply_are_named(connect, resolve, robots, others):
    sentence = f"no robot of this name answered at 127.0.0.1:.*, {others}.*discovery_interface: 127.0.0.1"
    with pytest.raises(OSError, match=sentence):  # with the usual reason
        resolve(connect("rapier"), *robots)


def test_a_search_for_a_name_can_be_cancelled(plain, connect, cancellation):
    thread = threading.Thread(target=lambda: plain.recv(100) and cancellation.cancel())
    thread.start()
    with pytest.raises(LinkCancelledError):
        connect("nobody", 1).open()
    thread.join()
