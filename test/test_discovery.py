# SPDX-License-Identifier: Apache-2.0
"""Discovery between real sockets, on the loopback interface only."""

import contextlib
import socket
import threading
from collections import Counter

import pytest
from patience import TIMEOUT_S

from drone_bridge.net.connector import Cancellation, LinkCancelledError, LinkError, wait_readable
from drone_bridge.robot import discovery
from drone_bridge.robot.discovery import (
    ANY_INTERFACE,
    DISCOVERY_GROUP,
    DISCOVERY_QUERY,
    MAX_NAME_BYTES,
    DiscoveredPeer,
    DiscoveryResponder,
    DiscoveryRoute,
    FoundRobot,
    find_robots,
)

LOOPBACK = "127.0.0.1"
BRIEF_S = 0.3  # for nobody to answer
ANSWER_S = 3.0  # for somebody to answer, be the machine busy
LONG_S = TIMEOUT_S


@pytest.fixture
def respond():
    """respond(name, port=0) starts a robot's responder and returns its port."""
    stop = Cancellation()
    threads = []

    def serve(responder, name):
        while not stop.is_set:
            for ready in wait_readable([*responder.sockets, stop], None)[:-1]:
                while ready and (asker := responder.receive()):
                    responder.send(name.encode(), asker)
        responder.close()

    def start(name, port=0, address=DISCOVERY_GROUP, interface=LOOPBACK):
        responder = DiscoveryResponder(DiscoveryRoute(address, port, interface))
        threads.append(threading.Thread(target=serve, args=[responder, name]))
        threads[-1].start()
        return responder.port

    yield start
    stop.cancel()
    for thread in threads:
        thread.join()
    stop.close()


@pytest.fixture
def queries(monkeypatch):
    """More questions, one soon after the other, in the time that there is for answers."""
    monkeypatch.setattr(discovery, "QUERIES", 60)


