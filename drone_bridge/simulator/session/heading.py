# SPDX-License-Identifier: Apache-2.0
"""Heading: where the vehicle points to, which depends on the rotation from its principal axes to its model. Pure.

No message carries that rotation. But the simulator accepts q of the model and reports q of the principal axes: setting
it and reading it back shows the difference. That turns the vehicle for a moment, which is harmless while the simulation
is paused: without a step for _QUIET_S, and for the time of _QUIET_STEPS steps.

| the rotation is | then |
|---|---|
| given by a parameter, or stored in the world | it is known |
| unknown, and the simulation is paused | it is learned, and stored; after a refusal again _RETRY_S later |
| unknown, and the simulation runs | people are asked to pause it |
"""

import math
from collections.abc import Callable
from typing import Any

from drone_bridge.motion.body_to_model import BodyToModel
from drone_bridge.motion.wxyz import WxyzQuaternion
from drone_bridge.session.session import Note
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import Attribute
from drone_bridge.simulator.session.entities import Entities
from drone_bridge.simulator.session.exchange import REFUSALS, Exchange, Procedure
from drone_bridge.simulator.session.published import BodyToModelKnown, HeadingUnknown
from drone_bridge.wire.layouts import MisfitError

#: The extended attribute of the vehicle that keeps what can be learned only while the simulation is paused.
BODY_TO_MODEL_KEY = "drone_bridge.btom"
#: So that bridges that connect at the same time do not disturb each other.
LONGEST_JITTER_S = 0.1
_QUIET_S = 0.2
_QUIET_STEPS = 3
_RETRY_S = 5.0
_LARGEST_TURN = 1e-9  # 1 - cos of half the angle by which a vehicle may seem to have turned
_RUNNING = (
    "The simulation was running already, so the rotation from the vehicle's principal axes to its model can't be "
    "learned: its orientation may be wrong, and it is not steered. Pause the simulation for a moment (services pause "
    "and run), or set the parameter body_to_model (1, 0, 0, 0 for none)."
)


class Heading:
    """In one conversation."""

    def __init__(self, exchange: Exchange, entities: Entities, jitter_s: float) -> None:
        self._exchange, self._entities, self._jitter_s = exchange, entities, jitter_s
        #: The newest orientation of the vehicle's model, w, x, y, z; None while it is not known.
        self.attitude: WxyzQuaternion | None = None
        #: Whether it is known, or can't be learned because the simulation runs, or there is no vehicle.
        self.is_settled = False
        #: Steps per second.
        self.frequency = 0.0
        #: Since when no step has come; never before steps would be seen.
        self.quiet_since_s = math.inf
        #: When the last step came.
        self.stepped_s = -math.inf
        self._is_warned = False
        self._learning_not_before_s = -math.inf

    def know(self, rotation: BodyToModel | None) -> None:
        """Take the rotation from the vehicle's principal axes to its model, None if unknown."""
        rotations, vehicle = self._entities.body_to_model, self._entities.vehicle
        rotations.pop(vehicle, None)
        if rotation:
            rotations[vehicle] = rotation
        self._exchange.publish(BodyToModelKnown(rotation.rotation if rotation else None))

    def look(self, sees_steps: Callable[[], bool]) -> float:
        """Note whether it can be learned, and warn if not; return when `learn` is due."""
        if self._entities.is_heading_known:
            self.is_settled = True
            return math.inf
        if self.quiet_since_s == math.inf:
            return math.inf
        if not sees_steps():
            self.is_settled = True  # there is no vehicle
            return math.inf
        quiet_s = max(_QUIET_S, _QUIET_STEPS / self.frequency if self.frequency > 0.0 else 0.0) + self._jitter_s
        since_s = max(self.quiet_since_s, self.stepped_s, self._exchange.resumed_s)  # no step was seen before that
        due_s = max(since_s + quiet_s, self._learning_not_before_s)
        if self._exchange.now_s < due_s and self.stepped_s > -math.inf and not self._is_warned:
            self._is_warned = self.is_settled = True
            self._warn(_RUNNING)
        return due_s

    def learn(self) -> Procedure[None]:
        """Set q to its own value and read it back."""
        try:
            learned, q = yield from self._learn()
        except REFUSALS as error:
            self._learning_not_before_s = self._exchange.now_s + _RETRY_S
            self._warn(f"The rotation from the vehicle's principal axes to its model is unknown: {error}")
        else:
            self.know(learned)
            vehicle = self._entities.vehicle
            self.attitude = learned.model(q)
            data = sim.EntityGot(Attribute.ORIENTATION, learned.rotation).encode()[1:]
            self._exchange.send(sim.SetExtended(vehicle, BODY_TO_MODEL_KEY, data))
            numbers = ", ".join(f"{number:.4g}" for number in learned.rotation)
            sentence = f"The rotation from the vehicle's principal axes to its model is (w, x, y, z) = ({numbers})."
            self._exchange.out.append(Note("", sentence, is_expected=True))
        self.is_settled = True

    def _learn(self) -> Procedure[tuple[BodyToModel, Any]]:
        """Return the rotation, and the vehicle's q."""
        exchange, vehicle = self._exchange, self._entities.vehicle
        ask = sim.GetEntity(vehicle, Attribute.ORIENTATION)
        (held,) = yield from exchange.ask(sim.GetExtended(vehicle, BODY_TO_MODEL_KEY))
        if isinstance(held, sim.ExtendedGot):  # another bridge may have learned it meanwhile
            return decode_rotation(held.data), (yield from exchange.request(ask)).value
        before = (yield from exchange.request(ask)).value
        turning = sim.SetEntity(vehicle, Attribute.ORIENTATION, before)
        turned = (yield from exchange.answers_to(turning, ask))[1].value
        learned = BodyToModel.between(before, turned)
        restoring = sim.SetEntity(vehicle, Attribute.ORIENTATION, learned.model(before))
        after = (yield from exchange.answers_to(restoring, ask))[1].value
        if 1.0 - abs(sum(a * b for a, b in zip(before, after, strict=True))) > _LARGEST_TURN:
            raise ValueError("The vehicle was turned by others meanwhile.")
        return learned, before

    def _warn(self, sentence: str) -> None:
        self._exchange.publish(HeadingUnknown())
        self._exchange.note("unknown_heading", sentence)


def decode_rotation(data: bytes) -> BodyToModel:
    """Return the value of BODY_TO_MODEL_KEY. Raises ValueError."""
    try:
        return BodyToModel(sim.EntityGot.decode(bytes([Attribute.ORIENTATION]) + data).value)  # type: ignore[arg-type]
    except (ValueError, MisfitError) as error:
        raise ValueError(f"What {BODY_TO_MODEL_KEY} of the vehicle is not a rotation.") from error
