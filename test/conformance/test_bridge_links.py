# SPDX-License-Identifier: Apache-2.0
"""Tests of each bridge with a faulty link while it is commanded.

The commands end while the fault lasts: after that, only new commands may move the vehicle.
"""

import socket
import time

import pytest
from processes import TIMEOUT_S
from relay import CUT, FLOOD, GARBAGE, HALF_OPEN
from ros_session import repeating
from vehicle_pair import BridgePair, assert_neutral, assert_nothing_moved, each_kind, shared

from drone_bridge.kind import Side, load

kind, pair = each_kind(), shared(BridgePair)
pytestmark = pytest.mark.by_mechanism("stream", "datagrams")


@pytest.mark.parametrize("fault", [HALF_OPEN, GARBAGE, FLOOD, CUT])
def test_a_fault_of_the_link(pair, fault):
    if fault not in pair.faults:
        return  # datagrams have no connection that could be cut
    pair.drive()
    pair.relay.spoil(fault)
    try:
        assert pair.relay.has_spoiled.wait(TIMEOUT_S)
        pair.stop()
        pair.settle()
        # After garbage in a stream, the peer disconnects, so that nothing can be sent.
        is_heard = fault == HALF_OPEN or not pair.kind.is_stream
        if is_heard and not pair.commands.is_asked:
            assert_neutral(pair.commands)
        healed_s = time.monotonic()
    finally:
        pair.relay.heal()
    pair.watch()
    assert_nothing_moved(pair.commands, healed_s)
    pair.drive()


def test_a_second_vehicle_is_refused_without_effect_on_the_first(kind, pair):
    """For bridges that listen."""
    port = kind.ports[0]
    if port.side is not Side.OPERATOR:
        return
    connection = kind.connect(Side.VEHICLE)
    said = [connection.send(each.message) for each in load(kind.conversation)() if each.side is Side.VEHICLE]
    pair.drive()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as second:
        second.connect(("127.0.0.1", pair.vehicles[0].parameters[port.parameter]))
        with repeating(lambda number: second.send(said[number % len(said)])):
            pair.watch()
            assert pair.commands.wait(False, time.monotonic(), TIMEOUT_S), "the first one is not driven any more"
            pair.stop()
            assert_neutral(pair.commands)
        second.setblocking(False)
        with pytest.raises(BlockingIOError):
            second.recv(65536)
