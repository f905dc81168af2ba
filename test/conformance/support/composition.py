# SPDX-License-Identifier: Apache-2.0
"""Launch files, as run by `drone-bridge launch`."""

import contextlib
import os
import re
import signal
import struct
import sys
from pathlib import Path

from processes import Process
from ros_session import wait_until

INTERRUPTED = 128 + signal.SIGINT
_BUSY = r"stall|has just resumed|has not reported its motion for 0\.\d s"
RUNNER = (sys.executable, Path(__file__).with_name("patient_runner.py"))


def launch(launch_file, *, env=None, **arguments):
    """Start a launch file of the package or by its path. Its exit status must be 0 or that of an interrupt."""
    given = [f"{name}:={str(value).lower() if isinstance(value, bool) else value}" for name, value in arguments.items()]
    return Composition(*RUNNER, "launch", launch_file, *given, env=env)


def warnings_in(lines):
    """Return the lines with a warning, but for those about a busy machine."""
    return [line for line in lines if "[WARN]" in line and not re.search(_BUSY, line)]


class Composition(Process):
    """Launch runner with its processes. Leaving the `with` block interrupts it, and all must end cleanly."""

    def __exit__(self, kind, *rest):
        if kind is None and self.is_running:
            assert self.stop(signal.SIGINT) in (0, INTERRUPTED), self.output  # it may be ending
            assert self.leftovers() == []
        return super().__exit__(kind, *rest)

    def pids(self):
        """Return the process IDs of all started processes, each the leader of a group."""
        return [int(pid) for pid in re.findall(r"\[launch\] \S+ started \(pid (\d+)\)", self.output)]

    def leftovers(self):
        """Return the process groups that still have processes."""
        groups = self.pids()
        assert groups
        left = []
        for group in groups:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, 0)
                left.append(group)
        return left


def wait_until_recorded(bag, topics):
    """Wait until a recorder has written all these topics to its bag.

    DDS does not always report the owner of a subscription, so the graph is less reliable.
    """
    file = bag / f"{bag.name}.mcap"
    names = [struct.pack("<I", len(topic)) + topic.encode() for topic in topics]

    def content():
        return file.read_bytes() if file.exists() else b""

    wait_until(lambda: (data := content()) and all(name in data for name in names), "the topics", period_s=0.1)
