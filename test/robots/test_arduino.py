# SPDX-License-Identifier: Apache-2.0
"""Tests beyond `drone-bridge check arduino`: answers of the firmware, its parser, and the sizes of a build."""

import math

import pytest

from drone_bridge.robot_class import Answer, BodyVelocity, Refusal, Telemetry
from drone_bridge.robot_class.robot import sized
from drone_bridge.robot_class.self_check import faults
from drone_bridge.robots.arduino import Arduino

OK, INVALID = b"OK\r\n", b"Invalid Command\r\n"
SIZES = {"wheel_separation": 0.2, "wheel_radius": 0.1, "enc_counts_per_rev": 1000.0}
MINE = sized(Arduino, SIZES.get)
M_S = math.tau * 0.1 / 1000 / 0.033  # of a count per loop
#: After a line that ended with CR and LF, by atoi, with an empty first argument, and with numbers of 16 bits.
SPEEDS = (b"\nm 20 -10\r", 20, -10), (b"m 7.9 8\r", 7, 8), (b"m  2 3\r", 0, 23), (b"m 65546 x\r", 10, 0)


def test_speeds_are_read_as_by_the_board():
    for line, left, right in SPEEDS:
        velocity, answer = MINE().decode_command(line)
        told = velocity.forward, velocity.turn
        assert (answer, told) == (OK, pytest.approx(((left + right) / 2 * M_S, (right - left) * M_S / 0.2)))


def test_each_command_has_the_answer_of_the_firmware():
    answers = {
        b"b": b"57600\r\n",
        b"e": b"0 0\r\n",
        b"u 30:20:0:100": OK,
        b"a 1": b"0\r\n",
        b"": INVALID,
    }
    assert {line: Arduino().decode_command(line + b"\r") for line in answers} == answers
    assert list(faults(Arduino)) == list(faults(MINE)) == []


def test_counters_are_signed_and_zeroed_by_a_reset_which_ends_regulated_motion():
    end, client = MINE(), MINE()
    end.encode_report(Telemetry((-math.tau * 0.1, 0.0, 0.0), 0.0))
    client.decode_report(b"0 0\r\n")
    assert client.decode_report(end.decode_command(b"e\r")).position == pytest.approx((-math.tau * 0.1, 0.0, 0.0))
    answers = [end.decode_command(line) for line in (b"e\r", b"o 255 255\r", b"r\r", b"e\r", b"m 5 5\r", b"r\r")]
    assert answers[:4] == [b"-1000 -1000\r\n", (BodyVelocity(0.5), OK), OK, b"0 0\r\n"]
    assert answers[5] == (BodyVelocity(), OK)


def test_a_firmware_without_motors_is_named_and_other_answers_are_no_reports():
    with pytest.raises(ValueError, match="compile the firmware with USE_BASE"):
        Arduino().decode_report(INVALID)
    assert [Arduino().decode_report(each) for each in (OK, b"O")] == [
        Answer("", True, repr(OK)),
        Answer("", False, "b'O'"),
    ]


REFUSED = [("s 0 90", INVALID, "a servo (s)"), ("w 13 1", OK, "a digital pin (w)"), ("x 5 99", OK, "an analog pin (x)")]


@pytest.mark.parametrize(("line", "answer", "name"), REFUSED)
def test_what_may_move_something_at_its_pins_is_refused(line, answer, name):
    """Of the firmware's commands, m, o and r move or stop its wheels: see above."""
    done = Arduino().decode_command(f"{line}\r".encode())
    assert done == Refusal(name, "nothing is at its pins", answer)
