# SPDX-License-Identifier: Apache-2.0
"""A bag on disk, as `ros2 bag` reads it."""

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

# Version 9 writes QoS with names, which Humble can't read; 8 is read by all.
METADATA_VERSION = 8
LIBRARY = "drone_bridge recorder"
MIB = 2**20


class BagError(Exception):
    """The bag can't be written; the text says why, and what became of it."""


@dataclass(slots=True, eq=False)
class Topic:
    """One topic of a bag."""

    name: str
    type_name: str
    """package/msg/Name"""
    definition: InterfaceText
    type_hash: str
    offers: Sequence[QoSProfile] = ()
    received: int = 0
    lost: int = 0
    """Messages that were published, and lost by the middleware before they were received."""
    newest: dict[bytes, int] = field(default_factory=dict, repr=False)
    """The number of the newest message received, by publisher."""
    channel: int = field(default=0, repr=False)
    """Its number in the file, from 1; 0 before it is listed there."""


class Bag:
    """Writes <path>/metadata.yaml and <path>/<name>.mcap. Not for several threads at once."""

    def __init__(self, path: Path, *, compress: bool = False) -> None:
        """Create the directory and the file in it.

        Raises:
            BagError: the path exists, or nothing can be written there.
        """
        if path.exists():
            raise BagError(f"The bag '{path}' exists already; choose another name.")
        self.path = path
        self._topics: list[Topic] = []
        self._schemas: dict[str, int] = {}
        self._counts: Counter[Topic] = Counter()
        self._start_ns = self._stop_ns = 0
        try:
            path.mkdir(parents=True)
            self._file_path = path / f"{path.name}.mcap"
            self._file = self._file_path.open("xb")
            self._writer: Any = Writer(  # whose methods have no types
                self._file,
                compression=CompressionType.ZSTD if compress else CompressionType.NONE,
                enable_crcs=False,
            )
            self._writer.start(profile="ros2", library=LIBRARY)
            self._file.flush()
        except OSError as error:
            self._close_file()
            shutil.rmtree(path, ignore_errors=True)
            raise BagError(f"The bag '{path}' can't be created: {_reason(error, path)}.") from None

    @property
    def message_count(self) -> int:
        """How many messages were written."""
        return self._counts.total()

    def count(self, topic: Topic) -> int:
        """Return how many messages of a topic were written."""
        return self._counts[topic]

    def add(self, topic: Topic) -> None:
        """Add a topic, so that it is listed. write() does this by itself."""
        if topic.type_name not in self._schemas:
            definition = topic.definition
            schema = self._writer.register_schema(topic.type_name, definition.encoding, definition.text.encode())
            self._schemas[topic.type_name] = schema
        facts = {"offered_qos_profiles": _qos_text(topic.offers), "topic_type_hash": topic.type_hash}
        topic.channel = self._writer.register_channel(topic.name, "cdr", self._schemas[topic.type_name], facts)
        self._topics.append(topic)

    def write(self, topic: Topic, log_ns: int, publish_ns: int, data: bytes) -> None:
        """Write one serialized message (CDR with its header), with two times in ns since the epoch.

        Raises:
            OSError: no room on the disk. Nothing more can be written then.
        """
        if not topic.channel:
            self.add(topic)
        self._writer.add_message(topic.channel, log_ns, data, publish_ns)
        self._start_ns = min(log_ns, self._start_ns) if self._counts else log_ns
        self._stop_ns = max(log_ns, self._stop_ns)
        self._counts[topic] += 1

    def flush(self) -> None:
        """Put what was written so far on the disk. Raises OSError as write() does."""
        self._writer.flush()

    def close(self) -> None:
        """Write what is pending, index and metadata.

        Raises:
            BagError: the disk is full. Says what saves the bag.
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
        """Leave the file without an end, after the disk has failed; return a sentence about it."""
        self._close_file()
        (self.path / "metadata.yaml").unlink(missing_ok=True)
        return BagError(
            f"Writing the bag '{self.path}' failed: {_reason(failure, self.path)}. "
            f"'drone-bridge recover {self._file_path} <new file>' saves what is whole."
        )

    def _close_file(self) -> None:
        with suppress(OSError, AttributeError):  # that could not be opened, perhaps, or whose rest has no room either
            self._file.close()

    def _information(self) -> dict[str, Any]:
        """Return what rosbag2 wants to know of a bag beside the messages."""
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


def _qos_text(offers: Iterable[QoSProfile]) -> str:
    """Return the different ones among the offers as rosbag2 notes them, with the numbers of rmw."""
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
