# SPDX-License-Identifier: Apache-2.0
r"""Stop signals: those that end a program in order, with its last command to a vehicle.

A terminal sends SIGINT for Ctrl-C, SIGQUIT for Ctrl-\, and SIGHUP when it closes. The others would end a process at
once by default. SIGALRM is not among them: the watchdog uses it (`ros.watchdog`).

A program of a launch also ends with the process that has started it. `ros2 launch` that is ended by SIGTERM or SIGKILL
(an IDE, `timeout`) stops none of its programs: a bridge would go on, and its vehicle would be steered. A thread polls
the parent's process ID for that, as Python has no PR_SET_PDEATHSIG, and not each system has pidfds.
"""

import os
import signal
import threading
import time
from collections.abc import Callable

#: Environment variable of the programs that a launch file of drone_bridge has started.
LAUNCHED = "DRONE_BRIDGE_LAUNCHED"
#: Polling period of the parent's process ID, s.
PARENT_PERIOD_S = 0.5

#: Shells without job control start background programs with SIGINT ignored. It stops these, too.
_ALWAYS = ("SIGINT", "SIGTERM")
#: Signals that a parent may have ignored (nohup), or that a program uses otherwise.
_BY_DEFAULT = ("SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGXCPU")
STOP_SIGNALS = tuple(getattr(signal, name) for name in (*_ALWAYS, *_BY_DEFAULT) if hasattr(signal, name))


def stop_signals() -> list[signal.Signals]:
    """Return the signals that have to stop this program: all but those that it ignores or handles otherwise."""
    return [number for number in STOP_SIGNALS if number.name in _ALWAYS or signal.getsignal(number) is signal.SIG_DFL]


def handle_stop_signals(stop: Callable[[], object]) -> None:
    """Call `stop` at each stop signal from now on. For the main thread, at the program's start.

    A program of a launch gets SIGTERM when the launch has ended.
    """
    for number in stop_signals():
        signal.signal(number, lambda *_: stop())
    if os.environ.get(LAUNCHED):
        threading.Thread(target=_end_with, args=(os.getppid(),), name="parent", daemon=True).start()


def _end_with(parent: int) -> None:
    """Send SIGTERM to this process once it has another parent."""
    while os.getppid() == parent:
        time.sleep(PARENT_PERIOD_S)
    os.kill(os.getpid(), signal.SIGTERM)


def ignore_stop_signals() -> None:
    """Ignore all stop signals while the program ends.

    On exit, the interpreter restores the deadly defaults of handled signals, but not of ignored ones. A second Ctrl-C
    of an impatient user, or of ros2 launch, therefore does not change the exit status.
    """
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
