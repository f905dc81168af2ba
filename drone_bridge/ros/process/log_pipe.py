# SPDX-License-Identifier: Apache-2.0
"""Log pipe: non-blocking standard output and error of a node. No ROS.

rclpy's logger writes to stderr while it holds Python's lock (GIL). If stderr is not read (a terminal after Ctrl-S, `|
less`, a stalled ssh), the whole process would block, and its vehicle would keep its last command. Descriptors 1 and 2
are therefore non-blocking pipes to a child process (`log_writer`). The child reads continuously, drops lines that its
output does not accept, and writes the log file, which could also block on a slow disk. It needs no lock of the node,
and outlives it to write the last lines, including the traceback of a node that was ended by the watchdog. It also sends
the node's last words to its vehicle (`net.last_words`). A child that has died is replaced.
"""

import atexit
import contextlib
import io
import os
import signal
import socket
import sys
import threading
import time
from typing import Any

from drone_bridge.net import last_words, last_words_sender
from drone_bridge.net.clock import elapsed_s
from drone_bridge.ros.process import log_writer, watchdog
from drone_bridge.ros.process.environment import ros_home

#: How long an ending program waits for its last lines to be written.
FINISH_S = 0.5
#: Flags for which we write no log file: rcl writes its own, which may block, or there is none.
FILE_FLAGS = ("--enable-external-lib-logs", "--disable-external-lib-logs")
#: Arguments that disable the log file of rcl, which needs a folder and may block.
NO_FILE_OF_RCL = ["--ros-args", "--disable-external-lib-logs"]
#: Shortest time between two starts of a child that dies.
RESTART_S = 5.0
_LOOK_S = 0.005
#: Signals to a whole terminal or service, which only the node handles.
_BLOCKED = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGTSTP", "SIGTTOU")
    if hasattr(signal, name)
)


class _Output(io.RawIOBase):
    """Output that never raises and never blocks. Data that do not fit into the pipe are dropped."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def fileno(self) -> int:
        return self._descriptor

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        with contextlib.suppress(OSError):
            os.write(self._descriptor, data)
        return len(data)


class _LogPipe:
    """State of this process's pipe. `original` are its initial output descriptors, once they are replaced."""

    original: tuple[int, int] | None = None
    writer_pid = 0
    started_s = 0.0
    arguments: tuple[str, ...] = ()
    passed: tuple[int, ...] = ()  # the pipes' read ends, and files in memory
    memory = -1
    keeper: last_words.LastWordsKeeper | None = None
    free_keeper: last_words.LastWordsKeeper | None = None  # unless a link has it


_PIPE = _LogPipe()
#: Held while the child is started or ended.
_CHANGING = threading.Lock()


def start() -> None:
    """Redirect the output through the pipe. Call this once, in the main thread, before ROS starts."""
    if _PIPE.original:
        return
    if os.isatty(2):
        os.environ.setdefault("RCUTILS_COLORIZED_OUTPUT", "1")  # otherwise rcutils checks the pipe
    sys.stdout.flush()
    sys.stderr.flush()
    _PIPE.original = (os.dup(1), os.dup(2))
    readers, writers = zip(*(os.pipe() for _ in range(1 if os.path.sameopenfile(1, 2) else 2)), strict=True)
    outputs = (2,) if len(readers) == 1 else (1, 2)
    _PIPE.arguments = tuple(f"{reader}:{output}" for reader, output in zip(readers, outputs, strict=True))
    _PIPE.memory = last_words.shared_memory()
    _PIPE.passed = (*readers, _PIPE.memory, watchdog.traceback_file())
    _PIPE.keeper = _PIPE.free_keeper = last_words.LastWordsKeeper(_PIPE.memory, _start_child(_PIPE.original))
    for descriptor, writer in ((1, writers[0]), (2, writers[-1])):
        os.set_blocking(writer, False)
        os.dup2(writer, descriptor)
    for writer in writers:
        os.close(writer)
    sys.stdout, sys.stderr = _text(1), _text(2)
    atexit.register(finish)


