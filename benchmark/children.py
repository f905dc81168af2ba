# SPDX-License-Identifier: Apache-2.0
"""Child processes of benchmarks: start, monitor from outside, and stop them."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from drone_bridge.tools.demo.composition import confinement

STOP_TIMEOUT_S = 5.0
END_TIMEOUT_S = 1.0  # timeout from the end of a connection to that of its program
_CPU_CLOCK_OF_A_PROCESS = 2  # CPUCLOCK_SCHED: Linux's number for the CPU clocks of other processes
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def cpu_s(pid: int) -> float:
    """Return the CPU time of all threads of a process, s."""
    return time.clock_gettime((~pid << 3) | _CPU_CLOCK_OF_A_PROCESS)


#: Environment for glibc's malloc. By default it may return memory to the system after each image and then take a page
#: fault for each page of the next one, depending on earlier allocations. It delays images in a Python subscriber by
#: 50 %.
KEEP_FREED_MEMORY = {"MALLOC_TRIM_THRESHOLD_": "268435456", "MALLOC_MMAP_THRESHOLD_": "33554432"}  # bytes


class ChildError(Exception):
    """A program failed. The text ends with its last lines on standard error."""


def heed_signals() -> None:
    """Make SIGINT and SIGTERM raise KeyboardInterrupt, so that child processes are stopped with this program.

    Background programs of a shell start with SIGINT ignored, which their children inherit.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) in (signal.SIG_IGN, signal.SIG_DFL):
            signal.signal(number, signal.default_int_handler)


class Child:
    """Child process. `lines` is its output so far; `ask` writes to its input."""

    def __init__(
        self,
        name: str,
        command: list[str],
        domain: int,
        scratch: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start it in the ROS domain, with additional environment variables. Its logs go to the folder `scratch`."""
        self.name = name
        self.lines: list[str] = []
        self.may_fail = False  # ignore its exit status when it is stopped
        self._printed = threading.Condition()  # notified at each line, and at the end of output
        self._has_ended = False
        self._errors = tempfile.TemporaryFile(dir=scratch)  # noqa: SIM115 -- closed with the object
        variables = {
            **os.environ,
            "ROS_DOMAIN_ID": str(domain),
            **confinement(),
            "ROS_LOG_DIR": str(scratch),
            "PYTHONUNBUFFERED": "1",
            **(environment or {}),
        }
        # Modules are compiled once, as in an installed package, instead of at each start.
        variables.pop("PYTHONDONTWRITEBYTECODE", None)
        heed_signals()
        # In its own session, so that only `stop` forwards Ctrl-C.
        self._process = subprocess.Popen(
            command,
            env=variables,
            text=True,
            start_new_session=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def has_spoken(self) -> bool:
        """Whether it has printed anything, or has exited."""
        return bool(self.lines) or self._has_ended

    def ask(self, line: str) -> int:
        """Write a line to its input; return the number of the output line with the reply."""
        assert self._process.stdin
        number = len(self.lines)
        try:
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()
        except OSError:
            self.check()
        return number

    def wait_for_line(self, number: int, timeout_s: float) -> str:
        """Wait for a line of output, counted from 0, and return it. Raises ChildError at the timeout."""
        with self._printed:
            self._printed.wait_for(lambda: len(self.lines) > number or self._has_ended, timeout_s)
        if len(self.lines) > number:
            return self.lines[number]
        self.check()
        raise ChildError(f"The {self.name} printed nothing for {timeout_s:g} s.{self._last_errors()}")

    def cpu_s(self) -> float:
        """Return the CPU time of all its threads, s."""
        return cpu_s(self._process.pid)

    def resident_bytes(self) -> int:
        return int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1]) * _PAGE_BYTES

    def private_bytes(self) -> int:
        """Return its resident memory that is not shared with other processes."""
        lines = Path(f"/proc/{self._process.pid}/smaps_rollup").read_text().splitlines()
        return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_"))

    def check(self) -> None:
        """Raise ChildError if it has exited, or exits within END_TIMEOUT_S."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(END_TIMEOUT_S)
            raise ChildError(
                f"The {self.name} exited unexpectedly with status {self._process.returncode}.{self._last_errors()}"
            )

    def stop(self) -> None:
        """Stop it with SIGINT, then SIGTERM, then SIGKILL, and wait. Raises ChildError if it failed."""
        for number in (signal.SIGINT, signal.SIGTERM):
            if self._process.poll() is None:
                self._process.send_signal(number)
                try:
                    self._process.wait(STOP_TIMEOUT_S)
                except subprocess.TimeoutExpired:
                    print(f"The {self.name} did not react to {signal.Signals(number).name}.", file=sys.stderr)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        if self._process.returncode and not self.may_fail:
            raise ChildError(f"The {self.name} exited with status {self._process.returncode}.{self._last_errors()}")

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            with self._printed:
                self.lines.append(line.strip())
                self._printed.notify_all()
        with self._printed:
            self._has_ended = True
            self._printed.notify_all()

    def _last_errors(self) -> str:
        self._errors.seek(0)
        tail = self._errors.read().decode(errors="replace").splitlines()[-20:]
        return "".join(f"\n  {line}" for line in tail)
