# SPDX-License-Identifier: Apache-2.0
"""A submission in its box: started, watched, and ended with all that it has started."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from drone_bridge.tools.grading import confine
from drone_bridge.tools.grading.task import Limits

#: What a program needs of the grader's environment; the rest is nobody's business.
_KEPT = (
    *("PATH", "LD_", "PYTHON", "VIRTUAL_ENV", "AMENT_", "COLCON_", "CMAKE_PREFIX", "LANG", "LC_"),
    *("ROS_", "RMW_", "FASTDDS_", "FASTRTPS_"),
)
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE_MIB = os.sysconf("SC_PAGE_SIZE") / 2**20
_LISTENING = "0A"  # of TCP, in /proc/net
_READ_ONLY = "Read-only file system"
_KEPT_OUTPUT = 64 * 1024  # bytes of the end


class Box:
    """The processes of one submission."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        hidden: Sequence[Path],
        limits: Limits,
        *,
        port: int,
        descriptors: Sequence[int],
        is_confined: bool,
    ) -> None:
        """Start it.

        Args:
            command: of the submission, whose files are named by absolute paths.
            folder: its own, where it may write.
            hidden: what it must not read.
            limits: which it has to keep to.
            port: of the vehicle, the only one that it may listen on.
            descriptors: that it gets.
            is_confined: whether the system can keep it to all that.
        """
        self._limits, self._port = limits, port
        told = {
            **{"box": str(folder), "hidden": [str(path) for path in hidden], "is_confined": is_confined},
            **{"memory": limits.memory, "files": limits.files, "cpu": limits.cpu},
        }
        around = confine.OF_THE_SUBMISSION if is_confined else ()
        self._process = subprocess.Popen(
            [*around, sys.executable, "-m", confine.__name__, json.dumps(told), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=descriptors,
            env=_environment(folder, port),
        )
        self._output = b""
        self._output_bytes = 0
        self._used_s: dict[int, float] = {}  # of processor time, by process
        self._reader = threading.Thread(target=self._read, name="output of the submission", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout
        while chunk := os.read(self._process.stdout.fileno(), 65536):
            self._output_bytes += len(chunk)
            self._output = (self._output + chunk)[-_KEPT_OUTPUT:]
            if self._output_bytes > self._limits.output * 1024:
                time.sleep(0.05)  # whoever floods waits for us, not we for whoever floods

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def output(self) -> str:
        """The end of what it has said."""
        return self._output.decode(errors="replace")

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def trouble(self) -> str:
        """Return which rule it breaks now, in a sentence, or nothing."""
        if self._output_bytes > self._limits.output * 1024:
            return f"It wrote more than {self._limits.output} KiB of output."
        pids = [*itertools.islice(descendants(self.pid), self._limits.processes + 3)]
        if len(pids) > self._limits.processes + 2:  # beside ours
            return f"It had more than {self._limits.processes} processes."
        memory = 0.0
        for pid in pids:
            with contextlib.suppress(OSError, IndexError, ValueError):
                memory += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_MIB
                times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                self._used_s[pid] = (int(times[11]) + int(times[12])) / _TICKS
        if memory > self._limits.memory and sum(map(_proportional, pids)) > self._limits.memory:
            return f"It used more than {self._limits.memory} MiB of memory."
        if sum(self._used_s.values()) > self._limits.cpu:
            return f"It used more than {self._limits.cpu:g} s of processor time."
        if others := _listened_ports(pids) - {self._port}:
            return f"It opened port {min(others)}, which is not the vehicle's."
        return ""

    def end_of(self) -> str:
        """Return how it has ended, in a sentence; nothing for a good end."""
        status = self._process.wait()
        if status == 0:
            return ""
        self._reader.join(1.0)
        said = [line for line in self.output.splitlines() if line.strip()]
        last = f": {said[-1].strip()[:300]}" if said else ", and said nothing"
        number = -status if status < 0 else status - 128
        if number in set(signal.Signals):
            return f"It was ended by {signal.Signals(number).name}{last}"
        return f"It ended with exit status {status}{last}"

    def attempt(self) -> str:
        """Return what it tried to write outside of its folder, in a sentence, as far as it complained of it."""
        line = next((each for each in self.output.splitlines() if _READ_ONLY in each), "")
        return f"It tried to write outside of its folder: {line.strip()[:300]}" if line else ""

    def close(self) -> None:
        """End it and all that it has started."""
        for pid in [*descendants(self.pid)]:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join(1.0)


def _environment(folder: Path, port: int) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name.startswith(_KEPT)}
    own = {"HOME": str(folder), "TMPDIR": f"{folder}/tmp", "ROS_HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    return {**kept, **own, "PYTHONUNBUFFERED": "1", "VEHICLE_HOST": "127.0.0.1", "VEHICLE_PORT": str(port)}


def descendants(pid: int) -> Iterator[int]:
    """Yield a process and all that it has started, as far as they are there."""
    yield pid
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split():
                yield from descendants(int(child))


def _proportional(pid: int) -> float:
    """Return the memory of a process, MiB, with its part of what it shares: takes longer than to ask for all of it."""
    with contextlib.suppress(OSError, StopIteration):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("Pss:")).split()[1]) / 1024
    return 0.0


def waited_s(pid: int) -> dict[str, float]:
    """Return for how long each thread of a process and of all that it has started has waited for a processor."""
    found: dict[str, float] = {}
    for each in descendants(pid):
        for account in Path(f"/proc/{each}/task").glob("*/schedstat"):
            with contextlib.suppress(OSError, IndexError):
                found[account.parent.name] = int(account.read_text().split()[1]) * 1e-9
    return found


def _listened_ports(pids: Sequence[int]) -> set[int]:
    """Return the TCP ports that processes listen on."""
    by_socket = {}
    for family in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for row in Path(f"/proc/net/{family}").read_text().splitlines()[1:]:
                columns = row.split()
                if columns[3] == _LISTENING:
                    by_socket[f"socket:[{columns[9]}]"] = int(columns[1].rpartition(":")[2], 16)
    found = set()
    for descriptor in (path for pid in pids for path in Path(f"/proc/{pid}/fd").glob("*")) if by_socket else ():
        with contextlib.suppress(OSError):
            found |= {by_socket[name] for name in [os.readlink(descriptor)] if name in by_socket}
    return found
