# SPDX-License-Identifier: Apache-2.0
"""Watchdog: ends this process if it hangs, so that it can be restarted.

Fast DDS can deadlock while an endpoint is destroyed (its issue 6502), and rclpy holds Python's lock (GIL) meanwhile. No
Python thread runs then, and a vehicle keeps its last command. A kernel timer is therefore set to LIMIT_S, and a thread
resets it every PERIOD_S as long as it gets the GIL. When the timer expires, SIGALRM makes C code (faulthandler) write
the tracebacks of all threads, and then has its default effect: it ends the process, with status -14. The tracebacks go
to a file in memory, since the process may hang on stderr. The log writer (`log_pipe`) copies them from there.

A process that was stopped (SIGSTOP) for longer than LIMIT_S ends when it is continued. The nodes of a suspended machine
survive, since the kernel's timer does not count that time. Setting the machine's clock has no effect.

The same timer, set once, limits a node's start, in which Fast DDS may wait for minutes for an unfinished port of a
killed process, and a shutdown. A process that is ended like this leaves its shared memory behind, as with SIGKILL: see
`shared_memory`.
"""

import faulthandler
import functools
import math
import os
import signal
import threading
from collections.abc import Callable

from drone_bridge.net.python_child import memory_file

#: How long a process may hang.
LIMIT_S = 5.0
PERIOD_S = 1.0
#: How long a node's start may take.
START_LIMIT_S = 30.0
#: How long a shutdown may take once the vehicle has its neutral command.
SHUTDOWN_LIMIT_S = 4.0
#: Environment variable that disables the watchdog if it is 0, for debuggers.
VARIABLE = "DRONE_BRIDGE_WATCHDOG"
#: Environment variable with a lower bound for these limits, s, for tests on a machine that may stall.
SECONDS = "DRONE_BRIDGE_WATCHDOG_SECONDS"

_setting = threading.Lock()
_ends = threading.Event()


@functools.cache
def traceback_file() -> int:
    """Return the descriptor of the memory file for the tracebacks of a hanging process."""
    return memory_file("traceback", 0)


def limit_start() -> None:
    """End this process unless `start` or `limit_shutdown` is called within START_LIMIT_S. For the main thread."""
    _set(START_LIMIT_S)


def start(each_second: Callable[[], None]) -> None:
    """End this process if it hangs from now on. Call this once, in the main thread.

    `each_second` is called in the watchdog's thread.
    """
    _set(LIMIT_S)
    threading.Thread(target=_set_anew, args=(each_second,), name="watchdog", daemon=True).start()


def limit_shutdown() -> None:
    """End this process if it is still running after SHUTDOWN_LIMIT_S. Later calls have no effect."""
    with _setting:
        if not _ends.is_set():
            _ends.set()
            _set(SHUTDOWN_LIMIT_S)


def limit_s() -> float:
    """Return how long a part of this process may hang."""
    return math.inf if os.environ.get(VARIABLE) == "0" else _bounded(LIMIT_S)


def end() -> None:
    """End this process as one that hangs: with the tracebacks of all threads."""
    os.kill(os.getpid(), signal.SIGALRM)


def _set(limit_s: float, *, anew: bool = False) -> None:
    if os.environ.get(VARIABLE) == "0":
        return
    if not anew:
        # The default action of SIGALRM ends the process, unless other code handles it.
        faulthandler.register(signal.SIGALRM, traceback_file(), all_threads=True, chain=True)
    signal.setitimer(signal.ITIMER_REAL, _bounded(limit_s))


def _bounded(limit_s: float) -> float:
    return max(limit_s, float(os.environ.get(SECONDS, "0")))


def _set_anew(each_second: Callable[[], None]) -> None:
    while not _ends.wait(PERIOD_S):
        each_second()
        with _setting:
            if not _ends.is_set():
                _set(LIMIT_S, anew=True)
