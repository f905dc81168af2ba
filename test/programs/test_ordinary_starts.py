# SPDX-License-Identifier: Apache-2.0
"""An ordinary start logs no warnings, in any order of its programs."""

import re

import pytest
from composition import launch
from ports import free_port
from processes import Process, executable

from drone_bridge.kind import OWN, kinds
from drone_bridge.tools.demo.composition import ports_of

KINDS = [kinds()[name] for name in OWN]
CONNECTED = r"\[INFO\] .*_bridge\]: (Connected to|Sending to) "


#: Number of attempts, since a stall of the machine may cause warnings. A fault causes them in all attempts.
STARTS = 3


def warnings(process):
    return re.findall(r"^.*\[(?:WARN|ERROR|FATAL)\].*$", process.output, re.MULTILINE)


def assert_silent(start):
    """Assert that at least one of several starts logs no warnings."""
    found = []
    for _ in range(STARTS):
        if not (warned := start()):
            return
        found.append(warned)
    raise AssertionError(found)


def represented(kinds):
    """Return kinds, of which the gate tests those that represent others."""
    return [kind if kind.represents else pytest.param(kind, marks=pytest.mark.exhaustive) for kind in kinds]


@pytest.mark.parametrize("kind", represented(KINDS), ids=lambda kind: kind.name)
def test_a_launch_file_with_emulator_and_controller_warns_of_nothing(kind):

    def start():
        ports = {name: free_port() for name in ports_of(kind.launch_file)}
        with launch(kind.launch_file, emulate=True, control=True, **ports) as composition:
            composition.wait_for_line(CONNECTED)
            composition.wait_for_line(r"\[INFO\] .*_controller\]: (?!Behaviour|Pattern)")  # it has had something to say
            return warnings(composition)

    assert_silent(start)


@pytest.mark.parametrize("kind", represented(kind for kind in KINDS if kind.is_stream), ids=lambda kind: kind.name)
def test_a_bridge_that_is_started_before_its_emulator_warns_of_nothing(kind):

    def start():
        port = free_port()
        with Process.node(f"{kind.name}_bridge", port=port) as bridge:
            bridge.wait_for_line(rf"\[INFO\] .*: 127\.0\.0\.1:{port} can't be reached: Connection refused")
            apart = kind.emulator.words(kind.emulator.apart)
            with Process(executable("drone-bridge"), "emulate", kind.emulator.name, *apart, "--port", port):
                bridge.wait_for_line(CONNECTED)
                found = warnings(bridge)
                assert bridge.stop() == 0
                return found

    assert_silent(start)
