# SPDX-License-Identifier: Apache-2.0
"""Programs of the package as processes, with output that a test can wait for."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

from ament_index_python.packages import get_package_prefix
from patience import TIMEOUT_S

from drone_bridge.ros.process.environment import name_profile_for_fast_dds_2

#: Words before a command, which is killed with the thread that has started it: also if pytest itself is killed.
ENDS_WITH_PARENT = (setpriv, "--pdeathsig", "KILL") if (setpriv := shutil.which("setpriv")) else ()


def executable(name):
    """Return the path of an installed executable, as `ros2 run` would find it."""
    path = Path(get_package_prefix("drone_bridge"), "lib", "drone_bridge", name)
    assert path.is_file(), f"drone_bridge has no executable {name}: {path} would be it"
    return str(path)


def members(*groups):
    """Return the processes of these groups that have not ended."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, group = stat.read_text().rpartition(")")[2].split()[:3]
            if int(group) in groups and state != "Z":
                found.append(int(stat.parent.name))
    return found


def has_ended(pid):
    """Return whether a process has ended, perhaps unnoticed by the one that has adopted it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


class Process:
    """Child process whose output is read continuously. Leaving the `with` block ends it, and it must end cleanly."""

    def __init__(self, *command, env=None, stdin=subprocess.DEVNULL):
        command = [*ENDS_WITH_PARENT, *map(str, command)]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", **(env or {})}
        name_profile_for_fast_dds_2(environment)
        self._child = subprocess.Popen(
            command,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=environment,
        )
        self.lines = []
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    @classmethod
    def module(cls, name, *arguments):
        """Start `python3 -m name`."""
        return cls(sys.executable, "-m", name, *arguments)

    @classmethod
    def node(cls, name, *arguments, remap=(), env=None, **parameters):
        """Start an executable of the package with ROS parameters."""
        ros = [part for key, value in parameters.items() for part in ("-p", f"{key}:={_yaml(value)}")]
        ros += [part for rule in remap for part in ("-r", rule)]
        return cls(executable(name), *arguments, *(["--ros-args", *ros] if ros else []), env=env)

    def _read(self):
        for line in self._child.stdout:
            with self._changed:
                self.lines.append(line.decode(errors="replace").rstrip())
                self._changed.notify_all()

    @property
    def output(self):
        with self._changed:
            return "\n".join(self.lines)

    @property
    def pid(self):
        return self._child.pid

    @property
    def is_running(self):
        return self._child.poll() is None

    def wait_for_line(self, pattern, timeout_s=TIMEOUT_S):
        """Return the first match of the pattern in a line, from the start on."""
        found = []

        def find():
            found.extend(match for line in self.lines if (match := re.search(pattern, line)))
            return bool(found)

        with self._changed:
            seen = self._changed.wait_for(find, timeout_s)
        assert seen, f"no line with {pattern!r} within {timeout_s} s in:\n{self.output}"
        return found[0]

    def wait_for_count(self, pattern, count):
        """Wait until a number of lines match."""
        with self._changed:
            matches = lambda: sum(bool(re.search(pattern, line)) for line in self.lines)  # noqa: E731
            assert self._changed.wait_for(lambda: matches() >= count, TIMEOUT_S), f"{matches()} of {count} lines"

    def count_lines(self, pattern):
        with self._changed:
            return sum(bool(re.search(pattern, line)) for line in self.lines)

    def send(self, number=signal.SIGTERM):
        self._child.send_signal(number)

    def is_stopped(self):
        """Return whether SIGSTOP has stopped every thread, which happens one by one."""
        states = set()
        for thread in Path(f"/proc/{self.pid}/task").glob("*/stat"):
            with contextlib.suppress(OSError):  # one that has just ended
                states.add(thread.read_text().rpartition(")")[2].split()[0])
        return states == {"T"}

    def wait(self, timeout_s=TIMEOUT_S):
        """Return the exit status."""
        try:
            status = self._child.wait(timeout_s)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"still running after {timeout_s} s:\n{self.output}") from error
        self._reader.join(timeout_s)
        return status

    def stop(self, number=signal.SIGTERM):
        """Terminate it and return the exit status."""
        if self._child.poll() is None:
            self.send(number)
        return self.wait()

    def end(self, patience_s=20):
        """Terminate it, and kill it on a timeout."""
        if self._child.poll() is None:
            self._child.terminate()
            try:
                self._child.wait(patience_s)
            except subprocess.TimeoutExpired:
                self._child.kill()
                self._child.wait(patience_s)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGKILL)  # its own child processes
        self._reader.join(patience_s)
        self._child.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        was_running = self._child.poll() is None
        self.end()
        if kind is not None:
            print(self.output)  # pytest shows it with the failure
        # In any test, a terminated program must end in time and cleanly.
        if was_running and kind is None:
            assert self._child.returncode == 0, f"ended with {self._child.returncode}:\n{self.output}"


def when_listening(child):
    """Return a child once it has printed its listening port, as `child.port`."""
    child.port = int(child.wait_for_line(r"listening on 127\.0\.0\.1:(\d+)")[1])
    return child


def _yaml(value):
    return str(value).lower() if isinstance(value, bool) else f"'{value}'" if value == "" else value
