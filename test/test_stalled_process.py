# SPDX-License-Identifier: Apache-2.0
"""A process that is stopped knows it when it goes on."""

import signal
import subprocess
import sys
import time

import pytest

from drone_bridge.ros.stall_watch import STALL_S

LOOKS = """
import sys
from drone_bridge.ros.stall_watch import PROCESS

PROCESS.start()
while True:
    print("settling" if PROCESS.is_settling else "running")
    if not sys.stdin.readline():
        break
"""


@pytest.mark.parametrize("stopped_s", [2 * STALL_S, 2.0])
def test_a_stopped_process_is_settling_when_it_goes_on(stopped_s):
    """The first look after the stop comes before the first tick."""
    with subprocess.Popen([sys.executable, "-uc", LOOKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout.readline() == b"running\n"
        child.send_signal(signal.SIGSTOP)
        time.sleep(stopped_s)
        child.stdin.write(b"look\n")
        child.stdin.flush()
        child.send_signal(signal.SIGCONT)
        assert child.stdout.readline() == b"settling\n"
        child.stdin.close()
