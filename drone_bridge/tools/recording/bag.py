# SPDX-License-Identifier: Apache-2.0
"""A bag on disk, as `ros2 bag` reads it, that stays readable when the disk fills up."""

import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from rosbags.interfaces import Connection, Qos
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer

from drone_bridge.tools.recording.definitions import MessageDefinition
from drone_bridge.tools.recording.mcap_storage import McapStorage

# Version 9 writes QoS with names, which Humble can't read; 8 is read by all.
METADATA_VERSION: Literal[8] = 8
MIB = 2**20


class BagError(Exception):
    """The bag can't be written; the text says why, and what became of it."""


@dataclass(slots=True, eq=False)
class Topic:
    """One topic of a bag."""

    name: str
    definition: MessageDefinition
    offered_qos: Sequence[Qos] = ()
    received: int = 0
    lost: int = 0
    """Messages that the middleware says it lost before they were received."""
    connection: Connection | None = field(default=None, repr=False)


class _Writer(Writer):
    STORAGE_PLUGINS = {StoragePlugin.MCAP: McapStorage}  # noqa: RUF012 (as rosbags has it)


class Bag:
    """Writes <path>/metadata.yaml and <path>/<name>.mcap. Not for several threads at once."""

    def __init__(self, path: Path, *, compress: bool = False) -> None:
        """Create the directory and the file in it.

        Raises:
            BagError: the path exists, or nothing can be written there.
        """
        self.path = path
        if path.exists():
            raise BagError(f"The bag '{path}' exists already; choose another name.")
        self._writer = _Writer(path, version=METADATA_VERSION, storage_plugin=StoragePlugin.MCAP)
        if compress:
            self._writer.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)
        try:
            self._writer.open()
        except OSError as error:
            shutil.rmtree(path, ignore_errors=True)
            raise BagError(f"The bag '{path}' can't be created: {_reason(error, path)}.") from None
        storage = self._writer.storage
        assert isinstance(storage, McapStorage)
        self._storage = storage
        self._failure: OSError | None = None

    @property
    def message_count(self) -> int:
        """How many messages are in the bag; what is not on the disk yet does not count."""
        return sum(self._storage.channel_stats.values())

    def count(self, topic: Topic) -> int:
        """Return how many messages of a topic are in the bag, counted as in message_count."""
        return self._storage.channel_stats.get(topic.connection.id, 0) if topic.connection else 0

    def add(self, topic: Topic) -> Connection:
        """Add a topic, so that it is listed. write() does this by itself."""
        definition = topic.definition
        topic.connection = self._writer.add_connection(
            topic.name,
            definition.type_name,
            msgdef=definition.text,
            rihs01=definition.type_hash,
            offered_qos_profiles=topic.offered_qos,
        )
        return topic.connection

    def write(self, topic: Topic, log_ns: int, publish_ns: int, data: bytes) -> None:
        """Write one serialized message (CDR with its header), with two times in ns since the epoch.

        Raises:
            OSError: no room on the disk. Nothing more can be written then; close() saves what is there.
        """
        connection = topic.connection or self.add(topic)
        try:
            self._storage.write_message(connection, log_ns, publish_ns, data)
        except OSError as error:
            self._failure = error
            raise

    def flush(self) -> None:
        """Put what was written so far on the disk. Raises OSError as write() does."""
        try:
            self._storage.close_chunk()
        except OSError as error:
            self._failure = error
            raise

    def close(self) -> None:
        """Write what is pending, index and metadata.

        Where there is no room for them, the last messages are given up until there is.

        Raises:
            BagError: the disk was full, now or earlier. Says what became of the bag.
        """
        if self._failure is None:
            with suppress(OSError):
                self.flush()
        saved = self._save()
        if self._failure is None:
            return
        if saved:
            outcome = f"The bag ends there; it is closed and readable, with {self.message_count} messages."
        else:
            shutil.rmtree(self.path, ignore_errors=True)
            outcome = "Nothing could be saved, and the bag is removed."
        raise BagError(f"Writing the bag '{self.path}' failed: {_reason(self._failure, self.path)}. {outcome}")

    def _save(self) -> bool:
        """Write index and metadata, giving up chunks for them. Returns False when not even an empty bag fits."""
        while True:
            # The writer's own book-keeping knows nothing of chunks that were lost or given up.
            self._writer.counts = dict(self._storage.channel_stats)
            self._writer.min_timestamp = self._storage.message_start_time
            self._writer.max_timestamp = self._storage.message_end_time
            self._writer.storage = self._storage
            try:
                self._writer.close()
            except OSError as error:
                self._failure = self._failure or error
                self._writer.metapath.with_suffix(".yaml.tmp").unlink(missing_ok=True)
            else:
                return True
            if not self._storage.take_back_chunk():
                return False


def _reason(error: OSError, path: Path) -> str:
    existing = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    free = shutil.disk_usage(existing).free
    return f"{error.strerror or error} ({free / MIB:.0f} MiB free now)"