@pytest.fixture
def plain():
    """A UDP socket that answers nothing by itself."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        opened.bind((LOOPBACK, 0))
        opened.settimeout(LONG_S)
        yield opened


def ask(plain, datagram, port, address=LOOPBACK):
    plain.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(LOOPBACK))
    plain.sendto(datagram, (address, port))
    return plain.recvfrom(100)


# The robot's side.


@pytest.mark.parametrize("address", [DISCOVERY_GROUP, LOOPBACK])
def test_the_answer_is_the_bare_name_from_the_port_that_was_asked(respond, plain, address):
    port = respond("saber")
    assert ask(plain, b"find robots", port, address) == (b"saber", (LOOPBACK, port))


@pytest.mark.parametrize("address", [DISCOVERY_GROUP, LOOPBACK])
def test_all_interfaces_are_more_than_the_one_that_the_system_chooses(respond, plain, address):
    port = respond("saber", interface=ANY_INTERFACE)
    assert ask(plain, b"find robots", port, address) == (b"saber", (LOOPBACK, port))


@pytest.mark.parametrize("query", [b"find robots\n", b"find robots\0", b"Find robots", b"find robot", b"", b"x" * 2000])
def test_other_datagrams_are_not_answered(respond, plain, query):
    port = respond("saber")
    plain.sendto(query, (LOOPBACK, port))
    assert ask(plain, DISCOVERY_QUERY, port)[0] == b"saber"
    plain.settimeout(0.05)
    with pytest.raises(TimeoutError):
        plain.recv(100)


def test_an_address_of_another_machine_can_t_be_listened_on():
    with pytest.raises(LinkError, match=r"can't listen on 238\.160\.102\.2:0 through 192\.0\.2\.1"):
        DiscoveryResponder(DiscoveryRoute(port=0, interface="192.0.2.1"))


# The driver's side.


def test_all_robots_of_a_group_are_found_once_each(respond, cancellation, queries):
    port = respond("saber")
    respond("rapier", port)
    answers = Counter()

    def both_have_answered_twice(robot):
        answers[robot.name] += 1
        return len(answers) == 2 and min(answers.values()) >= 2

    found = find_robots(DiscoveryRoute(port=port), ANSWER_S, cancellation, both_have_answered_twice)
    assert min(answers.values()) >= 2
    assert sorted(found, key=str) == [FoundRobot(LOOPBACK, "rapier"), FoundRobot(LOOPBACK, "saber")]


def test_a_robot_can_be_asked_directly(respond, cancellation):
    port = respond("saber", address=LOOPBACK)
    found = find_robots(DiscoveryRoute(LOOPBACK, port), LONG_S, cancellation, lambda robot: True)
    assert found == [FoundRobot(LOOPBACK, "saber")]


@pytest.mark.parametrize("address", [DISCOVERY_GROUP, LOOPBACK])
def test_a_query_may_get_no_answer(cancellation, free_port, address):
    """Asked directly, the system answers that nobody listens there."""
    assert find_robots(DiscoveryRoute(address, free_port), BRIEF_S, cancellation) == []


def test_a_search_ends_with_the_robot_that_was_asked_for(respond, cancellation):
    port = respond("saber")
    found = find_robots(DiscoveryRoute(port=port), 5 * LONG_S, cancellation, lambda robot: robot.name == "saber")
    assert found[-1].name == "saber"


def test_a_lost_query_is_repeated(plain, cancellation, queries):
    """The first question stays without an answer, as if it had been lost."""

    def answer_the_second():
        plain.recvfrom(100)
        _, source = plain.recvfrom(100)
        plain.sendto(b"deaf", source)

    thread = threading.Thread(target=answer_the_second)
    thread.start()
    route = DiscoveryRoute(LOOPBACK, plain.getsockname()[1])
    found = find_robots(route, 2 * ANSWER_S, cancellation, lambda robot: True)
    thread.join()
    assert found == [FoundRobot(LOOPBACK, "deaf")]


def test_invalid_answers_are_ignored_and_invalid_utf_8_is_replaced(plain, cancellation):
    def answer():
        _, source = plain.recvfrom(100)
        for datagram in (b"", b"x" * (MAX_NAME_BYTES + 1), b"x" * 60_000, b"caf\xe9", b"caf\xe9", b"end"):
            plain.sendto(datagram, source)

    thread = threading.Thread(target=answer)
    thread.start()
    route = DiscoveryRoute(LOOPBACK, plain.getsockname()[1])
    found = find_robots(route, LONG_S, cancellation, lambda robot: robot.name == "end")
    thread.join()
    assert found == [FoundRobot(LOOPBACK, "caf\ufffd"), FoundRobot(LOOPBACK, "end")]


def test_a_flood_of_names_is_cut_off(plain, cancellation):
    ended = threading.Event()

    def flood():
        _, source = plain.recvfrom(100)
        number = 0
        while not ended.is_set():
            with contextlib.suppress(OSError):
                plain.sendto(f"robot {number}".encode(), source)
            number += 1

    thread = threading.Thread(target=flood)
    thread.start()
    try:
        found = find_robots(DiscoveryRoute(LOOPBACK, plain.getsockname()[1]), BRIEF_S, cancellation)
    finally:
        ended.set()
        thread.join()
    assert 0 < len(found) <= 256


def test_an_interface_of_another_machine_is_an_error(cancellation):
    with pytest.raises(LinkError, match=r"through 192\.0\.2\.1"):
        find_robots(DiscoveryRoute(interface="192.0.2.1"), BRIEF_S, cancellation)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"address": "saber.local"}, "has to be an IPv4 address"),
        ({"interface": "eth0"}, "has to be an IPv4 address"),
        ({"interface": DISCOVERY_GROUP}, "address of this machine"),
        ({"port": 65536}, "from 0 to 65535"),
    ],
)
def test_an_invalid_route_is_refused(arguments, reason):
    with pytest.raises(ValueError, match=reason):
        DiscoveryRoute(**arguments)


# Connecting by name.


def connector(name, port, discovery_port, cancellation, failures):
    route = DiscoveryRoute(port=discovery_port)
    return DiscoveredPeer(
        name,
        port,
        lambda *failure: failures.append(failure),
        route=route,
        timeout_s=ANSWER_S,
        cancellation=cancellation,
    )


def test_a_robot_is_connected_to_by_name(respond, cancellation):
    with socket.create_server((LOOPBACK, 0)) as server:
        discovery_port = respond("saber")
        respond("rapier", discovery_port)
        failures = []
        link = connector("rapier", server.getsockname()[1], discovery_port, cancellation, failures)
        link.open()
        assert str(link.receive().source) == f"{LOOPBACK}:{server.getsockname()[1]}"
        assert failures == []
        link.close()


def test_a_robot_that_starts_later_is_found(respond, cancellation, free_port):
    with socket.create_server((LOOPBACK, 0)) as server:
        failures = []
        respond("saber", free_port)

        def fail(*failure):
            if not failures:
                respond("rapier", free_port)
            failures.append(failure)

        route = DiscoveryRoute(port=free_port)
        port = server.getsockname()[1]
        link = DiscoveredPeer("rapier", port, fail, route=route, timeout_s=1.0, cancellation=cancellation)
        link.open()
        link.close()
        assert "rapier" in failures[0][0]
        assert "no robot of this name answered at 238.160.102.2" in failures[0][0]
        assert "but 'saber'" in failures[0][0]


def test_a_search_without_any_answer_is_reported(cancellation, free_port):
    failures = []

    def fail(sentence, _delay_s):
        failures.append(sentence)
        cancellation.cancel()

    route = DiscoveryRoute(port=free_port)
    with pytest.raises(LinkCancelledError):
        DiscoveredPeer("saber", 1, fail, route=route, timeout_s=BRIEF_S, cancellation=cancellation).open()
    assert f"no robot of this name answered at 238.160.102.2:{free_port}, nor any other." in failures[0]


def test_searching_for_a_name_can_be_cancelled(cancellation, free_port):
    threading.Timer(0.05, cancellation.cancel).start()
    with pytest.raises(LinkCancelledError):
        connector("nobody", 1, free_port, cancellation, []).open()
