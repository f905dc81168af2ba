# SPDX-License-Identifier: Apache-2.0
"""System: the bridge, or the baseline, between a peer in this process and a subscriber in another process."""

import contextlib
import itertools
import json
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from ament_index_python.packages import get_package_prefix
from children import KEEP_FREED_MEMORY, Child, ChildError

HERE = Path(__file__).resolve().parent
READY_TIMEOUT_S = 20.0
SETTLE_S = 0.05  # for data in flight when the last item has been sent


class Place(NamedTuple):
    """Environment of a system."""

    domain: int  # ROS_DOMAIN_ID
    scratch: Path  # for logs


@dataclass(slots=True)
class Measurement:
    """Observations of the peer in one measurement, in all its turns, and its cost."""

    number: int
    items: int = 0  # frames, documents, or stream messages
    seconds: float = 0.0
    cpu_s: float = 0.0
    round_trips_s: list[float] = field(default_factory=list)
    # CLOCK_MONOTONIC at the start and end of each turn.
    turns_s: list[tuple[float, float]] = field(default_factory=list)

    @property
    def items_per_second(self) -> float:
        return self.items / self.seconds

    @property
    def cpu_per_item_ms(self) -> float:
        return 1000 * self.cpu_s / self.items

    @property
    def cpu_percent(self) -> float:
        """CPU share of one core."""
        return 100 * self.cpu_s / self.seconds

    @property
    def round_trip_ms(self) -> float:
        """Median of the round trips."""
        return 1000 * median(self.round_trips_s)

    def contains(self, moment_s: float) -> bool:
        """Return whether an item sent at this time of CLOCK_MONOTONIC belongs to it."""
        return any(began_s <= moment_s <= ended_s for began_s, ended_s in self.turns_s)


class System:
    """One side of the comparison: the subject of the measurement, and helpers in their own processes."""

    def __init__(self, side: str, place: Place, subject: list[str], helpers: dict[str, list[str]]) -> None:
        """Start the programs with these command lines. One of the helpers is the `subscriber`."""
        self.side = side
        self.subject = Child(side, subject, *place)
        self.helpers = {
            name: Child(f"{side}'s {name}", command, *place, KEEP_FREED_MEMORY) for name, command in helpers.items()
        }
        self.notes: dict[str, Any] = {}  # records of the subscriber, after `stop`
        self._measurements = 0

    def begin(self) -> Measurement:
        """Start a measurement, which may consist of several turns."""
        self._measurements += 1
        return Measurement(self._measurements)

    def close_peer(self) -> None:
        """Close the connection to the subject before it is stopped."""

    def stop(self) -> None:
        """Stop all programs. Raises ChildError if one failed."""
        self.close_peer()
        with contextlib.ExitStack() as stack:
            for child in (self.subject, *self.helpers.values()):
                stack.callback(child.stop)
        self.notes = json.loads(self.helpers["subscriber"].lines[-1])

    @contextlib.contextmanager
    def turn(self, measurement: Measurement, settle_s: float = SETTLE_S) -> Iterator[None]:
        """Add the enclosed activity to the measurement, and its cost until `settle_s` later.

        Raises ChildError for any error.
        """
        cpu_before_s, began_s = self.subject.cpu_s(), time.monotonic()
        with self.explained():
            yield
        ended_s = time.monotonic()
        time.sleep(settle_s)
        measurement.seconds += ended_s - began_s
        measurement.turns_s.append((began_s, ended_s))
        measurement.cpu_s += self.subject.cpu_s() - cpu_before_s

    @contextlib.contextmanager
    def explained(self) -> Iterator[None]:
        """Raise ChildError for any error, and name a program that has exited."""
        try:
            yield
        except (OSError, ValueError) as error:
            for child in (self.subject, *self.helpers.values()):
                child.check()
            raise ChildError(f"Between the peer and the {self.side}: {error}") from error


def bridge_command(node: str, namespace: str, **parameters: object) -> list[str]:
    """Return the command line of one of our bridges."""
    return [node_executable(node), *ros_arguments(namespace, **parameters)]


def node_executable(node: str) -> str:
    """Return the path of the executable of one of our nodes."""
    return str(Path(get_package_prefix("drone_bridge"), "lib", "drone_bridge", node))


def ros_arguments(namespace: str, **parameters: object) -> list[str]:
    """Return command line arguments for a namespace and parameters."""
    settings = [word for name, value in parameters.items() for word in ("-p", f"{name}:={value}")]
    return ["--ros-args", "-r", f"__ns:={namespace}", *settings]


def script_command(script: str, *arguments: str) -> list[str]:
    """Return the command line of a script in this folder."""
    return [sys.executable, str(HERE / script), *arguments]


def free_port(*, is_stream: bool = True) -> int:
    """Return a free port of this machine, for TCP or else for UDP."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM if is_stream else socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(seconds: float) -> Iterator[int]:
    """Count for this long."""
    end_s = time.monotonic() + seconds
    return itertools.takewhile(lambda _: time.monotonic() < end_s, itertools.count())


def ticks(count: int, rate_hz: float) -> Iterator[int]:
    """Count this many times, at this rate."""
    began_s = time.monotonic()
    for number in range(count):
        time.sleep(max(0.0, began_s + number / rate_hz - time.monotonic()))
        yield number
