# SPDX-License-Identifier: Apache-2.0
"""CodecProcess: parent's side of the child process that decodes and encodes pictures, and their shared memory.

The memory has no name in a file system, and the child exits when its socket is closed, so a killed parent leaves
nothing behind.
"""

import contextlib
import json
import math
import mmap
import os
import socket
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from drone_bridge.net.clock import elapsed_s
from drone_bridge.net.connector import Backoff
from drone_bridge.net.python_child import memory_file, module_command

#: Maximum data of a request: an image of 1920 x 1080 pixels. Pages that are never written use no memory.
MAX_DATA_BYTES = 8 << 20
#: Offset of the results, after the data.
MEMORY_BYTES = MAX_DATA_BYTES + (4 << 20)
_WORKER = "drone_bridge.pictures.worker"
#: One thread: others of BLAS would spin.
_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
#: Timeout of a reply, including start and imports on a busy machine, s.
REPLY_TIMEOUT_S = 20.0
#: Time after which a reply is late, s. The first one is not, since start and imports take as long on a small machine.
LATE_S = 2.0
#: Condition of a late reply, with its advice.
LATE, LATE_ADVICE = "video_process", f"no picture is processed until it is replaced, after {REPLY_TIMEOUT_S:g} s"
_END_TIMEOUT_S = 1.0
_REPLY_BYTES = 1 << 16


class Reply(NamedTuple):
    """Result of a request: facts and data, or a sentence why it was refused."""

    facts: dict[str, Any]
    data: list[bytes]
    refusal: str = ""


class CodecProcessError(Exception):
    """The child has exited or hung, and the request is lost. The text is a sentence."""


class CodecProcess:
    """Child process, started by the first request and restarted after its end, with backoff. Single-threaded."""

    def __init__(self, output: tuple[int, int]) -> None:
        """`output` has the descriptors for the child's standard output and error."""
        self._output = output
        self._child: subprocess.Popen[bytes] | None = None
        self._backoff = Backoff()
        self._due_s = -math.inf  # earliest time of the next start
        self._asked_s: float | None = None  # time of the request without a reply
        self._has_replied = False
        self._received = b""

    @property
    def pid(self) -> int | None:
        """Process id of the child, None without a child."""
        return self._child.pid if self._child else None

    @property
    def can_take(self) -> bool:
        """Whether a request can be made now: the child is idle, or may be started."""
        return self._asked_s is None and (self._child is not None or elapsed_s() >= self._due_s)

    @property
    def is_busy(self) -> bool:
        """Whether a reply is pending."""
        return self._asked_s is not None

    @property
    def problem(self) -> str:
        """Clause about a reply that is late, or "". Thread-safe."""
        asked_s = self._asked_s
        late_s = elapsed_s() - asked_s if self._has_replied and asked_s is not None else 0.0
        return f"the process for pictures has not replied for {late_s:.0f} s" if late_s > LATE_S else ""

    def fileno(self) -> int:
        """Return the descriptor that becomes readable with a reply, or when the child exits."""
        return self._socket.fileno()

    def ask(self, work: str, data: bytes | memoryview, **more: Any) -> None:
        """Send a request. Requires `can_take`.

        Args:
            work: import path of one of its functions, `module:function`, see `work`.
            data: its input, MAX_DATA_BYTES at most.
            more: its other arguments.

        Raises CodecProcessError.
        """
        if self._child is None:
            self._start()
        self._memory[: len(data)] = data
        self._asked_s = elapsed_s()
        try:
            self._socket.sendall(json.dumps({"work": work, "bytes": len(data), **more}).encode() + b"\n")
        except OSError as error:
            self._fail(error)

    def reply(self) -> Reply | None:
        """Return the reply, None if it is pending. Raises CodecProcessError."""
        try:
            received = self._socket.recv(_REPLY_BYTES, socket.MSG_DONTWAIT)
            self._received += received
            if not received:
                self._fail(None)
        except BlockingIOError:
            if self._asked_s is not None and elapsed_s() > self._asked_s + REPLY_TIMEOUT_S:
                self._fail(TimeoutError(f"no reply for {REPLY_TIMEOUT_S:g} s"))
        except OSError as error:
            self._fail(error)
        line, end, rest = self._received.partition(b"\n")
        if not end:
            return None
        self._received, self._asked_s, self._has_replied = rest, None, True
        self._backoff.reset()
        answer = json.loads(line)
        if refusal := answer.get("refusal"):
            return Reply({}, [], refusal)
        data, at = [], MAX_DATA_BYTES
        for size in answer["sizes"]:
            data.append(self._memory[at : at + size])
            at += size
        return Reply(answer["facts"], data)

    def end(self) -> None:
        """Stop the child. The next request starts another one."""
        if self._child is None:
            return
        child, self._child, self._asked_s, self._received = self._child, None, None, b""
        self._has_replied = False
        self._socket.close()
        self._memory.close()
        try:
            child.wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:  # it hangs, or its machine is busy
            child.kill()
            child.wait()

    def _start(self) -> None:
        package = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(filter(None, (package, *os.environ.get("PYTHONPATH", "").split(os.pathsep))))
        with contextlib.ExitStack() as stack:
            try:
                descriptor = memory_file("pictures", MEMORY_BYTES)
                stack.callback(os.close, descriptor)
                ours, theirs = socket.socketpair()
                stack.callback(theirs.close)
                unless_started = stack.enter_context(contextlib.ExitStack())
                unless_started.callback(ours.close)
                self._memory = mmap.mmap(descriptor, MEMORY_BYTES)
                unless_started.callback(self._memory.close)
                self._child = subprocess.Popen(
                    module_command(_WORKER, str(theirs.fileno()), str(descriptor)),
                    stdin=subprocess.DEVNULL,
                    stdout=self._output[0],
                    stderr=self._output[1],
                    env={**os.environ, **_ONE_THREAD, "PYTHONPATH": path},
                    pass_fds=(theirs.fileno(), descriptor),
                    start_new_session=True,  # a terminal's Ctrl-C is handled by the node
                )
            except OSError as error:
                self._due_s = elapsed_s() + self._backoff.next_delay_s()
                raise CodecProcessError(f"The process for pictures can't be started: {error.strerror}.") from error
            unless_started.pop_all()
        self._socket = ours

    def _fail(self, error: OSError | None) -> None:
        """Reap a child that has exited or hung. Raises CodecProcessError."""
        assert self._child
        status = self._child.poll()
        self.end()
        self._due_s = elapsed_s() + self._backoff.next_delay_s()
        reason = f"ended with status {status}" if status is not None else str(error or "closed its socket")
        raise CodecProcessError(f"The process for pictures failed ({reason}); it will be restarted.")
