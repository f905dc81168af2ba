# SPDX-License-Identifier: Apache-2.0
"""Read a ROS 2 bag, MCAP or sqlite3, of any origin that the rosbags library understands."""

import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

from rosbags.highlevel import AnyReader, AnyReaderError
from rosbags.interfaces import Connection, Qos
from rosbags.rosbag2 import ReaderError
from rosbags.typesys import Stores, get_typestore

from drone_bridge.tools.bags.encodings import pass_over_other_encodings

NANOSECONDS_PER_SECOND = 10**9
#: The encoding of messages in ROS 2.
CDR = "cdr"
#: When nothing comes for longer, the clock was set forward, or the recorder stood still, s.
LONGEST_GAP_S = 60.0
_MAGIC = b"\x89MCAP0\r\n"  # with which an MCAP file begins and ends

pass_over_other_encodings()


class BagError(Exception):
    """The bag can't be read; the text says why."""


@dataclass(frozen=True, slots=True, eq=False)
class BagTopic:
    """A topic as it was recorded, with one type: a name that was recorded with two is two topics of the bag."""

    name: str
    type_name: str
    """package/msg/Name"""
    type_hash: str
    """RIHS01_..., or empty where the bag does not say"""
    offers: tuple[Qos, ...]
    """What its publishers offered"""
    count: int
    """Messages in the bag"""


class BagMessage(NamedTuple):
    """A serialized message."""

    topic: BagTopic
    time_ns: int
    """When it was received, by the recorder's clock."""
    data: bytes
    """CDR"""


class Bag:
    """An open bag, as a context manager."""

    def __init__(self, path: Path) -> None:
        """Open the bag. Raises BagError."""
        self.path = path
        try:
            # Bags from before Iron carry no definitions in sqlite3.
            self._reader = AnyReader([_bag_of(path)], default_typestore=get_typestore(Stores.ROS2_HUMBLE))
            self._reader.open()
        except BagError:
            raise
        except (AnyReaderError, ReaderError, OSError) as error:
            _refuse_unfinished([path, *path.glob("*.mcap")])
            raise BagError(f"'{path}' can't be opened as a bag: {' '.join(str(error).split())}") from error
        except Exception as error:  # a damaged file can raise anything from the library that reads its parts
            raise BagError(f"'{path}' is damaged: {type(error).__name__}: {error}") from error
        self._connections = [each for each in self._reader.connections if _encoding(each) == CDR]
        others = [each for each in self._reader.connections if _encoding(each) != CDR]
        #: The topics that are not in CDR, which are left out, each with its encoding.
        self.left_out = {each.topic: _encoding(each) for each in others}
        if self.left_out and not self._connections:
            raise BagError(f"'{path}' has no topic in {CDR}, the encoding of ROS 2: {self.describe_left_out()}.")
        merged: dict[tuple[str, str], list[Connection]] = {}
        for connection in self._connections:
            merged.setdefault((connection.topic, connection.msgtype), []).append(connection)
        self.topics = tuple(_topic(merged[key]) for key in sorted(merged))
        self._count = self._reader.message_count - sum(each.msgcount for each in others)
        if self._count and not self.topics:
            raise BagError(
                f"'{path}' has an index that lists no topics: 'mcap recover' (https://mcap.dev) makes a whole one."
            )

    def __enter__(self) -> "Bag":
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
        """When the first message was received; 0 for an empty bag."""
        return int(self._reader.start_time) if self.count else 0

    @property
    def end_ns(self) -> int:
        """Just after the last message; 0 for an empty bag."""
        return int(self._reader.end_time) if self.count else 0

    @property
    def size_bytes(self) -> int:
        path = _bag_of(self.path)
        files = [path] if path.is_file() else [file for file in path.iterdir() if file.suffix != ".html"]  # its report
        return sum(file.stat().st_size for file in files)

    def describe_left_out(self) -> str:
        """Return the topics that are left out, as a clause."""
        return ", ".join(f"'{name}' is {encoding or 'of no encoding'}" for name, encoding in self.left_out.items())

    def definition(self, topic: BagTopic) -> tuple[str, str]:
        """Return how the bag defines a topic's type, and the format: ros2msg or ros2idl; empty if it doesn't."""
        for connection in self._connections:
            if (connection.topic, connection.msgtype) == (topic.name, topic.type_name) and connection.msgdef.data:
                return connection.msgdef.data, "ros2idl" if connection.msgdef.format.name == "IDL" else "ros2msg"
        return "", ""

    def messages(
        self, topics: Collection[BagTopic] | None = None, start_ns: int | None = None, stop_ns: int | None = None
    ) -> Iterator[BagMessage]:
        """Yield the messages of these topics, or of all, from `start_ns` until before `stop_ns`. Raises BagError."""
        wanted = {(topic.name, topic.type_name): topic for topic in (self.topics if topics is None else topics)}
        connections = [c for c in self._connections if (c.topic, c.msgtype) in wanted]
        if not connections:
            return
        try:
            for connection, time_ns, data in self._reader.messages(connections, start_ns, stop_ns):
                yield BagMessage(wanted[connection.topic, connection.msgtype], time_ns, data)
        except Exception as error:  # a damaged file can raise anything from the library that reads its parts
            raise BagError(f"'{self.path}' is damaged: {type(error).__name__}: {error}") from error

    def deserialize(self, message: BagMessage) -> Any:
        """Return it as an object with the type's fields; sequences of numbers are numpy arrays. Raises BagError."""
        name, type_name = message.topic.name, message.topic.type_name
        try:
            return self._reader.deserialize(message.data, type_name)
        except KeyError as error:
            raise BagError(f"'{self.path}' has no definition of '{type_name}', the type of '{name}'.") from error
        except Exception as error:  # whatever its bytes are taken for
            raise BagError(f"'{self.path}' has a message on '{name}' that is no '{type_name}': {error}") from error

    def deserialized(self, name: str) -> Iterator[Any]:
        """Yield the messages of a topic as such objects. Raises BagError."""
        for message in self.messages([topic for topic in self.topics if topic.name == name]):
            yield self.deserialize(message)


