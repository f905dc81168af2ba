# SPDX-License-Identifier: Apache-2.0
"""Streams after a stall in which their child process has written to them, without a network or a process."""

import os
import time
from types import SimpleNamespace

import pytest
from fake_wire import PLENTY, FakeWire
from kept_words import kept

from drone_bridge.net import last_words, last_words_sender
from drone_bridge.net.clock import elapsed_s
from drone_bridge.net.last_words_sender import DEADLINE
from drone_bridge.net.serial_line import SerialLine, _Device
from drone_bridge.net.tcp_connection import StreamOptions, TcpConnection
from drone_bridge.ros.node.protocol_node import ProtocolNode
from drone_bridge.ros.process import log_pipe
from drone_bridge.session.session import LastWords
from drone_bridge.session.stall_detector import StallDetector

GO, STOP, BYE = b"go 1.00\n", b"stop\n", b"bye\n"
WORDS = LastWords((STOP,), (BYE,))


class Line(SerialLine):
    """Serial line that is open."""

    def __init__(self):
        super().__init__("/dev/line", 115200, lambda *_: None)
        self._device = _Device(-1)


@pytest.fixture(params=["tcp", "serial"])
def scene(request, monkeypatch):
    """Wire, a function that sends to it, and the keeper and the child of its link."""
    wire = FakeWire()
    for module in (last_words, last_words_sender):
        monkeypatch.setattr(module, "written_bytes", lambda wire: len(wire.data))
    if request.param == "tcp":
        stream = TcpConnection(wire, StreamOptions())
        outlet = stream.outlet
        send = stream.flush
    else:
        write = os.write
        monkeypatch.setattr(os, "write", lambda file, data: wire.send(data) if file == -1 else write(file, data))
        monkeypatch.setattr(_Device, "backlog", 0)
        stream = Line()
        outlet = stream.outlet_to(None)

        def send(data=b"", rest=b""):
            if data:
                stream.send(data, None, rest)
            else:
                stream._flush()

    waited: list[float] = []  # the child's waits, in place of a clock
    clock = {"clock_gettime_ns": time.clock_gettime_ns, "monotonic": lambda: sum(waited), "sleep": waited.append}
    monkeypatch.setattr(last_words_sender, "time", SimpleNamespace(**clock))
    with kept(wire if request.param == "tcp" else None) as (keeper, child):
        yield wire, send, keeper, child, outlet


def stall(keeper, child):
    """Let the deadline pass, and continue. Return when neutral was sent meanwhile, None if it was not."""
    keeper.command_timeout = lambda: -1.0
    keeper.moved_on()
    child._check_stall()
    keeper.command_timeout = lambda: 0.5
    return keeper.was_written()


def test_words_are_reported_as_sent_at_their_deadline(scene):
    *_, keeper, child, outlet = scene
    keeper.keep(WORDS, outlet)
    began_s = elapsed_s()
    sent_at = stall(keeper, child)
    assert began_s <= sent_at + 1.0 - last_words.STALL_S <= elapsed_s()
    assert keeper.was_written() is None


@pytest.mark.parametrize("command_timeout", [0.01, 0.5])
def test_the_loop_detects_each_stall_in_which_words_are_sent(scene, monkeypatch, command_timeout):
    *_, keeper, _, outlet = scene
    monkeypatch.setattr(log_pipe, "borrow_keeper", lambda: keeper)
    node = SimpleNamespace(is_server=False, parameters={"command_timeout": command_timeout})
    assert ProtocolNode._borrowed_keeper(node) is keeper
    turn_s = elapsed_s()
    keeper.keep(WORDS, outlet)
    deadline_s = int.from_bytes(keeper._memory[DEADLINE : DEADLINE + 8], "little") / 1e9
    longest_turn_s = StallDetector.PERIOD_S + StallDetector.STALL_S
    assert deadline_s - turn_s > max(command_timeout + 0.19, longest_turn_s)


def test_a_process_that_is_killed_after_a_stall_still_has_last_words(scene):
    wire, send, keeper, child, outlet = scene
    for _ in range(3):
        keeper.keep(WORDS, outlet)
        send(GO)
        assert stall(keeper, child)
        send(STOP)
        keeper.disarm()
    keeper.keep(WORDS, outlet)
    send(GO)
    child._end()
    assert wire.data == (GO + STOP + STOP) * 3 + GO + STOP + BYE


@pytest.mark.parametrize("cut", [1, 4, len(GO) - 1])
def test_the_rest_of_a_message_that_a_stall_has_completed_is_not_sent_again(scene, cut):
    wire, send, keeper, child, outlet = scene
    keeper.keep(WORDS, outlet)
    wire.room = len(GO) + cut
    send(GO)
    send(GO)
    wire.room = PLENTY
    assert stall(keeper, child)
    send()
    send(STOP)
    keeper.disarm()
    assert wire.data == GO + GO + STOP + STOP
    keeper.keep(WORDS, outlet)
    send(GO)
    child._end()
    assert wire.data.endswith(STOP + GO + STOP + BYE)


@pytest.mark.parametrize("room", [0, 2])
def test_the_rest_of_a_message_that_a_stall_has_not_completed_is_sent(scene, room):
    """Of a peer that does not read, or too little for the rest."""
    wire, send, keeper, child, outlet = scene
    keeper.keep(WORDS, outlet)
    wire.room = len(GO) + 4
    send(GO)
    send(GO)
    wire.room = room
    assert bool(stall(keeper, child)) == (room > 0)
    wire.room = PLENTY
    send()
    assert wire.data == GO + GO
