# SPDX-License-Identifier: Apache-2.0
"""WireLog: the bytes of every connection, with directions and times, in an MCAP file. See docs/bags.md.

The log creates the taps of a node's links, which copy the bytes that they receive and send. A separate thread writes
the file. A disk that is slow, full or missing therefore blocks no link: it ends the log, with a sentence.
"""

import json
import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, Any, NamedTuple

from drone_bridge.net.connector import RECEIVED, SENT, LinkError, Tap
from drone_bridge.net.disk_space import DEFAULT_MB, growth_error, shortage

try:
    from mcap.writer import CompressionType, IndexType, Writer
except ImportError:  # rosdep has no key for it
    Writer = None  # type: ignore[assignment,misc]

#: Name of the metadata record about the node.
FACTS = "drone_bridge.wire_log"
#: Topic of the connections: number, transport and addresses of each, as JSON, before its first bytes. The topics
#: RECEIVED and SENT hold the bytes, with that number in place of MCAP's sequence number.
CONNECTIONS = "connections"
#: Common name of the peers of a UDP port beyond MAX_PEERS.
OTHERS = "others"
MAX_PEERS = 64

FLUSH_PERIOD_S = 0.75
#: Size limit of all files of one node.
TOTAL_BYTES = 1 << 30
#: Limit of the bytes that wait for the disk.
QUEUED_BYTES = 32 << 20
#: Queue size that wakes the thread before the period has passed.
_WAKING_BYTES = 1 << 20
_ENTRY_BYTES = 256  # overhead of each queued message
STOP_TIMEOUT_S = 2.0


class _QueuedEntry(NamedTuple):
    """Queued entry of the log."""

    topic: str
    connection: int
    time_ns: int
    data: bytes


