# SPDX-License-Identifier: Apache-2.0
"""BagReader: reader of ROS 2 bags, MCAP or sqlite3, in any variant that the rosbags library supports."""

import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

from rosbags.highlevel import AnyReader, AnyReaderError
from rosbags.interfaces import Connection, Qos
from rosbags.rosbag2 import ReaderError
from rosbags.typesys import Stores, get_typestore

from drone_bridge.tools.bags.folders import found

NANOSECONDS_PER_SECOND = 10**9
#: Bytes that Fast DDS may append to a message with empty lists of doubles, and of which rosbags accepts 3.
_MAX_UNUSED_BYTES = 20
#: Longest gap between messages, s. A longer one results from a clock step or a suspended recorder.
LONGEST_GAP_S = 60.0
_MAGIC = b"\x89MCAP0\r\n"  # at the beginning and end of an MCAP file


class BagReadError(Exception):
    """Failure to read a bag, with a sentence as its text."""


@dataclass(frozen=True, slots=True, eq=False)
class BagTopic:
    """Recorded topic with one type. A name that was recorded with two types is two topics."""

    name: str
    type_name: str
    """package/msg/Name"""
    type_hash: str
    """RIHS01_..., or empty if the bag has none"""
    offers: tuple[Qos, ...]
    """QoS offered by its publishers"""
    count: int
    """Messages in the bag"""


class BagMessage(NamedTuple):
    """Serialized message."""

    topic: BagTopic
    time_ns: int
    """Reception time by the recorder's clock"""
    data: bytes
    """CDR"""


class BagReader:
    """Open bag, which is a context manager."""

    def __init__(self, path: Path) -> None:
        """Open the bag. Raises BagReadError."""
        self.path = path
        try:
            # sqlite3 bags from before Iron contain no definitions.
            typestore = get_typestore(Stores.ROS2_HUMBLE)
            self._reader = AnyReader([_bag_of(path)], default_typestore=typestore)
            self._reader.open()
        except BagReadError:
            raise
        except (AnyReaderError, ReaderError, OSError) as error:
            with suppress(OSError):  # the same as before
                _refuse_unfinished([path, *path.glob("*.mcap")])
            raise BagReadError(f"'{path}' can't be opened as a bag: {' '.join(str(error).split())}") from error
        except Exception as error:  # rosbags can raise anything for a damaged file
            what = f"{type(error).__name__}: {error}"
            raise BagReadError(f"'{path}' is damaged, or has topics in another encoding than ROS 2: {what}") from error
        self._connections = self._reader.connections
        merged: dict[tuple[str, str], list[Connection]] = {}
        for connection in self._connections:
            merged.setdefault((connection.topic, connection.msgtype), []).append(connection)
        self.topics = tuple(_topic(merged[key]) for key in sorted(merged))
        self._count = self._reader.message_count

    def __enter__(self) -> "BagReader":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._reader.close()

    @property
    def count(self) -> int:
        return int(self._count)

    @property
    def start_ns(self) -> int:
        """Reception time of the first message, or 0 for an empty bag."""
        return int(self._reader.start_time) if self.count else 0

    @property
    def end_ns(self) -> int:
        """Time just after the last message, or 0 for an empty bag."""
        return int(self._reader.end_time) if self.count else 0

    @property
    def size_bytes(self) -> int:
        path = self.path
        files = [path] if path.is_file() else [file for file in path.iterdir() if file.suffix != ".html"]  # its report
        return sum(file.stat().st_size for file in files)

    def definition(self, topic: BagTopic) -> tuple[str, str]:
        """Return the definition of a topic's type and its format, ros2msg or ros2idl. Both are empty if missing."""
        for connection in self._connections:
            if (connection.topic, connection.msgtype) == (topic.name, topic.type_name) and connection.msgdef.data:
                return connection.msgdef.data, "ros2idl" if connection.msgdef.format.name == "IDL" else "ros2msg"
        return "", ""

    def messages(
        self, topics: Collection[BagTopic] | None = None, start_ns: int | None = None, stop_ns: int | None = None
    ) -> Iterator[BagMessage]:
        """Yield messages of some or all topics, from `start_ns` until before `stop_ns`. Raises BagReadError."""
        wanted = {(topic.name, topic.type_name): topic for topic in (self.topics if topics is None else topics)}
        connections = [c for c in self._connections if (c.topic, c.msgtype) in wanted]
        if not connections:
            return
        try:
            for connection, time_ns, data in self._reader.messages(connections, start_ns, stop_ns):
                yield BagMessage(wanted[connection.topic, connection.msgtype], time_ns, data)
        except Exception as error:  # rosbags can raise anything for a damaged file
            raise BagReadError(f"'{self.path}' is damaged: {type(error).__name__}: {error}") from error

    def deserialize(self, message: BagMessage) -> Any:
        """Return a message as an object with its fields. Numeric sequences are numpy arrays. Raises BagReadError."""
        name, type_name = message.topic.name, message.topic.type_name
        try:
            for unused in range(0, _MAX_UNUSED_BYTES, 4):
                with suppress(AnyReaderError):
                    return self._reader.deserialize(message.data[: len(message.data) - unused], type_name)
            return self._reader.deserialize(message.data, type_name)
        except KeyError as error:
            raise BagReadError(f"'{self.path}' has no definition of '{type_name}', the type of '{name}'.") from error
        except Exception as error:  # rosbags can raise anything for invalid data
            raise BagReadError(f"'{self.path}' has a message on '{name}' that is no '{type_name}': {error}") from error


