# SPDX-License-Identifier: Apache-2.0
"""Tests of each bridge on hold or at its end, in every lifecycle state: its commands to the vehicle."""

import os
import signal
import time

import alone
import pytest
from processes import TIMEOUT_S, has_ended
from ros_session import wait_until
from vehicle_pair import DOMAIN, BridgePair, assert_neutral_after, assert_nothing_moved, each_kind, shared

from drone_bridge.kind import NOT_STATED, kinds
from drone_bridge.ros.hold.wish_file import FiledWish, WishFile

kind, pair = each_kind(), shared(BridgePair)
BY_PROCESS = pytest.mark.by_mechanism("process")


@pytest.mark.every_kind
def test_a_bridge_on_hold(pair, ros):
    """Commands continue all the time, and are accepted again after the release."""

    def hold(is_held):
        asked_s = time.monotonic()
        assert ros.switch(f"{pair.node}/hold", is_held).success
        return asked_s

    pair.drive()
    asked_s = hold(True)
    pair.catch_up()
    assert_neutral_after(pair.commands, asked_s)
    neutral_s = time.monotonic()  # a command in progress at the hold has already arrived
    pair.watch()
    assert_nothing_moved(pair.commands, neutral_s)
    pair.works_after(hold(False), TIMEOUT_S)


@BY_PROCESS
def test_a_bridge_wanted_held_when_it_starts(pair, ros):
    """By a file, as DDS delivers the same wish seconds later, and commands before it."""
    pair.drive()
    end(pair, ros)
    file = WishFile(DOMAIN)
    file.write([FiledWish(f"/{pair.name}/cmd_vel_stamped", "7", "a person pressed STOP")])
    started_s = time.monotonic()
    try:
        pair.start_program()
        pair.first_word_after(started_s)
        pair.watch()
        assert_nothing_moved(pair.commands, started_s)
    finally:
        file.remove()
    resumed_s = time.monotonic()
    assert ros.switch(f"{pair.node}/hold", False).success
    pair.works_after(resumed_s, TIMEOUT_S)


def end(pair, ros):
    """End a bridge in order, and wait until no other node sees it."""
    assert pair.program.stop() == 0
    pair.catch_up()
    wait_until(lambda: pair.name not in ros.node.get_node_names(), "the end of the former node")


@pytest.mark.by_mechanism("stream", "datagrams")
def test_a_bridge_deactivated_while_commanded(pair, ros):
    """Commands continue all the time."""
    pair.drive()
    ros.transition(pair.node, "deactivate")
    pair.catch_up()
    assert not pair.commands.is_moving
    inactive_s = time.monotonic()
    pair.watch()
    assert_nothing_moved(pair.commands, inactive_s)
    pair.stop()
    ros.transition(pair.node, "cleanup", "configure", "activate")
    pair.drive()


@pytest.mark.parametrize(
    ("state", "number"),
    [
        pytest.param("active", signal.SIGTERM, marks=pytest.mark.every_kind),
        pytest.param("unconfigured", signal.SIGTERM, marks=BY_PROCESS),
        pytest.param("inactive", signal.SIGINT, marks=BY_PROCESS),
        pytest.param("active", signal.SIGINT, marks=BY_PROCESS),
        pytest.param("active", signal.SIGHUP, marks=BY_PROCESS),
        pytest.param("active", signal.SIGQUIT, marks=BY_PROCESS),
    ],
)
def test_a_bridge_that_receives_a_signal(pair, ros, state, number):
    """Last test, since each case ends a bridge."""
    if pair.program.is_running:
        pair.drive()  # a program that is still being imported ends by the signal itself
        end(pair, ros)
    pair.stop()
    pair.start_program(() if state == "active" else ("-p", "autostart:=false"))
    started_s = time.monotonic()
    if state == "inactive":
        ros.transition(pair.node, "configure")
    elif state == "unconfigured":
        wait_until(lambda: pair.name in ros.node.get_node_names(), "the node")
    else:
        pair.drive()
    child = pair.child
    status = pair.program.stop(number)
    ended_s = time.monotonic()
    assert status == 0, pair.program.output
    assert "Traceback" not in pair.program.output
    wait_until(lambda: has_ended(child), "the end of its child, which has no last words to send")
    pair.catch_up()
    assert not pair.commands.is_moving
    assert not pair.commands.malformed
    assert_nothing_moved(pair.commands, ended_s if state == "active" else started_s)


STATED = [kind for kind in kinds().values() if kind.watchdog_s != NOT_STATED]
#: Observation time of a vehicle without a watchdog, s.
WATCH_S = 3.0
#: Longest time in which a vehicle brakes, s.
BRAKES_S = 2.0

if STATED:

    @pytest.mark.every_kind
    @pytest.mark.parametrize("kind", STATED, ids=lambda kind: kind.name, indirect=True)
    def test_the_watchdog_of_a_vehicle_whose_bridge_and_its_child_are_killed(pair):
        """Measured by the output of its emulator: `moves at` and `stands at`."""
        pair.drive()
        emulator, stated_s, name = pair.emulator, pair.kind.watchdog_s, pair.kind.name
        wait_until(lambda: emulator.count_lines("^moves at") > emulator.count_lines("^stands at"), "it to move")
        stops = emulator.count_lines("^stands at")
        os.kill(pair.child, signal.SIGKILL)  # which would send last words
        killed_s = pair.kill() / 1e9
        pair.stop()
        if stated_s is None:
            time.sleep(WATCH_S)
            assert emulator.count_lines("^stands at") == stops, "it stops by itself, and states that it does not"
            alone.say(f"{name}: a vehicle whose bridge is killed moves on, as it has no watchdog")
        else:
            wait_until(lambda: emulator.count_lines("^stands at") > stops, f"its watchdog of {stated_s:g} s")
            moved_s = time.time() - killed_s
            is_right = moved_s <= stated_s + BRAKES_S
            verdict = "right, as it also brakes" if is_right else "later than stated, if this machine was not busy"
            alone.say(f"{name}: its watchdog of {stated_s:g} s stopped it {moved_s:.1f} s after its bridge: {verdict}")
