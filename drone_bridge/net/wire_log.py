# SPDX-License-Identifier: Apache-2.0
"""The wire log: the bytes of every connection, with directions and times, in an MCAP file. See docs/bags.md.

It makes the taps of a node's links, which copy what they read and send. A thread of its own writes, so that a disk that
is slow, full or gone ends the log, with a sentence, and holds no link up.
"""

import json
import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, Any, NamedTuple

from drone_bridge.net.connector import RECEIVED, SENT, LinkError, Tap

try:
    from mcap.writer import CompressionType, IndexType, Writer
except ImportError:  # rosdep has no key for it
    Writer = None  # type: ignore[assignment,misc]

#: The name of the metadata record that says whose bytes these are.
FACTS = "drone_bridge.wire_log"
#: The topic of the connections: of each its number, transport and addresses, as JSON, before its first bytes. RECEIVED
#: and SENT have the bytes, with that number in the place of MCAP's sequence number.
CONNECTIONS = "connections"
#: The peer of those at a UDP port who came after MAX_PEERS.
OTHERS = "others"
MAX_PEERS = 64

FLUSH_PERIOD_S = 0.75
#: Of all files of one node.
TOTAL_BYTES = 1 << 30
#: By which a disk may lag behind.
QUEUED_BYTES = 32 << 20
#: After so many, the thread writes before the period is over.
_WAKING_BYTES = 1 << 20
_ENTRY_BYTES = 256  # what waits with each message, beside its bytes
STOP_TIMEOUT_S = 2.0


class _Entry(NamedTuple):
    """What is to be written."""

    topic: str
    connection: int
    time_ns: int
    data: bytes


class WireLog:
    """The log of one node, from one activation to the end of it. It and its taps are thread-safe."""

    def __init__(
        self,
        folder: Path,
        name: str,
        facts: Mapping[str, str],
        on_end: Callable[[str], None],
        total_bytes: int = TOTAL_BYTES,
    ) -> None:
        """Begin a file in `folder`, which is created if necessary.

        Args:
            folder: where the files go.
            name: what their names begin with.
            facts: what the file says of itself, see `facts_of`.
            on_end: gets a sentence when the log ends before it is closed. Called in the log's thread.
            total_bytes: of all files of this name. The file ends at half of it, and the oldest others are removed.

        Raises:
            LinkError: there is no mcap, or the folder can't be written to.
        """
        if not hasattr(Writer, "flush"):  # not there, or from before 1.5
            raise LinkError("The wire log needs the Python package mcap, 1.5 or later: pip install mcap.")
        self._most_bytes = total_bytes // 2
        self._on_end = on_end
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _make_room(folder, name, total_bytes - self._most_bytes)
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
        self._queue: list[_Entry] = []
        self._queued_bytes = 0  # until they are written
        self._connections = 0  # so far
        self._is_over = False
        self._reason = ""  # why it ends before it is closed
        self._wakeup = threading.Event()
        self._thread = threading.Thread(target=self._run, name="wire log", daemon=True)
        self._thread.start()

    def __call__(self, transport: str, own: str, peer: str) -> Tap:
        """Return the tap of a connection between two addresses; `peer` is empty for a port that serves anybody."""
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
        """Write what is queued and end the file; return whether that took less than STOP_TIMEOUT_S."""
        with self._lock:
            self._is_over = True
        self._wakeup.set()
        self._thread.join(STOP_TIMEOUT_S)
        return not self._thread.is_alive()

    def _put(self, topic: str, connection: int, data: bytes) -> None:
        """Queue an entry; with the lock held."""
        if self._is_over:
            return
        self._queue.append(_Entry(topic, connection, time.time_ns(), data))
        self._queued_bytes += _ENTRY_BYTES + len(data)
        if self._queued_bytes > QUEUED_BYTES:
            self._end(f"The disk is too slow: {self._queued_bytes >> 20} MiB wait for it.")
        if self._queued_bytes > _WAKING_BYTES:
            self._wakeup.set()

    def _end(self, reason: str) -> None:
        self._is_over, self._reason = True, reason

    # The writer's thread.

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

    def _write(self, entries: list[_Entry]) -> bool:
        """Write entries; return whether there is room for more. Raises OSError."""
        for entry in entries:
            if self._file.tell() >= self._most_bytes:
                with self._lock:
                    self._end(f"It has {self._most_bytes >> 20} MiB, half of what a node may keep.")
                return False
            self._writer.add_message(
                self._channels[entry.topic], entry.time_ns, entry.data, entry.time_ns, entry.connection
            )
        self._writer.flush()
        return True


def _writer(file: IO[bytes]) -> Any:
    """Return mcap's writer, whose methods have no types."""
    # No index: nobody looks for a time in it, and it is as readable without an end.
    return Writer(file, compression=CompressionType.LZ4, index_types=IndexType.NONE, use_statistics=False)


def _make_room(folder: Path, name: str, most_bytes: int) -> None:
    """Remove the oldest files of a name until they occupy no more than that. Raises OSError."""
    kept_bytes = 0
    for path in sorted(folder.glob(f"{name}-*.mcap"), reverse=True):  # their names are times
        kept_bytes += path.stat().st_size
        if kept_bytes > most_bytes:
            path.unlink()


def facts_of(protocol: str, side: str, name: str, parameters: Mapping[str, object]) -> dict[str, str]:
    """Return what a file says of itself: the protocol, the node's side and name, and its parameters as JSON.

    `side` is "operator" for the end that steers and "vehicle" for the end that is steered.
    """
    return {"protocol": protocol, "side": side, "name": name, "parameters": json.dumps(dict(parameters))}
