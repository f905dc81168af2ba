# SPDX-License-Identifier: Apache-2.0
"""Run a program with a blocked output: a full pipe, like a terminal after Ctrl-S.

python test/conformance/support/blocked_output.py PROGRAM [ARGUMENT ...]
"""

import contextlib
import os
import sys


def full_pipe():
    """Return the descriptors of a full pipe, which blocks writers."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    for size in (4096, 1):
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(writing, b"x" * size)
    os.set_blocking(writing, True)
    return reading, writing


if __name__ == "__main__":
    reading, writing = full_pipe()
    os.set_inheritable(reading, True)  # keeps a potential reader
    os.dup2(writing, 1)
    os.dup2(writing, 2)
    os.execvp(sys.argv[1], sys.argv[1:])
