# SPDX-License-Identifier: Apache-2.0
"""Learns the rotation from the vehicle's principal axes to its model frame, which its heading depends on.

No message carries it. But the simulator accepts q of the model and reports q of the principal axes: setting it and
reading it back shows the difference. That turns the vehicle for a moment, which is harmless while the simulation is
paused.
"""

import math
import random
import time
from typing import Final

from drone_bridge.ros.link_node import LinkNode
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.bridge.handshake import BODY_TO_MODEL_KEY, decode_rotation
from drone_bridge.simulator.bridge.link import ignore
from drone_bridge.simulator.bridge.session import SimulatorSession
from drone_bridge.simulator.bridge.tasks import NO_ANSWER, RefusedError, Result, Task, TaskRunner
from drone_bridge.simulator.codec import Attribute
from drone_bridge.simulator.topics.translation import BodyToModel

#: Without a step for this long, and for the time of this many steps, the simulation counts as paused.
_QUIET_S: Final = 0.2
_QUIET_STEPS: Final = 3
_JITTER_S: Final = 0.1  # so that bridges that connect at the same time do not disturb each other
_RETRY_S: Final = 5.0
_LARGEST_TURN: Final = 1e-9  # 1 - cos of half the angle by which a vehicle may seem to have turned


class BodyToModelLearner:
    """Learns the rotation when the simulation is paused, and warns while it is unknown."""

    def __init__(self, node: LinkNode, session: SimulatorSession) -> None:
        self._node = node
        self._session = session
        self._is_warned = self._is_learning = False
        self._not_before_s = -math.inf
        self._jitter_s = random.uniform(0.0, _JITTER_S)

    @property
    def due_s(self) -> float:
        """When `tick` is due, unless a step comes before."""
        session = self._session
        if session.outputs.is_body_to_model_known or self._is_learning or not session.sees_steps:
            return math.inf
        frequency = session.handshake.configured.frequency if session.handshake.configured else 0.0
        quiet_s = max(_QUIET_S, _QUIET_STEPS / frequency if frequency > 0.0 else 0.0) + self._jitter_s
        return max(session.quiet_since_s + quiet_s, self._not_before_s)

    def tick(self, now_s: float) -> None:
        """Learn if due; warn if the simulation runs."""
        session = self._session
        if session.outputs.is_body_to_model_known:
            return
        if now_s >= self.due_s:
            self._is_learning = True
            TaskRunner(session, _learn(session), self._finish).start()
        elif session.quiet_since_s < math.inf and not session.sees_steps:
            session.settle_heading()  # there is no vehicle
        elif session.has_stepped and not self._is_warned:
            self._is_warned = True
            self._node.statistics.begin_condition("heading", "The vehicle's heading is not known")
            self._node.count_and_warn(
                "unknown heading",
                "The simulation was running already, so the rotation from the vehicle's principal axes to its model "
                "can't be learned: its orientation may be wrong, and it is not steered. Pause the simulation for a "
                "moment (services pause and run), or set the parameter body_to_model (1, 0, 0, 0 for none).",
            )
            session.settle_heading()

    def _finish(self, result: Result) -> None:
        session, node = self._session, self._node
        self._is_learning = False
        if not result.success:
            self._not_before_s = time.monotonic() + _RETRY_S
            node.statistics.begin_condition("heading", "The vehicle's heading is not known")
            node.count_and_warn(
                "unknown heading",
                f"The rotation from the vehicle's principal axes to its model is unknown: {result.message}",
            )
        else:
            learned, q = result.value
            session.outputs.learn_body_to_model(learned)
            session.outputs.attitude = session.outputs.orientation(session.vehicle, q)
            data = sim.EntityGot(Attribute.ORIENTATION, learned.rotation).encode()[1:]
            session.requests.ask(sim.SetExtended(session.vehicle, BODY_TO_MODEL_KEY, data), ignore)
            node.get_logger().info(
                "The rotation from the vehicle's principal axes to its model is (w, x, y, z) = "
                f"({', '.join(f'{number:.4g}' for number in learned.rotation)})."
            )
        session.settle_heading()


def _learn(session: SimulatorSession) -> Task:
    """Set q to its own value and read it back; the value is the rotation, and the vehicle's q."""
    vehicle = session.vehicle
    ask = sim.GetEntity(vehicle, Attribute.ORIENTATION)
    try:
        held = yield sim.GetExtended(vehicle, BODY_TO_MODEL_KEY)  # another bridge may have learned it meanwhile
    except RefusedError as error:
        if error.code == NO_ANSWER:
            raise
    else:
        return decode_rotation(held.data), (yield ask).value
    before = (yield ask).value
    _, turned = yield [sim.SetEntity(vehicle, Attribute.ORIENTATION, before), ask]
    learned = BodyToModel.between(before, turned.value)
    _, after = yield [sim.SetEntity(vehicle, Attribute.ORIENTATION, learned.model(before)), ask]
    if 1.0 - abs(sum(a * b for a, b in zip(before, after.value, strict=True))) > _LARGEST_TURN:
        raise ValueError("The vehicle was turned by others meanwhile.")
    return learned, before