def run_on_bag(command: str, path: Path, work: Callable[[Bag], int]) -> int:
    """Do some work with a bag; return the exit status: what the work returns, or 1 when a file can't be used."""
    try:
        with Bag(path) as bag:
            if bag.left_out:
                print(f"Left out, as only {CDR} is read: {bag.describe_left_out()}.", file=sys.stderr)
            return work(bag)
    except BagError as error:
        print(f"drone-bridge {command}: {error}", file=sys.stderr)
    except OSError as error:
        print(f"drone-bridge {command}: '{error.filename}' can't be written: {error.strerror}.", file=sys.stderr)
    return 1


def _bag_of(path: Path) -> Path:
    """Return the folder of the bag, which may be named by a file in it. Raises BagError."""
    if not path.exists():
        raise BagError(f"'{path}' does not exist.")
    if path.suffix == ".bag":
        raise BagError(f"'{path}' is a bag of ROS 1: convert it with 'rosbags-convert --src {path} --dst <folder>'.")
    if path.is_dir() and not (path / "metadata.yaml").exists():
        files = [*path.glob("*.mcap"), *path.glob("*.db3")]
        _refuse_unfinished(files)
        raise BagError(
            f"'{path}' has no metadata.yaml, so it is not a bag"
            + (f"; the file in it can be read by itself: {files[0]}." if files else ".")
        )
    if path.is_file() and (path.parent / "metadata.yaml").exists():
        return path.parent
    return path


def _refuse_unfinished(files: Iterable[Path]) -> None:
    """Name what completes a file whose recorder was killed, if there is one. Raises BagError."""
    for file in files:
        if _is_unfinished(file):
            raise BagError(
                f"'{file}' has no end, as when its recorder is killed: "
                f"'drone-bridge recover {file} <new file>' saves what is whole."
            )


def _is_unfinished(path: Path) -> bool:
    """Return whether this is an MCAP file that begins like one, and does not end like one."""
    if not path.is_file():
        return False
    with path.open("rb") as content:
        begins = content.read(len(_MAGIC)) == _MAGIC
        content.seek(-min(len(_MAGIC), path.stat().st_size), os.SEEK_END)
        return begins and content.read() != _MAGIC


def field_names(message: Any) -> list[str]:
    """Return the names of a message's fields, without its constants, which rosbags makes fields of as well."""
    return [each.name for each in fields(message) if not str(each.type).startswith("ClassVar")]


def stamp_s(message: Any) -> float:
    """Return the stamp in a message's header, s."""
    return float(message.header.stamp.sec + message.header.stamp.nanosec / NANOSECONDS_PER_SECOND)


def _topic(connections: Sequence[Connection]) -> BagTopic:
    first = connections[0]
    offers = tuple(offer for connection in connections for offer in _offers(connection))
    return BagTopic(first.topic, first.msgtype, first.digest, offers, sum(each.msgcount for each in connections))


def _encoding(connection: Connection) -> str:
    """Return how a topic's messages are encoded; bags that do not say so are in CDR."""
    return getattr(connection.ext, "serialization_format", CDR)


def _offers(connection: Connection) -> Sequence[Qos]:
    return getattr(connection.ext, "offered_qos_profiles", ())
