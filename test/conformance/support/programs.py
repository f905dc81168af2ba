# SPDX-License-Identifier: Apache-2.0
"""Program: a process under test, with its resources, leftovers, and exit status."""

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

from processes import ENDS_WITH_PARENT

END_TIMEOUT_S = 20.0
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
#: Allocated KiB, descriptors, threads.
Usage = tuple[int, int, int]


class Program:
    """Process with its output in a file."""

    def __init__(self, name: str, command: list[str], scratch: Path, domain: int) -> None:
        self.output_file = scratch / f"{name}.{time.monotonic_ns()}.txt"
        environment = {**os.environ, "ROS_DOMAIN_ID": str(domain), "ROS_LOG_DIR": str(scratch), "PYTHONUNBUFFERED": "1"}
        environment["ROS_HOME"] = str(scratch)  # where hold is kept
        with self.output_file.open("wb") as output:
            # In a session of its own, so that Ctrl-C does not reach it.
            self._process = subprocess.Popen(
                [*ENDS_WITH_PARENT, *command],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.pid = self._process.pid

    @property
    def output(self) -> str:
        return self.output_file.read_text(errors="replace")

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def wait(self, timeout_s: float = END_TIMEOUT_S) -> int | None:
        """Return its exit status. None on a timeout."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(timeout_s)
        return None

    def end(self) -> int | None:
        """Stop it with SIGTERM, then SIGKILL. Return its exit status, or None if it was killed."""
        self.send(signal.SIGTERM)
        self.send(signal.SIGCONT)
        status = self.wait()
        if status is None:
            self.send(signal.SIGKILL)
            self._process.wait()
        return status

    def usage(self) -> Usage:
        """Return its allocated resident memory (KiB, without mapped files), descriptors and threads."""
        _, resident, shared, *_ = map(int, self._proc("statm").read_text().split())
        used_kib = (resident - shared) * _PAGE_BYTES // 1024
        return used_kib, len(os.listdir(self._proc("fd"))), len(os.listdir(self._proc("task")))

    def shared_memory(self) -> set[str]:
        """Return the files in /dev/shm that it has mapped."""
        with contextlib.suppress(OSError):
            lines = self._proc("maps").read_text().splitlines()
            return {line.split()[5] for line in lines if "/dev/shm/" in line and len(line.split()) == 6}
        return set()

    def signals(self) -> str:
        """Return the pending, blocked, ignored and caught signals, as reported by the kernel."""
        lines = self._proc("status").read_text().splitlines()
        return ", ".join(line.replace("\t", " ") for line in lines if line.startswith(("Sig", "Shd")))

    def _proc(self, name: str) -> Path:
        return Path(f"/proc/{self.pid}") / name
