# SPDX-License-Identifier: Apache-2.0
"""WireLog: the bytes of every connection, with directions and times: the last minute in memory, and MCAP files.

The log creates the taps of a node's links, which copy the bytes that they receive and send. It keeps the last minute,
saves it on request, and writes all to a file if a folder is given. A separate thread writes. A disk that is slow, full
or missing therefore blocks no link: it ends the file, with a sentence.
"""

import json
import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import ClassVar

from drone_bridge.net.connector import LinkError, Tap
from drone_bridge.net.disk_space import DEFAULT_MB
from drone_bridge.net.wire_log_file import CONNECTIONS, Entry, WireLogFile, make_room
from drone_bridge.wire.outgoing import Secret

#: Common name of the peers of a UDP port beyond MAX_PEERS.
OTHERS = "others"
MAX_PEERS, MAX_CONNECTIONS = 64, 256

FLUSH_PERIOD_S = 0.75
#: Size limit of all files of one node.
TOTAL_BYTES = 1 << 30
#: Limit of the bytes that wait for the disk.
QUEUED_BYTES = 32 << 20
#: Queue size that wakes the thread before the period has passed.
_WAKING_BYTES = 1 << 20
_ENTRY_BYTES = 256  # overhead of each entry
STOP_TIMEOUT_S = 2.0

#: What is kept in memory: so much, for so long, and the beginning of each connection. Above the limit, entries of more
#: than LARGE_BYTES go first, the oldest before the others: pictures. Larger pieces of buffers are not copied at all.
MINUTE_S, MINUTE_BYTES, HEAD_BYTES = 60, 30 << 20, 4096
LARGE_BYTES, MAX_COPIED_BYTES = 1024, 32 << 10
#: Number of files of saved minutes. The next one replaces the oldest.
MAX_MINUTES = 20
#: Delay of saving: the neutral command, and what follows, belong to it.
SAVE_AFTER_S = 1.0
#: Entries that are written at a time, and the pause after them, s, in which the links' threads run.
_BATCH, _PAUSE_S = 200, 0.005
_NANOSECONDS = 1_000_000_000


def minutes_folder() -> Path:
    """Return the folder of saved minutes. Tests have one of their own."""
    return Path(os.environ.get("DRONE_BRIDGE_WIRE") or "~/drone_bridge_wire").expanduser()


class _Picture(bytes):
    """Bytes from a session's own memory, in which no message begins or ends."""

    __slots__ = ()


@dataclass(slots=True)
class _Connection:
    """Connection, with its first entries. `gaps`: number of bytes after these that are no longer kept."""

    begun: Entry
    used_ns: int
    head: list[Entry] = field(default_factory=list)
    head_left: int = HEAD_BYTES
    gaps: dict[str, int] = field(default_factory=dict)


