# SPDX-License-Identifier: Apache-2.0
"""The testbed's side of a exchange, whoever flies: whose turn it is, and in which dialect."""

from dataclasses import replace

import pytest
from testbed_bytes import CONSTANTS, FRAME, LEFT, REPLY, RIGHT, constants_bytes, frame_bytes

from drone_bridge.testbed.codec import (
    NEED_DATA,
    AttitudeLayout,
    AutopilotConnection,
)
from drone_bridge.testbed.device.exchange import Dialect, LockstepExchange
from drone_bridge.wire.events import RemoteProtocolError


class Drone:
    """Senses the frames that it is given, and remembers how it flew."""

    constants = CONSTANTS

    def __init__(self, *frames):
        self.frames = list(frames)
        self.flown = []

    def sense(self):
        return self.frames.pop(0) if self.frames else None

    def fly(self, motion):
        self.flown.append(motion)


def reply_bytes(reply=REPLY):
    autopilot = AutopilotConnection()
    autopilot.receive_data(constants_bytes() + frame_bytes())
    return autopilot.send(reply)


def begun(*frames, **options):
    drone = Drone(*frames)
    exchange = LockstepExchange(drone, options.pop("dialect", Dialect()), **options)
    exchange.opening()
    return drone, exchange


def frames_at(*times):
    return [replace(FRAME, time=time) for time in times]


def test_an_answer_that_came_ahead_of_its_frame_counts_when_the_frame_is_out():
    drone, exchange = begun(*frames_at(0.0))
    exchange.receive_data(reply_bytes())
    assert exchange.next_event(0.0) is NEED_DATA
    assert drone.flown == []
    exchange.next_frame(0.0)
    assert exchange.next_event(0.0) == REPLY
    assert drone.flown == [REPLY]


def test_an_answer_that_came_too_late_is_not_flown_by_and_the_turn_goes_on():
    drone, exchange = begun(*frames_at(0.0, 0.5), answer_timeout_s=0.5)
    exchange.next_frame(10.0)
    exchange.receive_data(reply_bytes())
    assert exchange.next_event(10.6) == REPLY
    assert (drone.flown, exchange.late_answers) == ([], 1)
    assert exchange.next_frame(10.7)
    exchange.receive_data(reply_bytes())
    exchange.next_event(11.2)
    assert (drone.flown, exchange.late_answers, exchange.answers) == ([REPLY], 1, 2)


def test_a_testbed_waits_for_an_answer_forever_unless_told_otherwise():
    drone, exchange = begun(*frames_at(0.0))
    exchange.next_frame(0.0)
    exchange.receive_data(reply_bytes())
    exchange.next_event(1e9)
    assert drone.flown == [REPLY]


def test_invalid_answers_are_not_flown():
    drone, exchange = begun(*frames_at(0.0))
    exchange.next_frame(0.0)
    exchange.receive_data(b"\x7f\xc0\x00\x00" * 4)
    with pytest.raises(RemoteProtocolError, match="pitch_rate is nan"):
        exchange.next_event(0.0)
    assert drone.flown == []


def test_a_dialect_may_count_gravity_upwards():
    exchange = LockstepExchange(Drone(), Dialect(has_negative_gravity=True))
    assert exchange.opening() == constants_bytes(gravity=-CONSTANTS.gravity)


def test_a_dialect_may_write_a_frame_in_pieces():
    _, exchange = begun(FRAME, dialect=Dialect(AttitudeLayout.POSE, sends_in_pieces=True))
    pieces = [bytes(piece) for piece in exchange.next_frame(0.0)]
    assert pieces == [LEFT, RIGHT, frame_bytes(AttitudeLayout.POSE, images=b"")]
    assert exchange.next_frame(0.0) == []
