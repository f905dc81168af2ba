# SPDX-License-Identifier: Apache-2.0
"""Log writer: child process that writes a node's output, so that no terminal, pipe or disk can block the node.

    python -I -S log_writer.py TRACEBACK LOG_FILE CONTROL MEMORY SENDER PIPE:OUTPUT ...

It reads the pipes continuously, even while outputs block, and forwards whole lines to descriptor OUTPUT and to the log
file. Each output has a thread and a bounded queue. While an output is blocked, its oldest lines are dropped, and
replaced by their number. After the node's end the rest is written, with the traceback that a hanging node has left in
the memory file TRACEBACK (`watchdog`).

Another thread sends the node's last words to its vehicle, by the module at the path SENDER, `net.last_words_sender`.

It imports only modules that are built into Python, and no site-packages: every node has such a process, which must be
small and start fast.
"""

import _thread
import os
import sys
import time

TYPE_CHECKING = False  # importing typing would double the memory of the process
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: Capacity of an output's queue, bytes. Beyond it the oldest lines are dropped.
QUEUE_LIMIT = 1024 * 1024
#: Length of an incomplete line, bytes, beyond which it is forwarded.
LINE_LIMIT = 16 * 1024
#: Bytes per read and write.
PIECE = 64 * 1024
#: Size at which the log file ends, bytes.
FILE_LIMIT = 16_000_000
#: How long an output may be blocked after the node's end before the rest is dropped.
PATIENCE_S = 10.0
_SHORTEST_LOOK_S, _LONGEST_LOOK_S = 0.001, 0.05


class Sink:
    """Output that may block, with a writing thread and a bounded queue of the newest lines. Thread-safe."""

    def __init__(
        self, open_output: "Callable[[], int]", on_failure: "Callable[[OSError], None]", limit: int = sys.maxsize
    ) -> None:
        """Start the thread.

        Args:
            open_output: opens the output before the first write, and returns its descriptor.
            on_failure: callback, once, in the thread, if the output can't be opened or was closed at its other end.
            limit: number of bytes after which the output ends.
        """
        self._limit = limit
        self._open, self._on_failure = open_output, on_failure
        self._blocks: list[bytes] = []
        self._size = self._in_hand = self._dropped = 0  # queued bytes, bytes being written, lines
        self._taken = 0  # bytes written so far
        self._is_broken = False
        self._changing = _thread.allocate_lock()
        self._is_empty = _thread.allocate_lock()  # locked while there is nothing to write
        self._is_empty.acquire()
        _thread.start_new_thread(self._run, ())

    def put(self, lines: bytes) -> None:
        """Queue whole lines, without waiting for the output."""
        with self._changing:
            if self._is_broken:
                return
            self._blocks.append(lines)
            self._size += len(lines)
            while self._size > QUEUE_LIMIT and len(self._blocks) > 1:
                oldest = self._blocks.pop(0)
                self._size -= len(oldest)
                self._dropped += oldest.count(b"\n")
            if self._is_empty.locked():
                self._is_empty.release()

    def finish(self, patience_s: float) -> None:
        """Wait until everything is written, or until the output has been blocked for `patience_s`."""
        taken, left_s, look_s = self._taken, patience_s, _SHORTEST_LOOK_S
        while (self._size or self._in_hand) and left_s > 0:
            time.sleep(look_s)
            left_s -= look_s
            look_s = min(2 * look_s, _LONGEST_LOOK_S)
            if taken != self._taken:
                taken, left_s = self._taken, patience_s

    def _run(self) -> None:
        failure = None
        try:
            descriptor = -1
            while self._taken < self._limit:
                self._is_empty.acquire()
                if descriptor < 0:
                    descriptor = self._open()
                self._write(descriptor, self._take()[: self._limit - self._taken])
                self._in_hand = 0
            os.write(descriptor, b"\n[log] This file ends here, at its maximum size.\n")
        except OSError as error:
            failure = error
        with self._changing:
            self._is_broken = True
            self._blocks.clear()
            self._size = self._in_hand = 0
        if failure:
            self._on_failure(failure)

    def _take(self) -> bytes:
        with self._changing:
            blocks, self._blocks = self._blocks, []
            self._in_hand, self._size = self._size, 0
            dropped, self._dropped = self._dropped, 0
        if dropped:
            blocks.insert(0, b"[log] Dropped %d lines, as this output was blocked.\n" % dropped)
        return b"".join(blocks)

    def _write(self, descriptor: int, data: bytes) -> None:
        left = memoryview(data)
        while left:
            try:
                written = os.write(descriptor, left[:PIECE])
            except BlockingIOError:  # another process that shares it has made it non-blocking
                time.sleep(_LONGEST_LOOK_S)
                continue
            left = left[written:]
            self._taken += written


def copy(pipe: int, sinks: "Sequence[Sink]") -> None:
    """Forward whole lines until the pipe's end."""
    partial = b""
    while data := os.read(pipe, PIECE):
        lines, newline, partial = (partial + data).rpartition(b"\n")
        if len(partial) > LINE_LIMIT:
            newline, partial = newline + partial, b""
        if newline:
            for sink in sinks:
                sink.put(lines + newline)
    if partial:
        for sink in sinks:
            sink.put(partial)


def _copied(pipe: int, sinks: "Sequence[Sink]") -> "_thread.LockType":
    """Run `copy` in a thread. Return a lock that is released at the pipe's end."""
    ended = _thread.allocate_lock()
    ended.acquire()

    def run() -> None:
        copy(pipe, sinks)
        ended.release()

    _thread.start_new_thread(run, ())
    return ended


def open_log_file(path: str) -> int:
    """Open the log file, and create its folder. Raises OSError."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)


def _start_sender(control: int, memory: int, path: str) -> "_thread.LockType":
    """Run the sender of last words in a thread. Return a lock that is released once it has finished."""
    sys.path.insert(0, os.path.dirname(path))
    from last_words_sender import Sender

    sys.path.pop(0)
    ended = _thread.allocate_lock()
    ended.acquire()

    def run() -> None:
        try:
            Sender(control, memory).run()
        finally:
            ended.release()

    _thread.start_new_thread(run, ())
    return ended


def main(traceback: int, log_file: str, last_words: "tuple[int, int, str]", copies: "Sequence[str]") -> None:
    """Copy until the node has ended."""
    saying = _start_sender(*last_words)
    pairs = [tuple(map(int, each.split(":"))) for each in copies]
    outputs = [Sink(lambda output=output: output, lambda _: None) for _, output in pairs]  # type: ignore[misc]
    errors = outputs[-1]  # a single pipe serves both

    def explain(error: OSError) -> None:
        reason = f"[log] No log file, as {error.filename or log_file} can't be written: {error.strerror}."
        errors.put(f"{reason} Set ROS_LOG_DIR to a folder that can.\n".encode())

    files = [Sink(lambda: open_log_file(log_file), explain, FILE_LIMIT)] if log_file else []
    copying = [_copied(pipe, [output, *files]) for (pipe, _), output in zip(pairs, outputs)]  # noqa: B905 - as many
    for ended in copying:
        ended.acquire()
    if size := os.fstat(traceback).st_size:
        for sink in (errors, *files):
            sink.put(os.pread(traceback, size, 0))
    for output in outputs:
        output.finish(PATIENCE_S)
    os.closerange(1, 3)  # their readers need not wait for the disk
    for sink in files:
        sink.finish(PATIENCE_S)
    saying.acquire()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], (int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]), sys.argv[6:])
    os._exit(0)  # even if a thread is blocked
