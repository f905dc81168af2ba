# SPDX-License-Identifier: Apache-2.0
"""Bag: writer of a bag in the format of `ros2 bag`."""

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

from drone_bridge.tools.interfaces import InterfaceText
from drone_bridge.tools.recording.settings import free_path

# Version 9 has names for QoS values, which Humble can't read. All distributions read version 8.
METADATA_VERSION = 8
LIBRARY = "drone_bridge recorder"
MIB = 2**20


class BagError(Exception):
    """Failure to write a bag. The text names the reason and the state of the bag."""


@dataclass(slots=True, eq=False)
class Topic:
    """Topic of a bag."""

    name: str
    type_name: str
    """package/msg/Name"""
    definition: InterfaceText
    type_hash: str
    offers: Sequence[QoSProfile] = ()
    received: int = 0
    lost: int = 0
    """Number of published messages that the middleware has lost"""
    newest: dict[bytes, int] = field(default_factory=dict, repr=False)
    """Sequence number of the newest received message, by publisher"""
    channel: int = field(default=0, repr=False)
    """ID of its channel in the file, from 1; 0 before it is added"""


class Bag:
    """Writer of <path>/metadata.yaml and <path>/<name>.mcap. Not thread-safe."""

    def __init__(self, path: Path, *, compress: bool = False) -> None:
        """Create the directory and the file in it. If the path exists, see `free_path`.

        Raises:
            BagError: nothing can be written there.
        """
        self._topics: list[Topic] = []
        self._schemas: dict[str, int] = {}
        self._counts: Counter[Topic] = Counter()
        self._start_ns = self._stop_ns = 0
        try:
            self.path = _make_folder(path)
        except OSError as error:
            raise BagError(f"The bag '{path}' can't be created: {_reason(error, path)}.") from None
        try:
            self._file_path = self.path / f"{self.path.name}.mcap"
            self._file = self._file_path.open("xb")
            self._writer: Any = Writer(  # its methods are untyped
                self._file,
                compression=CompressionType.ZSTD if compress else CompressionType.NONE,
                enable_crcs=False,
            )
            self._writer.start(profile="ros2", library=LIBRARY)
            self._file.flush()
        except OSError as error:
            self._close_file()
            shutil.rmtree(self.path, ignore_errors=True)
            raise BagError(f"The bag '{path}' can't be created: {_reason(error, path)}.") from None

    @property
    def message_count(self) -> int:
        """Number of written messages."""
        return self._counts.total()

    def count(self, topic: Topic) -> int:
        """Return the number of written messages of a topic."""
        return self._counts[topic]

    def add(self, topic: Topic) -> None:
        """Add a topic, so that it is listed without messages, too. write() does this itself."""
        if topic.type_name not in self._schemas:
            definition = topic.definition
            schema = self._writer.register_schema(topic.type_name, definition.encoding, definition.text.encode())
            self._schemas[topic.type_name] = schema
        facts = {"offered_qos_profiles": _qos_text(topic.offers), "topic_type_hash": topic.type_hash}
        topic.channel = self._writer.register_channel(topic.name, "cdr", self._schemas[topic.type_name], facts)
        self._topics.append(topic)

    def write(self, topic: Topic, log_ns: int, publish_ns: int, data: bytes) -> None:
        """Write a serialized message (CDR with its header), with two times in ns since the epoch.

        Raises:
            OSError: the disk is full. The bag can not be written any further.
        """
        if not topic.channel:
            self.add(topic)
        self._writer.add_message(topic.channel, log_ns, data, publish_ns)
        self._start_ns = min(log_ns, self._start_ns) if self._counts else log_ns
        self._stop_ns = max(log_ns, self._stop_ns)
        self._counts[topic] += 1

    def flush(self) -> None:
        """Flush to the disk. Raises OSError as write() does."""
        self._writer.flush()

    def close(self) -> None:
        """Write pending data, index and metadata.

        Raises:
            BagError: the disk is full. Its text has the recover command.
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

    def abandon(self, failure: OSError) -> BagError:
        """Close the file without an end after a disk error. Return the error with the recover command."""
        self._close_file()
        (self.path / "metadata.yaml").unlink(missing_ok=True)
        return BagError(
            f"Writing the bag '{self.path}' failed: {_reason(failure, self.path)}. "
            f"'drone-bridge recover {self._file_path} <new file>' recovers the intact part."
        )

    def _close_file(self) -> None:
        with suppress(OSError, AttributeError):  # not opened yet, or still no room on the disk
            self._file.close()

    def _information(self) -> dict[str, Any]:
        """Return the metadata for rosbag2."""
        span = {
            "starting_time": {"nanoseconds_since_epoch": self._start_ns},
            "duration": {"nanoseconds": self._stop_ns - self._start_ns},
            "message_count": self.message_count,
        }
        return {
            "version": METADATA_VERSION,
            "storage_identifier": "mcap",
            "relative_file_paths": [self._file_path.name],
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
            "files": [{"path": self._file_path.name, **span}],
            "custom_data": None,
            "ros_distro": os.environ.get("ROS_DISTRO", "unknown"),
        }


def _make_folder(path: Path) -> Path:
    """Create a folder at a path, or at the next free one. Return it. Raises OSError."""
    while True:
        folder = free_path(path)
        with suppress(FileExistsError):  # another recorder has just created it
            folder.mkdir(parents=True)
            return folder


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