class WireLog:
    """Log of one node, from its activation to its deactivation. The log and its taps are thread-safe."""

    #: Steady time of the last saved minute, s, by the node's name.
    _saved: ClassVar[dict[str, float]] = {}

    def __init__(
        self,
        folder: Path | None,
        name: str,
        facts: Mapping[str, str],
        on_end: Callable[[str], None],
        total_bytes: int = TOTAL_BYTES,
        *,
        min_free_mb: float = DEFAULT_MB,
        on_saved: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        """Create a file in `folder`, which is created if necessary.

        Args:
            folder: the folder of the files; None: no file.
            name: the prefix of their names.
            facts: metadata of the file, see `facts_of`.
            on_end: callback with a sentence if a file ends before it is closed, or a minute is not saved. Called in the
                log's thread.
            total_bytes: size limit of all files of this name. A file ends at half of it; the oldest ones are removed.
            min_free_mb: see `shortage`.
            on_saved: callback with a sentence for each saved minute. Called in the log's thread.

        Raises:
            LinkError: the package mcap is missing or too old, the folder is not writable, or the disk is full.
        """
        self._name, self._facts, self._min_free_mb = name, facts, min_free_mb
        self._most_bytes, self._on_end, self._on_saved = total_bytes // 2, on_end, on_saved
        self._file = self._opened(folder, f"{name}-*.mcap", total_bytes - self._most_bytes) if folder else None
        self._lock = threading.Lock()
        self._queue: list[Entry] = []
        self._queued_bytes = 0  # including those being written
        self._connections: dict[int, _Connection] = {}
        self._number = 0  # of the last connection
        self._kept: deque[Entry] = deque()
        self._large: deque[Entry] = deque()
        self._kept_bytes = 0
        #: Texts that are not kept in any data.
        self.secrets: tuple[bytes, ...] = ()
        self._reasons: list[str] = []  # of the minute that is saved next
        self._save_at_s = math.inf
        self._has_news = False  # since the last saved minute
        self._is_over = False
        self._reason = ""  # why the file ends before it is closed
        self._wakeup = threading.Event()
        self._thread = threading.Thread(target=self._run, name="wire log", daemon=True)
        self._thread.start()

    def __call__(self, transport: str, own: str, peer: str) -> Tap:
        """Return the tap of a connection between two addresses. `peer` is empty for a port with several peers."""
        numbers: dict[str, int] = {}  # by peer

        def tap(direction: str, data: bytes | memoryview, who: str = peer) -> None:
            with self._lock:
                if who not in numbers and len(numbers) >= MAX_PEERS:
                    who = OTHERS
                if who not in numbers:
                    numbers[who] = self._number = self._number + 1
                    said = {"number": self._number, "transport": transport, "own": own, "peer": who}
                    self._begin(json.dumps(said).encode())
                self._put(direction, numbers[who], data)

        return tap

    def save(self, reason: str) -> str:
        """Save the last minute soon, but one per minute. Return what is done, a sentence, or "" if nothing is new."""
        with self._lock:
            if not self._has_news or self._is_over:
                return ""
            now_s = time.monotonic()
            self._save_at_s = max(now_s + SAVE_AFTER_S, self._saved.get(self._name, -math.inf) + MINUTE_S)
            if reason not in self._reasons:
                self._reasons.append(reason)
            self._wakeup.set()
            return f"The last minute of the wire is saved to {minutes_folder()} in {self._save_at_s - now_s:.0f} s."

    def close(self) -> bool:
        """Write what is to be written, and end. Return True if that took less than STOP_TIMEOUT_S."""
        with self._lock:
            self._is_over = True
        self._wakeup.set()
        self._thread.join(STOP_TIMEOUT_S)
        return not self._thread.is_alive()

    # For the taps, which hold the lock.

    def _begin(self, said: bytes) -> None:
        """Begin the connection of the last number."""
        begun = time.monotonic_ns(), time.time_ns(), CONNECTIONS, self._number, said
        while len(self._connections) >= MAX_CONNECTIONS:
            del self._connections[min(self._connections, key=lambda each: self._connections[each].used_ns)]
        self._connections[self._number] = _Connection(begun, begun[0])
        if self._file:
            self._queue_up(begun, len(said))

    def _put(self, direction: str, number: int, data: bytes | memoryview) -> None:
        """Keep data, and queue them for the file."""
        if self._is_over or not (connection := self._connections.get(number)):
            return
        size, kept = len(data), self._to_keep(data)
        entry = time.monotonic_ns(), time.time_ns(), direction, number, kept
        self._has_news, connection.used_ns = True, entry[0]
        if self._file:
            self._queue_up(entry, size)
        cost = _ENTRY_BYTES + (len(kept) if isinstance(kept, bytes) else 0)
        if (left := connection.head_left) > 0:
            connection.head_left = left - cost
            if left >= cost:
                connection.head.append(entry)
                return
        self._kept_bytes += cost
        (self._large if cost > _ENTRY_BYTES + LARGE_BYTES else self._kept).append(entry)
        for entries in (self._kept, self._large):
            while entries and entries[0][0] < entry[0] - MINUTE_S * _NANOSECONDS:
                self._forget(entries)
        while self._kept_bytes > MINUTE_BYTES:
            if not self._large:
                self._forget(self._kept)
                continue
            first_ns, time_ns, direction, number, large = self._large.popleft()
            assert isinstance(large, bytes)
            self._kept_bytes -= len(large)
            size = len(large) if isinstance(large, _Picture) else -len(large)
            self._kept.append((first_ns, time_ns, direction, number, size))

    def _to_keep(self, data: bytes | memoryview) -> bytes | int:
        """Return data to keep, or their number."""
        if type(data) is not bytes:
            source = getattr(data, "obj", data)
            if isinstance(source, Secret):
                return -len(data)
            if not self._file and len(data) > MAX_COPIED_BYTES:
                return len(data)
            data = bytes(data) if isinstance(source, bytes) else _Picture(data)
        return -len(data) if self.secrets and any(each in data for each in self.secrets) else data

    def _forget(self, entries: deque[Entry]) -> None:
        _, _, direction, number, data = entries.popleft()
        size = len(data) if isinstance(data, bytes) else abs(data)
        self._kept_bytes -= _ENTRY_BYTES + (size if isinstance(data, bytes) else 0)
        if connection := self._connections.get(number):
            connection.gaps[direction] = connection.gaps.get(direction, 0) + size

    def _queue_up(self, entry: Entry, size: int) -> None:
        if self._reason:
            return
        self._queue.append(entry)
        self._queued_bytes += _ENTRY_BYTES + size
        if self._queued_bytes > QUEUED_BYTES:
            self._reason = f"The disk is too slow: {self._queued_bytes >> 20} MiB wait for it."
        if self._queued_bytes > _WAKING_BYTES:
            self._wakeup.set()

    # For the log's thread.

    def _run(self) -> None:
        is_over = False
        while not is_over:
            left_s = max(0.0, self._save_at_s - time.monotonic())
            self._wakeup.wait(min(left_s, FLUSH_PERIOD_S if self._file else 1e6))
            self._wakeup.clear()
            is_over = self._flush()
            if self._reasons and time.monotonic() >= self._save_at_s - SAVE_AFTER_S * is_over:
                self._save()

    def _flush(self) -> bool:
        """Write the queue to the file. Return whether the log is over."""
        with self._lock:
            is_over, entries, size = self._is_over, self._queue, self._queued_bytes
            self._queue = []
        if self._file:
            self._write(self._file, entries, is_over=is_over)
        with self._lock:
            self._queued_bytes -= size
        return is_over

    def _write(self, file: WireLogFile, entries: list[Entry], *, is_over: bool) -> None:
        """Write entries, and end the file if the log is over, or nothing more can be written."""
        try:
            self._reason = file.write(entries, self._most_bytes) or self._reason
            if not (self._reason or is_over):
                return
            file.close()
        except OSError as error:
            self._reason = f"Nothing more can be written: {error.strerror}."
            file.close(is_whole=False)
        if self._reason:
            self._on_end(f"The wire log {file.path} ends here. {self._reason}")
        with self._lock:
            self._file, self._queue = None, []

    def _save(self) -> None:
        """Save the last minute."""
        with self._lock:  # for as short as possible: taps wait for it
            self._saved[self._name] = time.monotonic()
            reasons, self._reasons, self._save_at_s, self._has_news = ", ".join(self._reasons), [], math.inf, False
            kept, connections = [*self._kept, *self._large], self._connections.copy()
        entries = _entries_of(connections, kept)
        try:
            file = self._opened(minutes_folder(), "*.mcap", math.inf, MAX_MINUTES - 1)
            for begin in range(0, len(entries), _BATCH):
                if problem := file.write(entries[begin : begin + _BATCH], 2 * MINUTE_BYTES):
                    file.path.unlink()
                    raise LinkError(problem)
                if not self._flush():
                    time.sleep(_PAUSE_S)
            file.close()
        except (OSError, LinkError) as error:
            self._on_end(f"The last minute of the wire ({reasons}) was not saved. {error}")
        else:
            self._on_saved(f"The last minute of the wire ({reasons}) is in {file.path}: attach it to a fault report.")

    def _opened(self, folder: Path, pattern: str, most_bytes: float, most_files: float = math.inf) -> WireLogFile:
        """Create a file in a folder, after the oldest ones were removed. Raises LinkError."""
        try:
            make_room(folder, pattern, most_bytes, most_files)
        except OSError as error:
            raise LinkError(f"The wire log can't be written to {folder}: {error.strerror}.") from error
        return WireLogFile(folder, self._name, self._facts, self._min_free_mb)


def _entries_of(connections: Mapping[int, _Connection], kept: list[Entry]) -> list[Entry]:
    """Return what is kept of the connections of the last minute, in the order of its times."""
    newest_ns = max(each.used_ns for each in connections.values())
    found: list[Entry] = []
    for number, each in connections.items():
        if each.used_ns >= newest_ns - MINUTE_S * _NANOSECONDS:
            found += [each.begun, *each.head]
            found += [(*found[-1][:2], direction, number, -size) for direction, size in each.gaps.copy().items()]
    return sorted([*found, *(entry for entry in kept if entry[3] in connections)], key=itemgetter(0))


def facts_of(protocol: str, side: str, name: str, parameters: Mapping[str, object]) -> dict[str, str]:
    """Return the metadata of a file: the protocol, the node's side and name, and its parameters as JSON.

    `side` is "operator" for the end that steers and "vehicle" for the end that is steered.
    """
    return {"protocol": protocol, "side": side, "name": name, "parameters": json.dumps(dict(parameters))}
