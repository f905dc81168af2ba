# SPDX-License-Identifier: Apache-2.0
"""A bridge that is started before its vehicle logs no warnings."""

import re

import pytest
from ports import free_port
from processes import Process, executable

from drone_bridge.kind import OWN, kinds

#: The gate tests those that represent others.
STREAMS = [
    kind if kind.represents else pytest.param(kind, marks=pytest.mark.exhaustive)
    for kind in map(kinds().get, OWN)
    if kind.is_stream
]
#: Number of attempts, since a stall of the machine may cause warnings. A fault causes them in all attempts.
STARTS = 3


def warnings_of_start(kind):
    port = free_port()
    with Process.node(f"{kind.name}_bridge", port=port) as bridge:
        bridge.wait_for_line(rf"\[INFO\] .*: 127\.0\.0\.1:{port} can't be reached: Connection refused")
        apart = kind.emulator.words(kind.emulator.apart)
        with Process(executable("drone-bridge"), "emulate", kind.emulator.name, *apart, "--port", port):
            bridge.wait_for_line(r"\[INFO\] .*_bridge\]: (Connected to|Sending to) ")
            assert bridge.stop() == 0
            return re.findall(r"^.*\[(?:WARN|ERROR|FATAL)\].*$", bridge.output, re.MULTILINE)


@pytest.mark.parametrize("kind", STREAMS, ids=lambda kind: kind.name)
def test_a_bridge_that_is_started_before_its_emulator_warns_of_nothing(kind):
    assert any(not warnings_of_start(kind) for _ in range(STARTS))