def _start_child(outputs: tuple[int, int]) -> socket.socket:
    """Start the child process with these outputs. Return the socket for last words."""
    kept, control = socket.socketpair()
    memory, traceback = str(_PIPE.memory), str(watchdog.traceback_file())
    words = (str(control.fileno()), memory, last_words_sender.__file__)
    passed = [*zip(outputs, (1, 2), strict=True), *((each, each) for each in (*_PIPE.passed, control.fileno()))]
    _PIPE.writer_pid = os.posix_spawn(
        sys.executable,
        [sys.executable, "-I", "-S", log_writer.__file__, traceback, _log_file(), *words, *_PIPE.arguments],
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            *((os.POSIX_SPAWN_DUP2, ours, theirs) for ours, theirs in passed),
        ],
        setpgroup=0,
        setsigmask=_BLOCKED,
    )
    _PIPE.started_s = elapsed_s()
    control.close()
    return kept


def respawn_writer() -> None:
    """Replace the child if it has died. To be called each second."""
    with _CHANGING:
        if not (_PIPE.original and _PIPE.keeper) or elapsed_s() - _PIPE.started_s < RESTART_S:
            return
        with contextlib.suppress(ChildProcessError):  # already reaped
            if not os.waitpid(_PIPE.writer_pid, os.WNOHANG)[0]:
                return
        _PIPE.keeper.reconnect(_start_child(_PIPE.original))
    print("The log writer had ended, and was started again.", file=sys.stderr)


def has_last_words() -> bool:
    """Return whether this process has a keeper of last words."""
    return _PIPE.keeper is not None


def borrow_keeper() -> last_words.LastWordsKeeper | None:
    """Return the keeper of last words for one link; None without a child process, or if another link has it."""
    keeper, _PIPE.free_keeper = _PIPE.free_keeper, None
    return keeper


def return_keeper(keeper: last_words.LastWordsKeeper) -> None:
    """Take the keeper back after the end of its link."""
    _PIPE.free_keeper = keeper


def original_output() -> tuple[int, int]:
    """Return the initial output descriptors of this program, for its children."""
    return _PIPE.original or (1, 2)


def finish() -> None:
    """Wait until everything is written, for FINISH_S at most. Later output is written directly.

    If the output is blocked, the log writer keeps running for a while, and later output is dropped.
    """
    if not _PIPE.original:
        return
    with _CHANGING:
        original, _PIPE.original = _PIPE.original, None
    sys.stdout.flush()
    sys.stderr.flush()
    if _PIPE.keeper:
        _PIPE.keeper.close()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)  # closes the pipe, which ends the log writer
    end_s = time.monotonic() + FINISH_S
    with contextlib.suppress(ChildProcessError):  # already reaped
        while not os.waitpid(_PIPE.writer_pid, os.WNOHANG)[0]:
            if time.monotonic() > end_s:
                return
            time.sleep(_LOOK_S)
    for descriptor, file in zip((1, 2), original, strict=True):
        os.dup2(file, descriptor)


def _text(descriptor: int) -> io.TextIOWrapper:
    buffer = io.BufferedWriter(_Output(descriptor))
    return io.TextIOWrapper(buffer, "utf-8", "backslashreplace", line_buffering=True)


def _log_file() -> str:
    """Return the path that rcl would use for its log file, or an empty string for none."""
    folder = os.path.expanduser(os.environ.get("ROS_LOG_DIR") or ros_home() / "log")
    if folder.startswith("~") or any(flag in sys.argv for flag in FILE_FLAGS):
        return ""
    name = f"{os.path.basename(sys.argv[0])}_{os.getpid()}_{time.time_ns() // 1_000_000}.log"
    return os.path.abspath(os.path.join(folder, name))
