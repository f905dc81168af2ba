# SPDX-License-Identifier: Apache-2.0
"""SimulatorServices: the services of simulator_bridge, as requests to its session."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any, NamedTuple

from rclpy.callback_groups import ReentrantCallbackGroup

from drone_bridge.ros.node.parameters import DeclaredParameters
from drone_bridge.ros.node.protocol_node import ProtocolNode
from drone_bridge.ros.node.request_services import PendingRequest, pass_on
from drone_bridge.session.session import Actions
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator import units
from drone_bridge.simulator.session import procedures
from drone_bridge.simulator.session.client import NOT_CONNECTED, SimulatorClientSession
from drone_bridge.simulator.session.desired_items import DesiredTrigger
from drone_bridge.simulator.session.exchange import NO_ANSWER
from drone_bridge.simulator.topics import attribute_message, entity_state
from drone_bridge.simulator.topics import services as translate
from drone_bridge.simulator.topics.services import SERVICES

#: Fields of a response besides its outcome.
Fields = Mapping[str, Any]


#: A procedure, and its arguments after the conversation.
Work = tuple[Any, ...]


class Service(NamedTuple):
    """A service of the bridge."""

    work: Callable[[Any, DeclaredParameters], Work]
    """Function from a request and the parameters to the session's work. Raises ValueError."""
    fields: Callable[[Any], Fields] = lambda result: {}
    """Function from the procedure's result to the response's fields."""
    is_never_stale: bool = False
    """Whether a stale request is executed after a stall: it only reads, or pauses."""


def _run(request: Any, parameters: DeclaredParameters) -> Work:
    if request.wait and not request.steps:
        raise ValueError("Can't wait for an endless run: set steps, or set wait to false.")
    return procedures.run, request.steps, request.wait, parameters["request_timeout"]


def _spawn(request: Any, parameters: DeclaredParameters) -> Work:
    entity = translate.wire_add_entity(request)
    return procedures.spawn, entity, request.name, request.stream, parameters["stream_period"]


def _set_state(request: Any, _: DeclaredParameters) -> Work:
    def changes(orientation: Any) -> Any:
        return translate.wire_set_entity(request, units.orientation(orientation) if orientation else None)

    return procedures.set_state, request.id, changes, request.set_velocity and not request.set_orientation


def _add_camera(request: Any, _: DeclaredParameters) -> Work:
    camera = translate.wire_add_camera(request)
    return procedures.add_camera, request.name, camera, tuple(request.targets), request.period


def _state(got: tuple[Any, bool]) -> Fields:
    values, corporeal = got
    return translate.state_fields(entity_state(values), corporeal)


def _id(number: int) -> Fields:
    return {"id": number}


def _stream_id(number: int) -> Fields:
    return {"stream_id": number}


#: Services by name.
OFFERED: dict[str, Service] = {
    # World.
    "run": Service(_run),
    "pause": Service(lambda q, p: (procedures.pause,), is_never_stale=True),
    "reassure": Service(lambda q, p: (procedures.ask, sim.Reassure()), is_never_stale=True),
    "get_configuration": Service(lambda q, p: (procedures.ask, sim.GetConfig()), asdict, is_never_stale=True),
    "remove": Service(lambda q, p: (procedures.remove, translate.wire_remove(q))),
    # Entities and their extended attributes.
    "list_entities": Service(
        lambda q, p: (procedures.list_entities,), lambda got: {"ids": got[0], "names": got[1]}, is_never_stale=True
    ),
    "spawn": Service(_spawn, _id),
    "get_entity_state": Service(lambda q, p: (procedures.get_state, q.id), _state, is_never_stale=True),
    "set_entity_state": Service(_set_state),
    "stream_entity": Service(
        lambda q, p: (procedures.stream_entity, q.id, q.name, q.period or p["stream_period"]), _stream_id
    ),
    "get_attribute": Service(
        lambda q, p: (procedures.ask, sim.GetExtended(q.id, q.key)),
        lambda got: {"attribute": attribute_message(got.key, got.data)},
        is_never_stale=True,
    ),
    "set_attribute": Service(lambda q, p: (procedures.ask, translate.wire_set_attribute(q))),
    # Cameras and triggers.
    "add_camera": Service(_add_camera, _id),
    "set_camera": Service(lambda q, p: (procedures.set_camera, q.id, list(translate.wire_set_camera(q)))),
    "stream_camera": Service(
        lambda q, p: (procedures.stream_camera, q.camera_id, q.target_id, q.period or 1), _stream_id
    ),
    "add_trigger": Service(lambda q, p: (procedures.add, DesiredTrigger(q.name, translate.wire_trigger(q))), _id),
    "add_turbulence": Service(lambda q, p: (procedures.add_object, translate.wire_add_turbulence(q)), _id),
}


class SimulatorServices:
    """Services that are always available, and return an error while no simulator is connected."""

    def __init__(self, node: ProtocolNode, session: Callable[[], SimulatorClientSession | None]) -> None:
        """`session` returns the node's session, None before activation."""
        self._node, self._session = node, session
        group = ReentrantCallbackGroup()  # callbacks wait
        for name, kind in SERVICES.items():
            node.create_service(kind, f"~/{name}", partial(self._serve, name), callback_group=group)

    async def _serve(self, name: str, request: Any, response: Any) -> Any:
        """Post a request to the session, wait for its outcome, and fill the response."""
        service = OFFERED[name]
        response.code = NO_ANSWER
        try:
            asked = self._ask(name, request)
            is_success, response.message = await asked.future  # type: ignore[misc, unused-ignore] # Kilted
            if is_success:
                for field, value in service.fields(asked.result).items():
                    setattr(response, field, value)
            elif asked.result is not None:
                response.code = asked.result
            response.success = is_success
        except ValueError as error:
            response.success, response.message = False, str(error)
        return response

    def _ask(self, name: str, request: Any) -> PendingRequest:
        """Pass a request to the session. Raises ValueError with a sentence."""
        session, service = self._session(), OFFERED[name]
        work, *arguments = service.work(request, self._node.parameters)

        def ask(asked: PendingRequest, now_s: float) -> Actions:
            assert session
            return session.ask(asked, work, tuple(arguments), now_s)

        is_never_stale = service.is_never_stale
        return pass_on(self._node, session, name, ask, absence=NOT_CONNECTED, is_never_stale=is_never_stale)
