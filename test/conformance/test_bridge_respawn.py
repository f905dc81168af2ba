# SPDX-License-Identifier: Apache-2.0
"""Tests of each bridge under its launch file: its vehicle after the bridge is killed or stopped.

A stopped bridge is ended by the kernel, with the tracebacks of its threads. Either is restarted, and sends neutral
first.
"""

import json
import os
import re
import signal
import time
from pathlib import Path

import pytest
from ament_index_python.packages import get_package_share_directory
from composition import launch
from processes import TIMEOUT_S
from ros_session import wait_until
from vehicle_pair import BridgePair, assert_nothing_moved, each_kind, shared

from drone_bridge.ros.process import watchdog

#: Code for SIGUSR1: a C call that never returns holds Python's lock, like Fast DDS's lock-up in rclpy's destructors.
HELD_ON_SIGNAL = "import ctypes, signal\nsignal.signal(signal.SIGUSR1, lambda *_: ctypes.PyDLL(None).sleep(600))\n"

kind, pair = each_kind(), shared(BridgePair)
pytestmark = pytest.mark.by_mechanism("process")


@pytest.fixture
def launched(pair, tmp_path, monkeypatch):
    """Return a bridge under its launch file that drives its vehicle."""
    if pair.program.is_running:
        pair.program.stop()
    (tmp_path / "sitecustomize.py").write_text(HELD_ON_SIGNAL)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.delenv(watchdog.SECONDS)
    parameters = tmp_path / "parameters.yaml"
    parameters.write_text(json.dumps({"/**": {"ros__parameters": pair.vehicles[0].parameters}}))
    pair.command()
    launch_file = Path(get_package_share_directory("drone_bridge"), "launch", pair.kind.launch_file)
    with launch(launch_file, namespace=pair.name, params_file=parameters, **pair.kind.launch_arguments) as pair.program:
        pair.works_after(time.monotonic(), TIMEOUT_S)
        yield pair


def bridges(pair):
    """Return the bridge's processes started so far."""
    name = pair.kind.bridge.executable or f"{pair.kind.name}_bridge"
    pattern = rf"{name}-\d+ started \(pid (\d+)\)"
    return [int(match[1]) for line in tuple(pair.program.lines) if (match := re.search(pattern, line))]


def started_s(pid):
    """Return the start time of a process on CLOCK_MONOTONIC."""
    ticks = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    return ticks / os.sysconf("SC_CLK_TCK") + time.monotonic() - time.clock_gettime(time.CLOCK_BOOTTIME)


def ends_and_comes_back(pair, end):
    """End the bridge. Return the time of the new one's neutral command."""
    (*_, pid) = started = bridges(pair)
    end(pid)
    wait_until(lambda: len(bridges(pair)) > len(started), "the bridge to be started again")
    neutral_s = pair.commands.wait(True, started_s(bridges(pair)[-1]), TIMEOUT_S)
    assert neutral_s, pair.program.output
    return neutral_s


def assert_traced(pair):
    assert pair.program.count_lines(r"\(most recent call first\)") > 0


def test_a_killed_bridge_restarts_with_neutral(launched):
    """It replaces the neutral command that the killed one could not send."""

    def kill(pid):
        os.kill(pid, signal.SIGKILL)
        launched.stop()

    neutral_s = ends_and_comes_back(launched, kill)
    launched.watch()
    assert_nothing_moved(launched.commands, neutral_s)  # data of the killed one may be read only now


def test_blocked_interpreter_ends_and_the_respawned_bridge_sends_neutral(launched):
    def hold(pid):
        os.kill(pid, signal.SIGUSR1)
        launched.stop()

    neutral_s = ends_and_comes_back(launched, hold)
    assert_traced(launched)
    assert_nothing_moved(launched.commands, neutral_s)


def test_a_bridge_stopped_for_longer_ends_and_restarts_with_neutral(launched):
    """A packet in progress when it was stopped may be completed when it continues, and nothing after that."""

    def stop(pid):
        os.kill(pid, signal.SIGSTOP)
        time.sleep(watchdog.LIMIT_S + 1.0)
        launched.stop()
        time.sleep(2.0)
        os.kill(pid, signal.SIGCONT)

    neutral_s = ends_and_comes_back(launched, stop)
    assert_traced(launched)
    assert_nothing_moved(launched.commands, neutral_s)
