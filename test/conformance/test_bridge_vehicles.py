# SPDX-License-Identifier: Apache-2.0
"""Questions to each bridge, its vehicle and their processes: what is carried out after a stall or a death?

The commands end before it is over: nothing may move the vehicle any more then, and new commands have to.
"""

import json
import os
import signal
import time

import pytest
from composition import launch
from processes import TIMEOUT_S
from ros_session import wait_until
from vanishing import kill, removing_shared_memory
from vehicle_pair import (
    COMMAND_TIMEOUT_S,
    BridgePair,
    assert_neutral,
    assert_nothing_moved,
    each_kind,
    shared,
)

kind, pair = each_kind(), shared(BridgePair)


def test_a_vehicle_that_is_killed(pair):
    pair.drive()
    pair.emulator.send(signal.SIGKILL)
    pair.emulator.wait()
    pair.stop()
    pair.settle()
    started_s = time.monotonic()
    pair.start_emulator()
    pair.wait_until_connected()
    pair.watch()
    assert_nothing_moved(pair.commands, started_s)
    pair.drive()


@pytest.mark.parametrize("who", ["vehicle", "bridge"])
def test_who_stands_still(pair, who):
    pair.drive()
    process = pair.emulator if who == "vehicle" else pair.program
    process.send(signal.SIGSTOP)
    try:
        wait_until(process.is_stopped, "the process to stand still")
        pair.queue_commands()
        pair.stop()
        time.sleep(COMMAND_TIMEOUT_S)  # it stands still for longer than the last command is in force
        pair.catch_up()
    finally:
        resumed_s = time.monotonic()
        process.send(signal.SIGCONT)
    if who == "bridge":
        pair.watch()  # longer, for what DDS sends again after 3 s, in the campaign
        assert_nothing_moved(pair.commands, resumed_s)
    assert_neutral(pair.commands)
    pair.drive()


def test_a_bridge_that_is_killed(pair):
    """Its successor says neutral before anything else."""
    pair.drive()
    kill(pair.program)
    pair.stop()
    pair.catch_up()
    started_s = time.monotonic()
    pair.start_program()
    assert pair.commands.wait(True, started_s, TIMEOUT_S), "no neutral command"  # though nobody commands
    pair.watch()
    assert_nothing_moved(pair.commands, started_s)
    pair.drive()


def test_a_bridge_that_is_killed_under_its_launch_file_leaves_a_neutral_vehicle(pair, tmp_path):
    """At last, as it is another one: it comes back by itself, and says what the killed one can't say any more.

    A vehicle of a connection that ends may stop before.
    """
    if pair.program.is_running:
        pair.program.stop()
    parameters = tmp_path / "parameters.yaml"
    parameters.write_text(json.dumps({"/**": {"ros__parameters": pair.vehicles[0].parameters}}))
    pair.command()
    with launch(pair.kind.launch_file, namespace=pair.name, params_file=parameters) as pair.program:
        pair.works_after(time.monotonic(), TIMEOUT_S)
        started = rf"{pair.kind.name}_bridge-\d+ started \(pid (\d+)\)"
        pid = int(pair.program.wait_for_line(started)[1])
        with removing_shared_memory(pid):
            os.kill(pid, signal.SIGKILL)
            killed_s = pair.stop()
            neutral_s = pair.commands.wait(True, killed_s, TIMEOUT_S)
            assert neutral_s, pair.program.output
        pair.watch()
        assert_nothing_moved(pair.commands, neutral_s)  # what the killed one had sent may be read only now
