# SPDX-License-Identifier: Apache-2.0
"""Heading: the vehicle's heading, which depends on the rotation from its principal axes to its model. Pure.

No message carries that rotation. But the simulator accepts q of the model and reports q of the principal axes, so that
setting q and reading it back shows the difference. This turns the vehicle for a moment, which is harmless while the
simulation is paused. A late step does not prove a pause, and a vehicle at rest looks the same in a running simulation.
The simulation therefore counts as paused after an answered PAUSE of a person here, or after a long time without a step
since the connection. The bridge never pauses it by itself.

| the rotation is | then |
|---|---|
| given by a parameter, or stored in the world | it is known |
| known from the last connection, and the vehicle is where it was, or at its first place | it is known, and stored |
| unknown, and the simulation is paused | it is learned, and stored; retried _RETRY_S after a refusal |
| unknown, and the simulation runs | a warning asks people to pause it |
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from drone_bridge.motion.body_to_model import BodyToModel
from drone_bridge.motion.wxyz import WxyzQuaternion
from drone_bridge.session.session import Note
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import Attribute
from drone_bridge.simulator.session.entities import Entities
from drone_bridge.simulator.session.events import BodyToModelKnown, HeadingUnknown
from drone_bridge.simulator.session.exchange import REFUSALS, UNKNOWN_HEADING, Exchange, Procedure
from drone_bridge.wire.layouts import MisfitError

#: Extended attribute of the vehicle that stores the rotation, since it can be learned only while paused.
BODY_TO_MODEL_KEY = "drone_bridge.btom"
#: Time without a step after which a simulation counts as paused: a busy one is slow.
CONNECT_QUIET_S = 3.0
_QUIET_S = 0.2  # after a PAUSE, in addition to _QUIET_STEPS steps: other clients may run it again
_QUIET_STEPS = 3
_RETRY_S = 5.0
#: Additional timeout of a RUN, which waits for the heading.
LONGEST_WAIT_S = CONNECT_QUIET_S + 1.0
# Tolerances for a vehicle at rest, in addition to its motion.
_NEAR_M, _FAR_M = 0.1, 5.0
_NEAR_RAD, _FAR_RAD = 0.1, 1.0
_LARGEST_TURN = 1e-9  # 1 - cos of half the angle
_RUNNING = (
    "The simulation is already running, so the rotation from the vehicle's principal axes to its model can't be "
    "learned: its orientation may be wrong, and it is not steered. Pause the simulation for a moment (services pause "
    "and run), or set the parameter body_to_model (1, 0, 0, 0 for none)."
)


class VehicleState(NamedTuple):
    """State of the vehicle at a time."""

    at_s: float
    values: Sequence[Any]
    """Values of STREAMED as on the wire: q is of the principal axes."""

    def continues(self, before: "VehicleState") -> bool:
        """Return whether the vehicle could have moved here since an earlier state, by its speeds then and now."""
        (x, v, _, q, w), (old_x, old_v, _, old_q, old_w) = self.values, before.values
        elapsed_s = self.at_s - before.at_s
        reach_m = _NEAR_M + min(2.0 * max(math.hypot(*v), math.hypot(*old_v)) * elapsed_s, _FAR_M)
        turn_rad = _NEAR_RAD + min(2.0 * max(math.hypot(*w), math.hypot(*old_w)) * elapsed_s, _FAR_RAD)
        cosine = abs(sum(a * b for a, b in zip(q, old_q, strict=True)))  # of half the angle
        return math.dist(x, old_x) <= reach_m and cosine >= math.cos(turn_rad / 2)


class Heading:
    """Heading on one set of connections."""

    def __init__(self, exchange: Exchange, entities: Entities) -> None:
        self._exchange, self._entities = exchange, entities
        #: Newest orientation of the vehicle's model, w, x, y, z. None while unknown.
        self.attitude: WxyzQuaternion | None = None
        #: Whether it is known, or can't be learned because the simulation runs, or there is no vehicle.
        self.is_settled = False
        #: Steps per second.
        self.frequency = 0.0
        #: Time since which steps are visible.
        self.watched_since_s = math.inf
        #: Time of the last step.
        self.stepped_s = -math.inf
        self._paused_s: float | None = None  # time of an answered PAUSE; None while the simulation may run
        self._has_run = False
        self._is_warned = False
        self._learning_not_before_s = -math.inf

    def note_pause(self) -> None:
        """Record an answered PAUSE: the rotation can be learned, and a RUN waits for that."""
        self._paused_s = self._exchange.now_s
        self.is_settled = self._entities.is_heading_known

    def note_run(self) -> None:
        """Record that a RUN was sent."""
        self._paused_s, self._has_run = None, True

    def set_rotation(self, rotation: BodyToModel | None) -> None:
        """Set the rotation from the vehicle's principal axes to its model. None: unknown."""
        rotations, vehicle = self._entities.body_to_model, self._entities.vehicle
        rotations.pop(vehicle, None)
        if rotation:
            rotations[vehicle] = rotation
        self._exchange.publish(BodyToModelKnown(rotation.rotation if rotation else None))

    def update(self, sees_steps: Callable[[], bool]) -> float:
        """Determine whether it can be learned, and warn if not. Return the time at which `measure` is due."""
        if self._entities.is_heading_known:
            self.is_settled = True
            return math.inf
        if self.watched_since_s == math.inf:
            return math.inf
        if not sees_steps():
            self.is_settled = True  # no vehicle
            return math.inf
        quiet_s = max(_QUIET_S, _QUIET_STEPS / self.frequency if self.frequency > 0.0 else 0.0)
        if self._paused_s is not None and self.stepped_s <= self._paused_s + quiet_s:  # else others have run it
            since_s = max(self._paused_s, self.stepped_s)
        elif self.stepped_s == -math.inf and not self._has_run:
            since_s, quiet_s = self.watched_since_s, max(CONNECT_QUIET_S, quiet_s)
        else:
            self.is_settled = True
            if not self._is_warned:
                self._is_warned = True
                self._warn(_RUNNING)
            return math.inf
        quiet_since_s = max(since_s, self._exchange.resumed_s)  # steps during a stall of this process were not seen
        return max(quiet_since_s + quiet_s, self._learning_not_before_s)

    def measure(self) -> Procedure[None]:
        """Set q to its own value and read it back."""
        try:
            learned, q = yield from self._measure()
        except REFUSALS as error:
            self._learning_not_before_s = self._exchange.now_s + _RETRY_S
            self._warn(f"The rotation from the vehicle's principal axes to its model is unknown: {error}")
        else:
            self.set_rotation(learned)
            self.attitude = learned.model(q)
            self.store(learned)
            numbers = ", ".join(f"{number:.4g}" for number in learned.rotation)
            sentence = f"The rotation from the vehicle's principal axes to its model is (w, x, y, z) = ({numbers})."
            self._exchange.out.append(Note("", sentence, is_expected=True))
        self.is_settled = True

    def store(self, rotation: BodyToModel) -> None:
        """Store the rotation in the world, for later connections."""
        data = encode_rotation(rotation.rotation)
        self._exchange.send(sim.SetExtended(self._entities.vehicle, BODY_TO_MODEL_KEY, data))

    def _measure(self) -> Procedure[tuple[BodyToModel, Any]]:
        """Return the rotation, and the vehicle's q."""
        exchange, vehicle, began_s = self._exchange, self._entities.vehicle, self._exchange.now_s
        ask = sim.GetEntity(vehicle, Attribute.ORIENTATION)
        (held,) = yield from exchange.ask(sim.GetExtended(vehicle, BODY_TO_MODEL_KEY))
        if isinstance(held, sim.ExtendedGot):  # another bridge may have learned it meanwhile
            return decode_rotation(held.data), (yield from exchange.request(ask)).value
        before = (yield from exchange.request(ask)).value
        if self.stepped_s > began_s:
            raise ValueError("The simulation runs.")
        turning = sim.SetEntity(vehicle, Attribute.ORIENTATION, before)
        turned = (yield from exchange.answers_to(turning, ask))[1].value
        learned = BodyToModel.between(before, turned)
        restoring = sim.SetEntity(vehicle, Attribute.ORIENTATION, learned.model(before))
        after = (yield from exchange.answers_to(restoring, ask))[1].value
        if 1.0 - abs(sum(a * b for a, b in zip(before, after, strict=True))) > _LARGEST_TURN:
            raise ValueError("Another client has turned the vehicle meanwhile.")
        return learned, before

    def _warn(self, sentence: str) -> None:
        self._exchange.publish(HeadingUnknown())
        self._exchange.note(UNKNOWN_HEADING, sentence)


def encode_rotation(rotation: WxyzQuaternion) -> bytes:
    """Return the value of BODY_TO_MODEL_KEY."""
    return sim.EntityGot(Attribute.ORIENTATION, rotation).encode()[1:]


def decode_rotation(data: bytes) -> BodyToModel:
    """Return the value of BODY_TO_MODEL_KEY. Raises ValueError."""
    try:
        return BodyToModel(sim.EntityGot.decode(bytes([Attribute.ORIENTATION]) + data).value)  # type: ignore[arg-type]
    except (ValueError, MisfitError) as error:
        raise ValueError(f"{BODY_TO_MODEL_KEY} of the vehicle is not a rotation.") from error
