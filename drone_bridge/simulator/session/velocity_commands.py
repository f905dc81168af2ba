# SPDX-License-Identifier: Apache-2.0
"""VelocityCommands: the velocity that clients command, for as long as each of them repeats its part.

v is given in the world, and a vehicle in ROS takes it in its body's axes. So while the vehicle turns, the same v is
published again for its new orientation.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, cast

from drone_bridge.motion.wxyz import IDENTITY, Vector, WxyzQuaternion
from drone_bridge.session.session import AFTER_STALLS, Action, Note, Publish
from drone_bridge.simulator.codec import Attribute, SetEntity

#: By how much the vehicle may have turned since v was published: at 0.8 rad/s, 40 times a second.
LARGEST_TURN_RAD = 0.02
STANDING: Vector = (0.0, 0.0, 0.0)
#: Attributes of the vehicle that are commands.
STEERED = (Attribute.VELOCITY, Attribute.ANGULAR_VELOCITY)


class VelocityCommand(NamedTuple):
    """A velocity for the vehicle."""

    v: Vector = STANDING  # m/s, world
    w: Vector = STANDING  # rad/s, model
    q: WxyzQuaternion = IDENTITY
    """How the vehicle is turned in the world."""


NEUTRAL = VelocityCommand()


class VelocityCommands:
    """Publishes each change of what clients set, and zero when one that steers is silent or has disconnected.

    v and w are each what was set last, by whichever client and whether by a topic or by a service, and zero if nobody
    who steers has set it. They end together: with the first client of them that ends, with a pause, and with hold.
    """

    def __init__(
        self, timeout_s: Callable[[], float], orientation: Callable[[], WxyzQuaternion | None], out: list[Action]
    ) -> None:
        """Begin with nothing set.

        Args:
            timeout_s: returns for how long a client may be silent.
            orientation: returns how the vehicle is turned, None while that is unknown.
            out: gets the actions.
        """
        self._timeout_s, self._orientation, self._out = timeout_s, orientation, out
        self._velocity: dict[int, Vector] = {}
        self._heard_s: dict[Any, float] = {}  # when each client that steers did so last
        self._is_new = False  # what is set has not been published
        self._published_for: WxyzQuaternion | None = None  # the orientation for which v was, None if it was not
        self._was_paused = False

    @property
    def due_s(self) -> float:
        """When `end_silent` is wanted."""
        return min(self._heard_s.values(), default=math.inf) + self._timeout_s()

    def hear(self, client: Any, now_s: float) -> None:
        """Note that a client steers by a service call, which may be carried out although nobody answers it."""
        self._heard_s[client] = now_s

    def note(self, client: Any, request: SetEntity, now_s: float) -> None:
        """Note v or w as a client has set it by a service."""
        self.hear(client, now_s)
        self._velocity[request.attribute] = cast(Vector, request.value)

    def set(self, client: Any, request: SetEntity, now_s: float) -> None:
        """Take v or w, which `publish` publishes."""
        self.note(client, request, now_s)
        self._is_new = True

    def publish(self, *, is_paused: bool) -> None:
        """Publish a change, also of orientation; while the world is paused nothing, but zero when that begins."""
        self.note_pause(is_paused=is_paused)
        is_new, self._is_new = self._is_new, False
        if is_paused or not (is_new or self._published_for):
            return
        v, w = (self._velocity.get(each, STANDING) for each in STEERED)
        q = self._orientation()
        if not is_new and (q is None or not _has_turned(cast(WxyzQuaternion, self._published_for), q)):
            return
        if q is None and any(v):
            self.stop()
        else:
            self._published_for = q if any(v) else None
            self._out.append(Publish(VelocityCommand(v, w, q or IDENTITY)))  # zero does not mind the orientation

    def note_pause(self, *, is_paused: bool) -> None:
        """Note whether the world is paused, which stops the vehicle when it begins."""
        if is_paused and not self._was_paused:
            self.stop()
        self._was_paused = is_paused

    def end_silent(self, now_s: float, *, stood_still: bool = False) -> None:
        """Stop the vehicle if a client that steers has been silent, perhaps as this process stood still."""
        if now_s < self.due_s:
            return
        if stood_still:
            self._out.append(Note(AFTER_STALLS, "This process stood still: the vehicle is stopped."))
        else:
            sentence = "A client that steered has been silent for a while: the vehicle is stopped."
            self._out.append(Note("", sentence, is_expected=True))
        self.stop()

    def leave(self, client: Any) -> None:
        """Stop the vehicle if this client steers it."""
        if client in self._heard_s:
            self.stop()

    def stop(self) -> None:
        """Publish zero if a client steers, and forget what was set."""
        if self._heard_s:
            self.stop_anyway()

    def stop_anyway(self) -> None:
        """Publish zero, even if nobody steers any more."""
        self._is_new, self._published_for = False, None
        self._velocity.clear()
        self._heard_s.clear()
        self._out.append(Publish(NEUTRAL))


def _has_turned(before: WxyzQuaternion, now: WxyzQuaternion) -> bool:
    cosine = abs(sum(a * b for a, b in zip(before, now, strict=True)))  # of half the angle
    return cosine < math.cos(LARGEST_TURN_RAD / 2)