class WireLog:
    """Log of one node, from its activation to its deactivation. The log and its taps are thread-safe."""

    def __init__(
        self,
        folder: Path,
        name: str,
        facts: Mapping[str, str],
        on_end: Callable[[str], None],
        total_bytes: int = TOTAL_BYTES,
        *,
        min_free_mb: float = DEFAULT_MB,
    ) -> None:
        """Create a file in `folder`, which is created if necessary.

        Args:
            folder: the folder of the files.
            name: the prefix of their names.
            facts: metadata of the file, see `facts_of`.
            on_end: callback with a sentence if the log ends before it is closed. Called in the log's thread.
            total_bytes: size limit of all files of this name. A file ends at half of it; the oldest ones are removed.
            min_free_mb: see `shortage`.

        Raises:
            LinkError: the package mcap is missing or too old, the folder is not writable, or the disk is full.
        """
        if not hasattr(Writer, "flush"):  # missing, or older than 1.5
            raise LinkError("The wire log needs the Python package mcap, 1.5 or later: pip install mcap.")
        self._most_bytes, self._min_free_mb = total_bytes // 2, min_free_mb
        self._on_end = on_end
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _make_room(folder, name, total_bytes - self._most_bytes)
            if problem := shortage(folder, min_free_mb):
                raise LinkError(f"The wire log can't be written to {folder}: {problem}")
            self._path = folder / f"{name}-{datetime.now(timezone.utc):%Y%m%dT%H%M%S.%f}.mcap"
            self._file = self._path.open("xb")
            self._writer = _writer(self._file)
            self._writer.start(library="drone_bridge wire log")
            self._writer.add_metadata(FACTS, dict(facts))
            self._channels = {
                topic: self._writer.register_channel(topic, encoding, 0)
                for topic, encoding in ((CONNECTIONS, "json"), (RECEIVED, ""), (SENT, ""))
            }
            self._writer.flush()
        except OSError as error:
            raise LinkError(f"The wire log can't be written to {folder}: {error.strerror}.") from error
        self._lock = threading.Lock()
        self._queue: list[_QueuedEntry] = []
        self._queued_bytes = 0  # including those being written
        self._connections = 0  # number of the last one
        self._is_over = False
        self._reason = ""  # why the log ended before it was closed
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
                    self._connections += 1
                    numbers[who] = self._connections
                    said = {"number": numbers[who], "transport": transport, "own": own, "peer": who}
                    self._put(CONNECTIONS, numbers[who], json.dumps(said).encode())
                self._put(direction, numbers[who], bytes(data))

        return tap

    def close(self) -> bool:
        """Write the queue and end the file. Return True if that took less than STOP_TIMEOUT_S."""
        with self._lock:
            self._is_over = True
        self._wakeup.set()
        self._thread.join(STOP_TIMEOUT_S)
        return not self._thread.is_alive()

    def _put(self, topic: str, connection: int, data: bytes) -> None:
        """Queue an entry. The caller holds the lock."""
        if self._is_over:
            return
        self._queue.append(_QueuedEntry(topic, connection, time.time_ns(), data))
        self._queued_bytes += _ENTRY_BYTES + len(data)
        if self._queued_bytes > QUEUED_BYTES:
            self._end(f"The disk is too slow: {self._queued_bytes >> 20} MiB wait for it.")
        if self._queued_bytes > _WAKING_BYTES:
            self._wakeup.set()

    def _end(self, reason: str) -> None:
        self._is_over, self._reason = True, reason

    # For the writer's thread.

    def _run(self) -> None:
        try:
            with self._file:
                is_over = False
                while not is_over:
                    self._wakeup.wait(FLUSH_PERIOD_S)
                    self._wakeup.clear()
                    with self._lock:
                        is_over, entries, size = self._is_over, self._queue, self._queued_bytes
                        self._queue = []
                    is_over |= not self._write(entries)
                    with self._lock:
                        self._queued_bytes -= size
                self._writer.finish()
        except OSError as error:
            with self._lock:
                self._end(f"Nothing more can be written: {error.strerror}.")
        if self._reason:
            self._on_end(f"The wire log {self._path} ends here. {self._reason}")

    def _write(self, entries: list[_QueuedEntry]) -> bool:
        """Write entries. Return False once the file has reached its size limit, or the disk is full. Raises OSError."""
        size = sum(len(entry.data) for entry in entries)
        error = growth_error(self._file, size + _WAKING_BYTES)
        if problem := f"{error.strerror}." if error else shortage(self._path.parent, self._min_free_mb, size):
            with self._lock:
                self._end(problem)
            return False
        for entry in entries:
            if self._file.tell() >= self._most_bytes:
                with self._lock:
                    self._end(f"It has {self._most_bytes >> 20} MiB, half of the limit of a node.")
                return False
            self._writer.add_message(
                self._channels[entry.topic], entry.time_ns, entry.data, entry.time_ns, entry.connection
            )
        self._writer.flush()
        return True


def _writer(file: IO[bytes]) -> Any:
    """Return an MCAP writer. The package has no type annotations."""
    # No index: no reader seeks in it, and a file without an end stays as readable.
    return Writer(file, compression=CompressionType.LZ4, index_types=IndexType.NONE, use_statistics=False)


def _make_room(folder: Path, name: str, most_bytes: int) -> None:
    """Remove the oldest files of a name until the rest occupy `most_bytes` at most. Raises OSError."""
    kept_bytes = 0
    for path in sorted(folder.glob(f"{name}-*.mcap"), reverse=True):  # the names contain the times
        kept_bytes += path.stat().st_size
        if kept_bytes > most_bytes:
            path.unlink()


def facts_of(protocol: str, side: str, name: str, parameters: Mapping[str, object]) -> dict[str, str]:
    """Return the metadata of a file: the protocol, the node's side and name, and its parameters as JSON.

    `side` is "operator" for the end that steers and "vehicle" for the end that is steered.
    """
    return {"protocol": protocol, "side": side, "name": name, "parameters": json.dumps(dict(parameters))}
