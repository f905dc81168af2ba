# SPDX-License-Identifier: Apache-2.0
"""Ends this process where it stands still, so that it can be started again.

Fast DDS can lock up for good while an endpoint is destroyed (its issue 6502), and rclpy keeps Python's lock meanwhile:
no thread written in Python runs any more, and a vehicle keeps the last command that it got. So a timer of the kernel is
set to LIMIT_S, and a thread sets it anew every PERIOD_S for as long as Python's lock goes round. Once the timer runs
out, SIGALRM has every thread's traceback written by C (faulthandler), and then does what it does by default: it ends
the process, with status -14. The traceback goes to a file in memory, as stderr may be what the process hangs on;
the log writer (`log_pipe`) copies it from there.

A process that was stopped (SIGSTOP) for longer than LIMIT_S ends when it is continued. A machine that was suspended
wakes with its nodes alive, as the kernel's timer does not count that time. Setting the machine's clock does nothing.

The same timer, set once, bounds a node's start, in which Fast DDS can wait for minutes for what a killed process has
not finished, and a shutdown. Such an end leaves the process's shared memory behind, as SIGKILL does:
see `shared_memory`.
"""

import faulthandler
import functools
import os
import signal
import threading

#: How long a process may stand still.
LIMIT_S = 5.0
PERIOD_S = 1.0
#: How long a node's start may take.
START_LIMIT_S = 30.0
#: How long a shutdown may take once the vehicle has its neutral command.
SHUTDOWN_LIMIT_S = 4.0
#: With the value 0, for debuggers: nothing is ended.
VARIABLE = "DRONE_BRIDGE_WATCHDOG"
#: A lower bound for each of these limits, s, for tests on a machine that may itself stand still.
SECONDS = "DRONE_BRIDGE_WATCHDOG_SECONDS"

_setting = threading.Lock()
_ends = threading.Event()


@functools.cache
def traceback_file() -> int:
    """Return the descriptor of the file in memory that gets the traceback of a process that hangs."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("traceback")
    from tempfile import TemporaryFile  # of macOS only

    with TemporaryFile() as file:
        return os.dup(file.fileno())


def limit_start() -> None:
    """End this process unless `start` or `limit_shutdown` is called within START_LIMIT_S. For the main thread."""
    _set(START_LIMIT_S)


def start() -> None:
    """End this process if it stands still from now on. To be called once, in the main thread."""
    _set(LIMIT_S)
    threading.Thread(target=_set_anew, name="watchdog", daemon=True).start()


def limit_shutdown() -> None:
    """End this process if it has not ended within SHUTDOWN_LIMIT_S; later calls change nothing."""
    with _setting:
        if not _ends.is_set():
            _ends.set()
            _set(SHUTDOWN_LIMIT_S)


def _set(limit_s: float, *, anew: bool = False) -> None:
    if os.environ.get(VARIABLE) == "0":
        return
    if not anew:
        # SIGALRM is at its default, which ends the process, unless somebody else uses it.
        faulthandler.register(signal.SIGALRM, traceback_file(), all_threads=True, chain=True)
    signal.setitimer(signal.ITIMER_REAL, max(limit_s, float(os.environ.get(SECONDS, "0"))))


def _set_anew() -> None:
    while not _ends.wait(PERIOD_S):
        with _setting:
            if not _ends.is_set():
                _set(LIMIT_S, anew=True)
