# SPDX-License-Identifier: Apache-2.0
"""FlyingState: whether a drone in ROS flies, for pressing buttons that mean the opposite then. Pure.

| heard | believed |
|---|---|
| navdata of the drone | always |
| `flying` is true | always |
| `flying` is false | unless the drone is known to fly, and the publisher was not there when that became known |
| a press succeeded | where neither navdata nor `flying` has come; a landing and an emergency also end a doubt |

A bridge that was started in flight may take the drone for landed, and a press would then take off.
"""

from collections.abc import Callable

from drone_bridge.dronegui.codec import FlightState
from drone_bridge.session.session import Actions, Note

#: The counter of messages that the drone is on the ground which were not believed.
DOUBTFUL = "doubtful_landings"


class FlyingState:
    """Whether the drone flies: by its topic or its navdata, else by what it was commanded. For one thread at a time."""

    def __init__(self, topic: str, publishers: Callable[[], frozenset[bytes]]) -> None:
        """`topic` is the full name of `flying`, and `publishers` returns who publishes it now."""
        #: None while nothing is known.
        self.is_flying: bool | None = None
        self._topic, self._publishers = topic, publishers
        self._is_seen = False  # by a topic or navdata
        self._vouching: frozenset[bytes] = frozenset()  # the publishers of `flying` when the drone was known to fly
        self._is_landed_doubtful = False
        self._was_commanded_to_land = False
        self._is_stopped = False  # by an emergency

    def heard(self, is_flying: bool, now_s: float) -> Actions:
        """Take a message on `flying`."""
        self._is_seen = True
        publishers = self._publishers()
        if self.is_flying and not is_flying and publishers - self._vouching:
            self._is_landed_doubtful = True
            sentence = (
                f"{self._topic} says that the drone is on the ground, but so may a node started while it flew: "
                "take_off means land until navdata shows that, or land or emergency succeeds."
            )
            return [Note(DOUBTFUL, sentence, is_ongoing=True)]
        self._know(is_flying, publishers)
        return []

    def shown(self, is_flying: bool) -> None:
        """Take what the drone's navdata shows."""
        self._is_seen = True
        if is_flying is not self.is_flying:
            self._know(is_flying, self._publishers())

    def pressed(self, name: str) -> None:
        """Note a press of takeoff, land, reset or emergency, which stops the motors in the air."""
        self._is_stopped = name == "emergency" and bool(self.is_flying)

    def done(self, name: str) -> None:
        """Note that the drone carries out a press."""
        self._was_commanded_to_land = name == "land"
        if not self._is_seen or (self._is_landed_doubtful and name != "takeoff"):
            self._know(name == "takeoff", self._publishers())

    def state(self, is_hovering: bool) -> FlightState | None:
        """Return what navdata says of it."""
        if self.is_flying is None:
            return None
        if not self.is_flying:
            return FlightState.DEFAULT if self._is_stopped else FlightState.LANDED
        if self._was_commanded_to_land:
            return FlightState.LANDING
        return FlightState.HOVERING if is_hovering else FlightState.FLYING

    def _know(self, is_flying: bool, publishers: frozenset[bytes]) -> None:
        self.is_flying, self._is_landed_doubtful, self._vouching = is_flying, False, publishers
        self._is_stopped &= not is_flying
        self._was_commanded_to_land &= is_flying
