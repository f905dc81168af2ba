# SPDX-License-Identifier: Apache-2.0
"""The bridge, or the floor, between a testbed on one side and a subscriber in another process on the other side."""

import contextlib
import itertools
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Final

from ament_index_python.packages import get_package_prefix
from children import Child, ChildError
from peer import HOVER_THRUST, Conversation, Peer
from table import BRIDGE

HERE: Final = Path(__file__).resolve().parent
PACED_HZ: Final = 30.0
WARM_UP_S: Final = 0.3
READY_TIMEOUT_S: Final = 20.0
READY_ANSWERS: Final = 5  # right ones in a row, before the controller counts as found
SETTLE_S: Final = 0.05  # for what is still on its way when the last answer has come

Size = tuple[int, int]  # width and height, pixels


@dataclass(slots=True)
class Measurement:
    """What the testbed saw of one measurement, in all its turns, and what it cost."""

    number: int  # by which the subscriber calls it
    seconds: float = 0.0
    cpu_s: float = 0.0
    round_trips_s: list[float] = field(default_factory=list)  # of each frame that was sent and answered

    @property
    def frames_per_second(self) -> float:
        """The rate of frames."""
        return len(self.round_trips_s) / self.seconds

    @property
    def cpu_per_frame_ms(self) -> float:
        """What a frame cost."""
        return 1000 * self.cpu_s / len(self.round_trips_s)

    @property
    def round_trip_ms(self) -> float:
        """The median of the round trips."""
        return 1000 * median(self.round_trips_s)


@dataclass(frozen=True, slots=True)
class Received:
    """What the subscriber got during one measurement."""

    images: int  # of both sides
    latencies_s: list[float]  # of each whole frame: its second image here, after its first byte was sent


class System:
    """One side of the comparison. With `control` the subscriber answers each frame, and the testbed gets its answer."""

    def __init__(self, side: str, domain: int, control: bool, scratch: Path) -> None:
        """Start its programs in this ROS domain."""
        self.side = side
        self._control = control
        self._peer = Peer()
        self._conversation: Conversation | None = None
        self._measurements = 0
        namespace = f"/benchmark_{os.getpid()}"
        make_command = _bridge if side == BRIDGE else _floor
        subscriber = [sys.executable, str(HERE / "subscriber.py"), namespace, *(["--control"] if control else [])]
        self.subject = Child(side, make_command(self._peer.port, namespace, control), domain, scratch)
        self._subscriber = Child(f"{side}'s subscriber", subscriber, domain, scratch)

    def open(self, size: Size) -> None:
        """Begin a conversation with cameras of this size."""
        self._part()
        with self._explained():
            self._conversation = self._peer.meet(*size)

    def warm_up(self) -> None:
        """Send frames until everybody has found everybody, and some more."""
        with self._explained():
            right_answers = 0
            for number in _ticks(round(READY_TIMEOUT_S * PACED_HZ)):
                right_answers = right_answers + 1 if self._exchange(0, number)[0] else 0
                if self._subscriber.printed.is_set() and right_answers >= READY_ANSWERS:
                    break
            else:
                raise TimeoutError(f"The {self.side} and its subscriber did not meet within {READY_TIMEOUT_S:g} s.")
            for number in _until(WARM_UP_S):
                self._exchange(0, number)

    def begin(self) -> Measurement:
        """Begin a measurement, which may be taken in several turns."""
        self._measurements += 1
        return Measurement(self._measurements)

    def unpaced(self, measurement: Measurement, seconds: float) -> None:
        """Send a frame as soon as the one before is answered."""
        self._measure(measurement, _until(seconds))

    def paced(self, measurement: Measurement, seconds: float) -> None:
        """Send PACED_HZ frames per second."""
        self._measure(measurement, _ticks(round(seconds * PACED_HZ)))

    def frames(self, measurement: Measurement, count: int) -> None:
        """Send this many frames, each as soon as the one before is answered."""
        self._measure(measurement, range(count))

    def stop(self) -> dict[int, Received]:
        """End everything; return what the subscriber got in each measurement."""
        self._part()
        self._peer.close()
        with contextlib.ExitStack() as stack:
            stack.callback(self.subject.stop)
            stack.callback(self._subscriber.stop)
        notes = json.loads(self._subscriber.lines[-1])
        return {int(number): Received(**note) for number, note in notes.items()}

    def _measure(self, measurement: Measurement, numbers: Iterable[int]) -> None:
        cpu_before_s, began_s = self.subject.cpu_s(), time.monotonic()
        with self._explained():
            for number in numbers:
                is_right, round_trip_s = self._exchange(measurement.number, number)
                measurement.round_trips_s.append(round_trip_s)
                if not is_right:
                    raise ValueError(f"The {self.side} answered frame {number} with something else than it should.")
        measurement.seconds += time.monotonic() - began_s
        time.sleep(SETTLE_S)
        measurement.cpu_s += self.subject.cpu_s() - cpu_before_s

    def _exchange(self, measurement: int, number: int) -> tuple[bool, float]:
        """Send a frame; return whether the answer is right, and the round trip in s."""
        assert self._conversation
        mark, thrust, round_trip_s = self._conversation.exchange(measurement, number)
        expected = mark.thrust if self._control else HOVER_THRUST
        return abs(thrust - expected) < 1e-3, round_trip_s

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Raise ChildError for whatever goes wrong, and say so when it is because a program has ended."""
        try:
            yield
        except (OSError, ValueError) as error:
            for child in (self.subject, self._subscriber):
                child.check()
            raise ChildError(f"Between the testbed and the {self.side}: {error}") from error

    def _part(self) -> None:
        if self._conversation:
            self._conversation.close()
        self._conversation = None


def _bridge(port: int, namespace: str, control: bool) -> list[str]:
    executable = Path(get_package_prefix("drone_bridge"), "lib", "drone_bridge", "testbed_bridge")
    sync = "lockstep" if control else "latest"
    return [str(executable), "--ros-args", "-r", f"__ns:={namespace}", "-p", f"port:={port}", "-p", f"sync:={sync}"]


def _floor(port: int, namespace: str, control: bool) -> list[str]:
    return [sys.executable, str(HERE / "floor.py"), str(port), namespace, *(["--wait"] if control else [])]


def _until(seconds: float) -> Iterator[int]:
    """Count for this long."""
    end_s = time.monotonic() + seconds
    return itertools.takewhile(lambda _: time.monotonic() < end_s, itertools.count())


def _ticks(count: int) -> Iterator[int]:
    """Count so many times, PACED_HZ times a second."""
    began_s = time.monotonic()
    for number in range(count):
        time.sleep(max(0.0, began_s + number / PACED_HZ - time.monotonic()))
        yield number
