# SPDX-License-Identifier: Apache-2.0
"""A program of a launch whose launch is ended: it ends in order, although it gets no signal of a terminal."""

import os
import signal
import subprocess
import sys

import pytest

from drone_bridge.stop_signals import LAUNCHED

TIMEOUT_S = 30
#: Prints the names of its threads, and waits for a stop signal.
PROGRAM = """
import threading
from drone_bridge.stop_signals import handle_stop_signals

stopped = threading.Event()
handle_stop_signals(stopped.set)
print(*(thread.name for thread in threading.enumerate()), flush=True)
while not stopped.wait(0.05):
    pass
print("in order", flush=True)
"""
#: Starts it, and prints its process ID.
LAUNCH = f"""
import signal, subprocess, sys

program = subprocess.Popen([sys.executable, "-c", {PROGRAM!r}], start_new_session=True)
print(program.pid, flush=True)
signal.pause()
"""


def launch(env):
    """Start the program by a launch. Return the launch, the program's process ID, and the names of its threads."""
    launch = subprocess.Popen([sys.executable, "-c", LAUNCH], env=env, stdout=subprocess.PIPE, text=True)
    lines = [launch.stdout.readline(), launch.stdout.readline()]
    (pid,) = (int(line) for line in lines if line.strip().isdigit())
    return launch, pid, next(line for line in lines if not line.strip().isdigit()).split()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_program_ends_with_its_launch(number):
    launched, pid, _ = launch({**os.environ, LAUNCHED: "true"})
    launched.send_signal(number)
    try:
        rest, _ = launched.communicate(timeout=TIMEOUT_S)  # until the program has closed its output, too
    except subprocess.TimeoutExpired:
        os.kill(pid, signal.SIGKILL)
        launched.communicate()
        raise
    assert rest == "in order\n"


def test_a_program_of_a_shell_watches_no_parent():
    env = {name: value for name, value in os.environ.items() if name != LAUNCHED}
    launched, pid, threads = launch(env)
    os.kill(pid, signal.SIGTERM)
    launched.kill()
    assert launched.communicate(timeout=TIMEOUT_S)[0] == "in order\n"
    assert threads == ["MainThread"]
