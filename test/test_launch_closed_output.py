# SPDX-License-Identifier: Apache-2.0
"""The runner's output when nobody reads it any more."""

import os
import signal
import subprocess

import pytest
from processes import TIMEOUT_S, executable


@pytest.mark.parametrize("words", [["launch", "--show-args", "testbed.launch.xml"], ["launch", "--help"], ["--help"]])
def test_a_closed_output_pipe_is_no_error(words):
    reading, writing = os.pipe()
    os.close(reading)
    command = [executable("drone-bridge"), *words]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=TIMEOUT_S, check=False)
    os.close(writing)
    assert done.returncode in (128 + signal.SIGPIPE, 0)  # argparse says nothing of its own broken pipe
    assert done.stderr == ""
