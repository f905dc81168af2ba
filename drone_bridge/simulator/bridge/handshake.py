# SPDX-License-Identifier: Apache-2.0
"""The first requests to a simulator: its configuration, whether it has our cameras, and the vehicle's state.

For the link's thread.
"""

import uuid
from collections.abc import Callable
from typing import Any, Final

from drone_bridge.ros.link_node import LinkNode
from drone_bridge.ros.link_requests import ServiceResult
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.bridge.desired_items import DesiredItems
from drone_bridge.simulator.bridge.link import Channel, Outcome, ignore
from drone_bridge.simulator.bridge.outputs import SimulatorOutputs
from drone_bridge.simulator.codec import Attribute
from drone_bridge.simulator.topics.translation import STREAMED, BodyToModel
from drone_bridge.wire.layouts import MisfitError

#: Extended attributes of the vehicle. The first is a world's mark, which tells after a reconnect whether it is still
#: the one with our cameras; the second keeps what can be learned only while the simulation is paused.
WORLD_KEY: Final = "drone_bridge.world"
BODY_TO_MODEL_KEY: Final = "drone_bridge.btom"
TOKEN_BYTES: Final = 16
#: What the vehicle is asked for at first.
FIRST_ATTRIBUTES: Final = (
    Attribute.POSITION,
    Attribute.VELOCITY,
    Attribute.ACCELERATION,
    Attribute.ANGULAR_VELOCITY,
    Attribute.ORIENTATION,
)


class Handshake:
    """Sends the first requests, calls `ready` when all are answered, and stores what later connections need."""

    def __init__(
        self,
        node: LinkNode,
        requests: Channel,
        items: DesiredItems,
        outputs: SimulatorOutputs,
        ready: Callable[[], None],
    ) -> None:
        self._node = node
        self._requests = requests
        self._items = items
        self._outputs = outputs
        self._ready = ready
        self._vehicle: int = node.parameters["vehicle"]
        self._token = uuid.uuid4().bytes
        self._unrecognized_token: bytes | None = None
        self._is_marked = False
        self._vehicle_values: dict[int, Any] = {}
        self._stored_rotation: BodyToModel | None = None
        self.configured: sim.Configured | None = None

    def start(self, token: bytes | None) -> None:
        """Send the requests; `token` marks the previous connection's world, if any."""
        self._unrecognized_token = token
        ask = self._requests.ask
        ask(sim.GetConfig(), self._take_configuration)
        ask(sim.GetExtended(self._vehicle, WORLD_KEY), self._recognize)
        ask(sim.GetExtended(self._vehicle, BODY_TO_MODEL_KEY), self._take_stored_rotation)
        for attribute in FIRST_ATTRIBUTES[:-1]:
            ask(sim.GetEntity(self._vehicle, attribute), self._take_vehicle)
        ask(sim.GetEntity(self._vehicle, FIRST_ATTRIBUTES[-1]), self._prepare)

    @property
    def token(self) -> bytes | None:
        """The mark of this world, if it has one or that is not known yet."""
        return self._token if self._is_marked else self._unrecognized_token

    def _take_configuration(self, outcome: Outcome) -> None:
        if not isinstance(outcome, sim.Configured):
            return
        self.configured = outcome
        self._node.statistics.facts["configuration"] = (
            f"{outcome.frequency:g} steps per second, speed {outcome.speed:g}"
            f"{', as fast as it can' if outcome.non_real_time else ''}"
        )
        try:
            self._outputs.keeper.clock.configure(outcome)
        except ValueError as error:
            self._node.count_and_warn("bad numbers", str(error))

    def _recognize(self, outcome: Outcome) -> None:
        if isinstance(outcome, ServiceResult):
            return
        known, self._unrecognized_token = self._unrecognized_token, None
        held = outcome.data if isinstance(outcome, sim.ExtendedGot) else None
        if held is None or held != known:
            self._items.forget_cameras()
        if held is not None and len(held) == TOKEN_BYTES:
            # Also if another bridge has marked this world: two marks would make each forget its cameras.
            self._token, self._is_marked = held, True

    def mark_world(self) -> None:
        """Mark the world as one that has our cameras."""
        if not self._is_marked:
            self._is_marked = True
            self._requests.ask(sim.SetExtended(self._vehicle, WORLD_KEY, self._token), ignore)

    def _take_stored_rotation(self, outcome: Outcome) -> None:
        if isinstance(outcome, sim.ExtendedGot):
            try:
                self._stored_rotation = decode_rotation(outcome.data)
            except ValueError as error:
                self._node.count_and_warn("bad numbers", str(error))

    def _take_vehicle(self, outcome: Outcome) -> None:
        if isinstance(outcome, sim.EntityGot):
            self._vehicle_values[outcome.attribute] = outcome.value

    def _prepare(self, outcome: Outcome) -> None:
        """Evaluate the vehicle's attributes."""
        if isinstance(outcome, ServiceResult):
            return
        self._take_vehicle(outcome)
        given = self._node.parameters["body_to_model"]
        self._outputs.learn_body_to_model(BodyToModel(given) if any(given) else self._stored_rotation)
        self._outputs.attitude = None
        try:
            values = [self._vehicle_values[attribute] for attribute in STREAMED]
            attitude = self._outputs.state(self._vehicle, values).orientation
            self._outputs.attitude = attitude if self._outputs.is_body_to_model_known else None
        except (KeyError, ValueError) as error:
            reason = str(error) if isinstance(error, ValueError) else f"There is no entity {self._vehicle}."
            self._node.count_and_warn("missing vehicle", f"The direction of the vehicle is unknown. {reason}")
        self._ready()

    @property
    def has_vehicle(self) -> bool:
        return Attribute.ORIENTATION in self._vehicle_values


def decode_rotation(data: bytes) -> BodyToModel:
    """Return the value of BODY_TO_MODEL_KEY. Raises ValueError."""
    try:
        return BodyToModel(sim.EntityGot.decode(bytes([Attribute.ORIENTATION]) + data).value)  # type: ignore[arg-type]
    except (ValueError, MisfitError) as error:
        raise ValueError(f"What {BODY_TO_MODEL_KEY} of the vehicle is not a rotation.") from error
