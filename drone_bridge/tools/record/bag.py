# SPDX-License-Identifier: Apache-2.0
"""BagWriter: writer of a bag in the format of `ros2 bag`."""

import os
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from mcap.writer import CompressionType, Writer
from rclpy.duration import Duration
from rclpy.qos import QoSProfile

from drone_bridge.net.disk_space import DEFAULT_MB, growth_error, shortage
from drone_bridge.tools.record.settings import free_path
from drone_bridge.tools.shared.interfaces import ENCODING

# Version 9 has names for QoS values, which Humble can't read. All distributions read version 8.
METADATA_VERSION = 8
LIBRARY = "drone_bridge recorder"
MIB = 2**20
#: Free space for the current chunk, what follows until the next check, and the index.
RESERVED_BYTES = 3 * MIB


class BagWriteError(Exception):
    """Failure to write a bag. The text names the reason and the state of the bag."""


@dataclass(slots=True, eq=False)
class WrittenTopic:
    """Topic of a bag."""

    name: str
    type_name: str
    """package/msg/Name"""
    definition: str
    type_hash: str
    offers: Sequence[QoSProfile] = ()
    received: int = 0
    channel: int = field(default=0, repr=False)
    """ID of its channel in the file, from 1; 0 before it is added"""


class BagWriter:
    """Writer of <path>/metadata.yaml and <path>/<name>.mcap. Not thread-safe."""

    def __init__(self, path: Path, *, compress: bool = False, min_free_mb: float = DEFAULT_MB) -> None:
        """Create the directory and the file in it. If the path exists, see `free_path`. `min_free_mb`: see `shortage`.

        Raises:
            BagWriteError: nothing can be written there.
        """
        self._min_free_mb, self._unchecked_bytes = min_free_mb, 0
        self._topics: list[WrittenTopic] = []
        self._schemas: dict[str, int] = {}
        self._counts: Counter[WrittenTopic] = Counter()
        self._times_ns = 0, 0  # of the first and the last message
        try:
            self.path = free_path(path)
            self.path.mkdir(parents=True)
        except OSError as error:
            raise BagWriteError(f"The bag '{path}' can't be created: {_reason(error, path)}.") from None
        if problem := shortage(self.path, min_free_mb, MIB):
            self.path.rmdir()
            raise BagWriteError(f"The bag '{path}' can't be created. {problem}")
        self._file_path = self.path / f"{self.path.name}.mcap"
        try:
            self._file = self._file_path.open("xb")
            compression = CompressionType.ZSTD if compress else CompressionType.NONE
            self._writer: Any = Writer(self._file, compression=compression, enable_crcs=False)  # untyped
            self._writer.start(profile="ros2", library=LIBRARY)
            self._file.flush()
        except OSError as error:
            self._close_file()
            shutil.rmtree(self.path, ignore_errors=True)
            raise BagWriteError(f"The bag '{path}' can't be created: {_reason(error, path)}.") from None

    @property
    def message_count(self) -> int:
        """Number of written messages."""
        return self._counts.total()

    def count(self, topic: WrittenTopic) -> int:
        """Return the number of written messages of a topic."""
        return self._counts[topic]

    def add(self, topic: WrittenTopic) -> None:
        """Add a topic, so that it is listed without messages, too. write() does this itself."""
        self._topics.append(topic)
        if topic.type_name not in self._schemas:
            schema = self._writer.register_schema(topic.type_name, ENCODING, topic.definition.encode())
            self._schemas[topic.type_name] = schema
        facts = {"offered_qos_profiles": _qos_text(topic.offers), "topic_type_hash": topic.type_hash}
        topic.channel = self._writer.register_channel(topic.name, "cdr", self._schemas[topic.type_name], facts)

    def write(self, topic: WrittenTopic, log_ns: int, publish_ns: int, data: bytes) -> None:
        """Write a serialized message (CDR with its header), with two times in ns since the epoch.

        Args:
            topic: topic.
            log_ns: arrival time.
            publish_ns: time of publication.
            data: serialized message.

        Raises:
            BagWriteError: the disk is nearly full. The message was not written, and the bag has to be closed.
            OSError: the disk is full. The bag can not be written any further.
        """
        self._unchecked_bytes += len(data)
        if self._unchecked_bytes >= MIB:
            self._check_space(len(data))
        if not topic.channel:
            self.add(topic)
        self._writer.add_message(topic.channel, log_ns, data, publish_ns)
        first_ns, last_ns = self._times_ns if self._counts else (log_ns, log_ns)
        self._times_ns = min(log_ns, first_ns), max(log_ns, last_ns)
        self._counts[topic] += 1

    def _check_space(self, size: int) -> None:
        """Raise BagWriteError if the disk has too little space for a message of this size."""
        self._unchecked_bytes = 0
        error = growth_error(self._file, size + RESERVED_BYTES)
        if problem := f"{error.strerror}." if error else shortage(self.path, self._min_free_mb, size + MIB):
            raise BagWriteError(f"The recording ends. {problem} The bag '{self.path}' is complete until now.")

    def flush(self) -> None:
        """Flush to the disk. Raises BagWriteError and OSError as write() does."""
        self._check_space(0)
        self._writer.flush()

    def close(self) -> None:
        """Write pending data, index and metadata.

        Raises:
            BagWriteError: the disk is full. Its text has the recover command.
        """
        try:
            (self.path / "metadata.yaml").write_text(
                yaml.safe_dump({"rosbag2_bagfile_information": self._information()})
            )
            self._writer.add_metadata("rosbag2", {"serialized_metadata": yaml.safe_dump(self._information())})
            self._writer.finish()
            self._file.close()
        except OSError as error:
            raise self.abandon(error) from None

    def abandon(self, failure: OSError) -> BagWriteError:
        """Close the file without an end after a disk error. Return the error with the recover command."""
        self._close_file()
        (self.path / "metadata.yaml").unlink(missing_ok=True)
        return BagWriteError(
            f"Writing the bag '{self.path}' failed: {_reason(failure, self.path)}. "
            f"'drone-bridge recover {self._file_path} <new file>' recovers the intact part."
        )

    def _close_file(self) -> None:
        with suppress(OSError, AttributeError):  # not opened yet, or still no room on the disk
            self._file.close()

    def _information(self) -> dict[str, Any]:
        """Return the metadata for rosbag2."""
        (start_ns, stop_ns), name = self._times_ns, self._file_path.name
        span = {
            "starting_time": {"nanoseconds_since_epoch": start_ns},
            "duration": {"nanoseconds": stop_ns - start_ns},
            "message_count": self.message_count,
        }
        return {
            "version": METADATA_VERSION,
            "storage_identifier": "mcap",
            "relative_file_paths": [name],
            **span,
            "topics_with_message_count": [
                {
                    "topic_metadata": {
                        "name": topic.name,
                        "type": topic.type_name,
                        "serialization_format": "cdr",
                        "offered_qos_profiles": _qos_text(topic.offers),
                        "type_description_hash": topic.type_hash,
                    },
                    "message_count": self._counts[topic],
                }
                for topic in self._topics
            ],
            "compression_format": "",
            "compression_mode": "",
            "files": [{"path": name, **span}],
            "custom_data": None,
            "ros_distro": os.environ.get("ROS_DISTRO", "unknown"),
        }


def _qos_text(offers: Iterable[QoSProfile]) -> str:
    """Return the distinct offers in the format of rosbag2, with the numbers of rmw."""
    different: list[dict[str, Any]] = []
    for offer in offers:
        noted = {
            **{name: int(getattr(offer, name)) for name in ("history", "depth", "reliability", "durability")},
            **{name: _time(getattr(offer, name)) for name in ("deadline", "lifespan")},
            "liveliness": int(offer.liveliness),
            "liveliness_lease_duration": _time(offer.liveliness_lease_duration),
            "avoid_ros_namespace_conventions": offer.avoid_ros_namespace_conventions,
        }
        if noted not in different:
            different.append(noted)
    return str(yaml.safe_dump(different, sort_keys=False)) if different else ""


def _time(duration: Duration) -> dict[str, int]:
    seconds, nanoseconds = divmod(duration.nanoseconds, 10**9)
    return {"sec": seconds, "nsec": nanoseconds}


def _reason(error: OSError, path: Path) -> str:
    existing = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    free = shutil.disk_usage(existing).free
    return f"{error.strerror or error} ({free / MIB:.0f} MiB free now)"
