# SPDX-License-Identifier: Apache-2.0
"""ClientVelocityCommands: the velocity commanded by clients, each part for as long as its client repeats it.

v is in the world frame on the wire, but in the body frame for a vehicle in ROS. While the vehicle turns, the same v is
therefore published again for its new orientation.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, cast

from drone_bridge.motion.wxyz import IDENTITY, Vector, WxyzQuaternion
from drone_bridge.session.session import AFTER_STALLS, Action, Note, Publish
from drone_bridge.simulator.codec import Attribute, SetEntity

#: Rotation of the vehicle after which v is published again: at 0.8 rad/s, 40 times per second.
LARGEST_TURN_RAD = 0.02
STANDING: Vector = (0.0, 0.0, 0.0)
#: Attributes of the vehicle that are commands.
STEERED = (Attribute.VELOCITY, Attribute.ANGULAR_VELOCITY)


class VelocityCommand(NamedTuple):
    """Velocity of the vehicle."""

    v: Vector = STANDING  # m/s, world
    w: Vector = STANDING  # rad/s, model
    q: WxyzQuaternion = IDENTITY
    """Orientation of the vehicle in the world."""


NEUTRAL = VelocityCommand()


class ClientVelocityCommands:
    """Publishes each change of the clients' velocity, and zero when a steering client is silent or has disconnected.

    v and w are the last values set by any client, by topic or by service, and zero if no steering client has set them.
    Both are reset when any of these clients times out or disconnects, when the world is paused, and on hold.
    """

    def __init__(
        self, timeout_s: Callable[[], float], orientation: Callable[[], WxyzQuaternion | None], out: list[Action]
    ) -> None:
        """Start without a velocity.

        Args:
            timeout_s: returns the timeout of a silent client.
            orientation: returns the vehicle's orientation, None while unknown.
            out: receives actions.
        """
        self._timeout_s, self._orientation, self._out = timeout_s, orientation, out
        self._velocity: dict[int, Vector] = {}
        self._received_s: dict[Any, float] = {}  # time of each steering client's last command
        self._is_new = False  # the velocity has not been published
        self._published_for: WxyzQuaternion | None = None  # orientation for which v was published; None: not published

    @property
    def due_s(self) -> float:
        """Time of the next `end_silent`."""
        return min(self._received_s.values(), default=math.inf) + self._timeout_s()

    def service_called(self, client: Any, now_s: float) -> None:
        """Record that a client steers by a service call, which may be executed even without a response."""
        self._received_s[client] = now_s

    def note(self, client: Any, request: SetEntity, now_s: float) -> None:
        """Record v or w as set by a client through a service."""
        self.service_called(client, now_s)
        self._velocity[request.attribute] = cast(Vector, request.value)

    def set(self, client: Any, request: SetEntity, now_s: float) -> None:
        """Set v or w. `publish` publishes them."""
        self.note(client, request, now_s)
        self._is_new = True

    def publish(self, *, is_paused: bool) -> None:
        """Publish a change, even of orientation only. While the world is paused, publish nothing but zero."""
        if is_paused:
            self.stop()
            return
        is_new, self._is_new = self._is_new, False
        if not (is_new or self._published_for):
            return
        v, w = (self._velocity.get(each, STANDING) for each in STEERED)
        q = self._orientation()
        if not is_new and (q is None or not _has_turned(cast(WxyzQuaternion, self._published_for), q)):
            return
        if q is None and any(v):
            self.stop()
        else:
            self._published_for = q if any(v) else None
            self._out.append(Publish(VelocityCommand(v, w, q or IDENTITY)))  # zero is independent of the orientation

    def end_silent(self, now_s: float, *, after_stall: bool = False) -> None:
        """Stop the vehicle if a steering client has been silent, possibly during a stall of this process."""
        if now_s < self.due_s:
            return
        if after_stall:
            self._out.append(Note(AFTER_STALLS, "This process was stalled: the vehicle is stopped."))
        else:
            sentence = "A steering client timed out: the vehicle is stopped."
            self._out.append(Note("", sentence, is_expected=True))
        self.stop()

    def leave(self, client: Any) -> None:
        """Stop the vehicle if this client steers it."""
        if client in self._received_s:
            self.stop()

    def stop(self) -> None:
        """Publish zero if a client steers, and reset the velocity."""
        if self._received_s:
            self.stop_anyway()

    def stop_anyway(self) -> None:
        """Publish zero, even if no client steers."""
        self._is_new, self._published_for = False, None
        self._velocity.clear()
        self._received_s.clear()
        self._out.append(Publish(NEUTRAL))


def _has_turned(before: WxyzQuaternion, now: WxyzQuaternion) -> bool:
    cosine = abs(sum(a * b for a, b in zip(before, now, strict=True)))  # of half the angle
    return cosine < math.cos(LARGEST_TURN_RAD / 2)
