# SPDX-License-Identifier: Apache-2.0
"""Tests of each bridge and server with a blocked log: it must stop its vehicle, and end.

Its output is blocked, as in a terminal after Ctrl-S: standard output and error are full pipes from the start. Or the
disk of its log file hangs.
"""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from processes import TIMEOUT_S
from vehicle_pair import DOMAIN, BridgePair, ServerPair, assert_neutral, assert_neutral_after, each_kind

from drone_bridge.ros.process import watchdog

#: Code for SIGUSR1: a C call that never returns holds Python's lock, like Fast DDS's lock-up in rclpy's destructors.
HELD_ON_SIGNAL = "import ctypes, signal\nsignal.signal(signal.SIGUSR1, lambda *_: ctypes.PyDLL(None).sleep(600))\n"

SLOW_DISK = Path(__file__).parent / "support" / "slow_disk.c"

kind = each_kind()
pytestmark = pytest.mark.by_mechanism("process")


@pytest.fixture(scope="module", params=[BridgePair, ServerPair], ids=["bridge", "server"])
def pair(kind, request, tmp_path_factory):
    if request.param is ServerPair and kind.server is None:
        pytest.skip(f"{kind.name} has no server")
    pair = request.param(kind, DOMAIN, tmp_path_factory.mktemp(kind.name))
    pair.is_output_blocked = True
    try:
        pair.start()
        yield pair
    finally:
        pair.close()


def test_the_end_of_commands(pair, ros):
    """After a hold, which the node logs, as it logs refused commands each second."""
    hold = f"{pair.node}/hold"
    pair.drive()
    assert ros.switch(hold, True).success
    pair.watch()
    assert not pair.commands.is_moving
    released_s = time.monotonic()
    assert ros.switch(hold, False).success
    pair.works_after(released_s, TIMEOUT_S)
    assert_neutral_after(pair.commands, pair.stop())


def test_sigterm(pair):
    pair.drive()
    assert pair.program.stop(signal.SIGTERM) == 0
    pair.catch_up()
    assert_neutral(pair.commands)


@pytest.fixture(scope="module")
def slow_disk(tmp_path_factory):
    """Return a library that makes a disk hang when preloaded."""
    library = tmp_path_factory.mktemp("slow") / "slow_disk.so"
    compiler = next(filter(shutil.which, ("cc", "gcc", "clang")), None)  # as the messages need one
    assert compiler, "This test needs a C compiler: install gcc or clang."
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, SLOW_DISK, "-ldl"], check=True, timeout=TIMEOUT_S)
    return library


def test_a_disk_that_hangs(pair, slow_disk, tmp_path, monkeypatch):
    """The log file is not written, but the output is complete."""
    if pair.program.is_running:
        pair.program.stop()
    monkeypatch.setenv("LD_PRELOAD", str(slow_disk))
    monkeypatch.setenv("ROS_LOG_DIR", str(tmp_path))
    monkeypatch.setattr(pair, "is_output_blocked", False)
    started_s = time.monotonic()
    pair.start_program()
    pair.command()
    pair.works_after(started_s, TIMEOUT_S)
    assert_neutral_after(pair.commands, pair.stop())
    pair.program.wait_for_line(".")
    assert pair.program.stop(signal.SIGTERM) == 0
    assert_neutral(pair.commands)
    assert [file.stat().st_size for file in tmp_path.iterdir()] == [0]


def test_a_held_interpreter(pair, tmp_path, monkeypatch):
    """Last test: the kernel ends the program, so that it can be restarted."""
    if pair.program.is_running:
        pair.program.stop()
    (tmp_path / "sitecustomize.py").write_text(HELD_ON_SIGNAL)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.delenv(watchdog.SECONDS)
    pair.start_program()
    started_s = time.monotonic()
    pair.command()
    pair.works_after(started_s, TIMEOUT_S)
    pair.program.send(signal.SIGUSR1)
    assert pair.program.wait() == -signal.SIGALRM
