# SPDX-License-Identifier: Apache-2.0
"""Relays between a bridge and its vehicle, and their logs of commands: they detect faults."""

import socket
import time

import pytest
import relay
from patience import TIMEOUT_S

from drone_bridge.kind import kinds, load


def commands_of(*said, **options):
    commands = relay.CommandLog(**options)
    commands._commands = list(said)
    return commands


@pytest.mark.parametrize(
    ("said", "moved_s"),
    [
        ([(0.0, False), (1.0, False), (1.4, False), (1.5, True)], 0.4),
        ([(0.0, False), (1.5, True)], 0.0),
        ([(0.0, True), (1.5, True), (1.6, False)], None),
        ([(0.0, False)], None),
        ([(0.0, False), (0.9, True)], 0.0),
        ([], None),
    ],
)
def test_a_missing_neutral_command_is_found(said, moved_s):
    became = commands_of(*said).becomes_neutral(1.0, 0.0, 0.0)
    assert became == (moved_s if moved_s is None else pytest.approx(moved_s))


@pytest.mark.parametrize(("is_neutral", "moved_s"), [(True, 0.5), (False, None)])
def test_for_a_vehicle_without_a_request_since_then_the_next_answer_counts(monkeypatch, is_neutral, moved_s):
    """Like one delayed by the machine: without a reply, a testbed's drone does not move."""
    commands = commands_of((1.0, False), (1.5, False), is_asked=True)
    monkeypatch.setattr(commands, "wait", lambda *_: commands._commands.append((4.0, is_neutral)))
    assert commands.becomes_neutral(1.0, 2.5, 0.0) == moved_s


# The relay.


@pytest.fixture
def far():
    """Listener of the vehicle."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(TIMEOUT_S)
        yield listener


@pytest.fixture
def between(far):
    """Relay in front of the vehicle, with the data that it receives."""
    middle = relay.StreamRelay(far.getsockname()[1], load(kinds()["robot"].commands), relay.CommandLog())
    middle.start()
    yield middle
    middle.close()


def connected(far, between):
    near = socket.create_connection(("127.0.0.1", between.port), TIMEOUT_S)
    vehicle, _ = far.accept()
    vehicle.settimeout(TIMEOUT_S)
    return near, vehicle


def closes(end):
    try:
        return not end.recv(1)
    except ConnectionResetError:
        return True


def test_invalid_output_is_found(far, between):
    near, vehicle = connected(far, between)
    with near, vehicle:
        near.sendall(b"\x00\x01\x05\xff" * 10)
        vehicle.recv(100)
    assert between._commands.malformed


@pytest.mark.parametrize("fault", [relay.GARBAGE, relay.TRUNCATED, relay.TRICKLE, relay.FLOOD])
def test_faults_change_what_the_bridge_reads_and_end_the_connection(far, between, fault):
    near, vehicle = connected(far, between)
    with near, vehicle:
        between.spoil(fault)
        vehicle.sendall(b"hello, hello")
        read = near.recv(12) + (near.recv(12) if fault == relay.FLOOD else b"")
        assert read
        assert read != b"hello, hello"
        between.heal()
        deadline_s = time.monotonic() + TIMEOUT_S
        while not closes(near):
            assert time.monotonic() < deadline_s
    again = connected(far, between)
    again[1].sendall(b"hello")
    assert again[0].recv(100) == b"hello"
    for end in again:
        end.close()


@pytest.mark.parametrize("fault", [relay.CUT, relay.UNREACHABLE])
def test_a_cut_ends_connections(far, between, fault):
    near, vehicle = connected(far, between)
    with near, vehicle:
        between.spoil(fault)
        assert closes(near)
