# SPDX-License-Identifier: Apache-2.0
"""The end of `drone-bridge check`: its tests end with it, and their programs with them."""

import os
import signal
import sys

import pytest
from patience import wait_until
from processes import executable, has_ended

PYTEST = """
import signal, sys
from processes import Process
child = Process("bash", "-c", "echo ready; exec sleep 1000")
child.wait_for_line("ready")
child.send(signal.SIGSTOP)
print("started", child.pid, flush=True)
signal.pause()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_nothing_outlives_a_check_that_is_ended(start_child, tmp_path, number):
    (tmp_path / "pytest").mkdir()
    (tmp_path / "pytest" / "__init__.py").touch()
    (tmp_path / "pytest" / "__main__.py").write_text(PYTEST)
    path = os.pathsep.join([str(tmp_path), *sys.path])
    check = start_child(executable("drone-bridge"), "check", "robot", env={"PYTHONPATH": path})
    pid = int(check.wait_for_line(r"started (\d+)")[1])
    check.send(number)
    assert check.wait() == -number
    wait_until(lambda: has_ended(pid), "the end of a suspended program of a test")
