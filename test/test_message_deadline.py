# SPDX-License-Identifier: Apache-2.0
"""A message has a time as a whole, however its bytes come."""

import pytest

from drone_bridge.net.connector import LinkTimeoutError
from drone_bridge.net.tcp import MessageDeadline


class Dripping:
    """A stream with a byte per second, on a clock of its own."""

    peer = "a slow peer"

    def __init__(self, clock):
        self._clock = clock

    def receive_into(self, *buffers, timeout_s=None, pixel_bytes=0):
        if timeout_s is not None and timeout_s < 1.0:
            self._clock[0] += timeout_s
            raise LinkTimeoutError("a slow peer sent nothing.")
        self._clock[0] += 1.0
        return 1


def test_a_trickle_of_bytes_does_not_extend_the_deadline(clock):
    deadline = MessageDeadline(Dripping(clock), 4.5)
    for _ in range(4):
        assert deadline.receive_into(memoryview(bytearray(1)), is_inside_message=True) == 1
    for _ in range(2):  # and it is over for good
        with pytest.raises(LinkTimeoutError, match=r"^a slow peer did not complete a message within 4\.5 s\.$"):
            deadline.receive_into(memoryview(bytearray(1)), is_inside_message=True)
    assert clock[0] == pytest.approx(104.5)


def test_each_message_has_its_own_time_and_between_them_there_is_no_limit(clock):
    deadline = MessageDeadline(Dripping(clock), 4.5)
    for _ in range(100):
        assert deadline.receive_into(memoryview(bytearray(1)), is_inside_message=False) == 1
        for _ in range(4):
            assert deadline.receive_into(memoryview(bytearray(1)), is_inside_message=True) == 1
