# SPDX-License-Identifier: Apache-2.0
"""FlyingState: whether a ROS drone flies, because buttons have the opposite effect then. Pure.

| event | believed |
|---|---|
| navdata of the drone | always |
| `flying` is true | always |
| `flying` is false | unless the drone is known to fly, and the publisher did not exist when that became known |
| a press succeeded | without navdata and `flying`; a landing and an emergency also resolve a doubt |

A bridge that was started in flight may assume that the drone is landed, and a press would then make it take off.
"""

from collections.abc import Callable

from drone_bridge.dronegui.codec import FlightState
from drone_bridge.session.session import Actions, Note
from drone_bridge.wire.counters import ProblemCounter

#: Counter of disbelieved messages that the drone is on the ground.
DOUBTFUL = ProblemCounter("doubtful_landings")


class FlyingState:
    """Whether the drone flies, by its topic or navdata, else by its commands. Single-threaded."""

    def __init__(self, topic: str, publishers: Callable[[], frozenset[bytes]]) -> None:
        """`topic` is the full name of `flying`. `publishers` returns its current publishers."""
        #: None while unknown.
        self.is_flying: bool | None = None
        self._topic, self._publishers = topic, publishers
        self._is_seen = False  # by a topic or navdata
        self._vouching: frozenset[bytes] = frozenset()  # publishers of `flying` when the drone was known to fly
        self._is_landed_doubtful = False
        self._was_commanded_to_land = False
        self._is_stopped = False  # by an emergency

    def received(self, is_flying: bool, now_s: float) -> Actions:
        """Record a message on `flying`, unless its publisher may be wrong about a landing."""
        self._is_seen = True
        publishers = self._publishers()
        if self.is_flying and not is_flying and publishers - self._vouching:
            self._is_landed_doubtful = True
            sentence = (
                f"{self._topic} reports that the drone is on the ground, but its publisher may have been started in "
                "flight: take_off means land until navdata shows that it has landed, or land or emergency succeeds."
            )
            return [Note(DOUBTFUL, sentence, is_ongoing=True)]
        self._set_flying(is_flying, publishers)
        return []

    def shown(self, is_flying: bool) -> None:
        """Record the state in the drone's navdata."""
        self._is_seen = True
        if is_flying is not self.is_flying:
            self._set_flying(is_flying, self._publishers())

    def pressed(self, name: str) -> None:
        """Record a press of takeoff, land, reset or emergency, which stops the motors in the air."""
        self._is_stopped = name == "emergency" and bool(self.is_flying)

    def done(self, name: str) -> None:
        """Record that the drone carries out a press."""
        self._was_commanded_to_land = name == "land"
        if not self._is_seen or (self._is_landed_doubtful and name != "takeoff"):
            self._set_flying(name == "takeoff", self._publishers())

    def state(self, is_hovering: bool) -> FlightState | None:
        """Return the state for navdata."""
        if self.is_flying is None:
            return None
        if not self.is_flying:
            return FlightState.DEFAULT if self._is_stopped else FlightState.LANDED
        if self._was_commanded_to_land:
            return FlightState.LANDING
        return FlightState.HOVERING if is_hovering else FlightState.FLYING

    def _set_flying(self, is_flying: bool, publishers: frozenset[bytes]) -> None:
        self.is_flying, self._is_landed_doubtful, self._vouching = is_flying, False, publishers
        self._is_stopped &= not is_flying
        self._was_commanded_to_land &= is_flying
