# SPDX-License-Identifier: Apache-2.0
"""The programs under measurement: started, watched from outside, and ended in an orderly way."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

STOP_TIMEOUT_S: Final = 5.0
END_TIMEOUT_S: Final = 1.0  # from the end of a connection to that of its program
_CPU_CLOCK_OF_A_PROCESS: Final = 2  # CPUCLOCK_SCHED: how Linux numbers the clocks of other processes
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


def cpu_s(pid: int) -> float:
    """Return the seconds of processor time that all threads of a process have used."""
    return time.clock_gettime((~pid << 3) | _CPU_CLOCK_OF_A_PROCESS)


class ChildError(Exception):
    """A program did not do what it was started for; the text ends with what it wrote last."""


def heed_signals() -> None:
    """Have SIGINT and SIGTERM raise KeyboardInterrupt here, so that what was started is ended with this program.

    A shell has programs in the background ignore SIGINT, and so would all that they start until they say otherwise.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) in (signal.SIG_IGN, signal.SIG_DFL):
            signal.signal(number, signal.default_int_handler)


class Child:
    """A program with a ROS node in it. `lines` is what it has printed, and waits for what `ask` says."""

    def __init__(self, name: str, command: list[str], domain: int, scratch: Path) -> None:
        """Start it in the ROS domain; its own logs go to the folder `scratch`."""
        self.name = name
        self.lines: list[str] = []
        self.may_fail = False  # when it is stopped, which is nothing to us
        self._printed = threading.Condition()  # with every line, and at the end
        self._has_ended = False
        self._errors = tempfile.TemporaryFile(dir=scratch)  # noqa: SIM115 -- closed with the object
        environment = {
            **os.environ,
            "ROS_DOMAIN_ID": str(domain),
            "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
            "ROS_LOG_DIR": str(scratch),
            "PYTHONUNBUFFERED": "1",
        }
        heed_signals()
        # In a session of its own, so that Ctrl-C reaches it through `stop` alone.
        self._process = subprocess.Popen(
            command,
            env=environment,
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
        """Its process."""
        return self._process.pid

    @property
    def has_spoken(self) -> bool:
        """Whether it has printed anything, or never will."""
        return bool(self.lines) or self._has_ended

    def ask(self, line: str) -> int:
        """Give it a line of input; return the number of the line of output that is going to be the answer."""
        assert self._process.stdin
        number = len(self.lines)
        try:
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()
        except OSError:
            self.check()
        return number

    def wait_for_line(self, number: int, timeout_s: float) -> str:
        """Return a line of output, counted from 0. Raises ChildError when it does not come."""
        with self._printed:
            self._printed.wait_for(lambda: len(self.lines) > number or self._has_ended, timeout_s)
        if len(self.lines) > number:
            return self.lines[number]
        self.check()
        raise ChildError(f"The {self.name} said nothing for {timeout_s:g} s.{self._said()}")

    def wait_until(self, is_enough: Callable[[list[str]], bool], timeout_s: float) -> None:
        """Wait until its output is enough. Raises ChildError when it does not get so."""
        with self._printed:
            self._printed.wait_for(lambda: is_enough(self.lines) or self._has_ended, timeout_s)
        if not is_enough(self.lines):
            self.check()
            raise ChildError(f"The {self.name} did not say in {timeout_s:g} s what was waited for.{self._said()}")

    def cpu_s(self) -> float:
        """Return the seconds of processor time that all its threads have used."""
        return cpu_s(self._process.pid)

    def resident_bytes(self) -> int:
        """Return how much memory it occupies."""
        return int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1]) * _PAGE_BYTES

    def private_bytes(self) -> int:
        """Return how much memory it has for itself alone."""
        lines = Path(f"/proc/{self._process.pid}/smaps_rollup").read_text().splitlines()
        return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_"))

    def check(self) -> None:
        """Raise ChildError when it has ended, or does so at once."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(END_TIMEOUT_S)
            raise ChildError(f"The {self.name} ended by itself with status {self._process.returncode}.{self._said()}")

    def stop(self) -> None:
        """End it with SIGINT, or when that does not help with SIGTERM, and wait. Raises ChildError when it failed."""
        for number in (signal.SIGINT, signal.SIGTERM):
            if self._process.poll() is None:
                self._process.send_signal(number)
                try:
                    self._process.wait(STOP_TIMEOUT_S)
                except subprocess.TimeoutExpired:
                    print(f"The {self.name} did not heed {signal.Signals(number).name}.", file=sys.stderr)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        if self._process.returncode and not self.may_fail:
            raise ChildError(f"The {self.name} ended with status {self._process.returncode}.{self._said()}")

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            with self._printed:
                self.lines.append(line.strip())
                self._printed.notify_all()
        with self._printed:
            self._has_ended = True
            self._printed.notify_all()

    def _said(self) -> str:
        self._errors.seek(0)
        tail = self._errors.read().decode(errors="replace").splitlines()[-20:]
        return "".join(f"\n  {line}" for line in tail)
