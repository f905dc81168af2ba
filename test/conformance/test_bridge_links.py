# SPDX-License-Identifier: Apache-2.0
"""Questions to each bridge about a link that misbehaves while it is commanded.

The commands end while the fault lasts: nothing may move the vehicle any more then, and new commands have to.
"""

import socket
import time

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from diagnostics import values_of
from processes import TIMEOUT_S
from relay import CUT, FLOOD, GARBAGE, HALF_OPEN
from ros_session import repeating
from vehicle_pair import BridgePair, assert_neutral, assert_nothing_moved, each_kind, shared

from drone_bridge.kind import Side, load

SILENCE_S = 1.2  # longer than any of the vehicles leaves between two words, or is given up at

kind, pair = each_kind(), shared(BridgePair)


def test_a_vehicle_that_hangs_for_the_third_time_is_an_error(pair, ros):
    """Although it is connected in between; datagrams have no connection to give up.

    First of all, as another fault may make it hang as well.
    """
    if not pair.kind.is_stream:
        return
    node = pair.node
    reports = ros.subscribe(DiagnosticArray, "/diagnostics")

    def wait_for(is_silent):
        """Return the next status while it is, or is not, silent."""

        def is_wanted(report):
            values = values_of(report)
            if not report.status[0].name.startswith(node.strip("/")) or values["state"] != "connected":
                return False
            if not values["peer_silent_s"]:  # nothing has been heard on the new link yet
                return False
            # A link that ends before the bridge has noticed the silence did not end because of it.
            has_noticed = report.status[0].level != DiagnosticStatus.OK
            is_long = float(values["peer_silent_s"]) > SILENCE_S
            return is_long and has_noticed if is_silent else not is_long

        return reports.wait(is_wanted).status[0]

    pair.drive()
    assert ros.set_parameters(node, silence_warning=SILENCE_S)[0].successful
    try:
        silent = []
        for _ in range(3):
            wait_for(is_silent=False)
            pair.relay.spoil(HALF_OPEN)
            silent.append(wait_for(is_silent=True))
            pair.relay.heal()  # which ends the connection
        assert [silent[0].level, silent[2].level] == [DiagnosticStatus.WARN, DiagnosticStatus.ERROR]
        assert "has hung" in silent[2].message
    finally:
        pair.relay.heal()
        pair.stop()
        ros.set_parameters(node, silence_warning=5.0)
    pair.drive()
    pair.program.wait_for_line("ERROR.*has hung [3-6] times")


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
        # Who reads nonsense in a stream hangs up, so that there is nobody to tell.
        is_heard = fault == HALF_OPEN or not pair.kind.is_stream
        if is_heard and not pair.commands.is_asked:
            assert_neutral(pair.commands)
        healed_s = time.monotonic()
    finally:
        pair.relay.heal()
    pair.watch()
    assert_nothing_moved(pair.commands, healed_s)
    pair.drive()


def test_a_second_vehicle_is_sent_nothing_and_disturbs_nobody(kind, pair):
    """Where it is the bridge that listens."""
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