def run_on_bag(command: str, path: Path, work: Callable[[BagReader], int]) -> int:
    """Run a command on a bag. Return its exit status, or 1 if a file can't be used."""
    try:
        with BagReader(found(path)) as bag:
            return work(bag)
    except BagReadError as error:
        print(f"drone-bridge {command}: {error}", file=sys.stderr)
    except BrokenPipeError:  # | head
        raise
    except OSError as error:
        name = f"'{error.filename}'" if error.filename else "the output"
        print(f"drone-bridge {command}: {name} can't be written: {error.strerror}.", file=sys.stderr)
    return 1


def _bag_of(path: Path) -> Path:
    """Return the folder or file of a bag. Raises BagReadError."""
    if not path.exists():
        raise BagReadError(f"'{path}' does not exist.")
    if path.suffix == ".bag":
        raise BagReadError(
            f"'{path}' is a bag of ROS 1: convert it with 'rosbags-convert --src {path} --dst <folder>'."
        )
    if path.is_dir() and not (path / "metadata.yaml").exists():
        files = [*path.glob("*.mcap"), *path.glob("*.db3")]
        _refuse_unfinished(files)
        raise BagReadError(
            f"'{path}' has no metadata.yaml, so it is not a bag"
            + (f"; each file in it can be read by itself: {', '.join(map(str, sorted(files)))}." if files else ".")
        )
    return path


def _refuse_unfinished(files: Iterable[Path]) -> None:
    """Raise BagReadError with the recover command if a file has no end, as after its recorder was killed."""
    for file in files:
        if _is_unfinished(file):
            raise BagReadError(
                f"'{file}' has no end, as when its recorder is killed: "
                f"'drone-bridge recover {file} <new file>' recovers the intact part."
            )


def _is_unfinished(path: Path) -> bool:
    """Return whether this is an MCAP file with its beginning, but without its end."""
    if not path.is_file():
        return False
    with path.open("rb") as content:
        begins = content.read(len(_MAGIC)) == _MAGIC
        content.seek(-min(len(_MAGIC), path.stat().st_size), os.SEEK_END)
        return begins and content.read() != _MAGIC


def field_names(message: Any) -> list[str]:
    """Return the names of a message's fields, without its constants, which rosbags represents as fields."""
    return [each.name for each in fields(message) if not str(each.type).startswith("ClassVar")]


def _topic(connections: Sequence[Connection]) -> BagTopic:
    first = connections[0]
    offers = tuple(offer for connection in connections for offer in _offers(connection))
    return BagTopic(first.topic, first.msgtype, first.digest, offers, sum(each.msgcount for each in connections))


def _offers(connection: Connection) -> Sequence[Qos]:
    return getattr(connection.ext, "offered_qos_profiles", ())
