# SPDX-License-Identifier: Apache-2.0
"""Sample conversation with each message of the protocol, and a reader that recognizes neutral commands."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from drone_bridge.kind import ProtocolKind, Recorded, Sent, Side
from drone_bridge.simulator import codec as sim

UPRIGHT = (1.0, 0.0, 0.0, 0.0)
NOWHERE, SOMEWHERE = (0.0, 0.0, 0.0), (2.0, -0.5, 1.25)
NOTE = sim.ExtendedAttribute("note", b"hello")
#: Requests with one answer each.
ASKED: tuple[tuple[sim.Request, sim.Response], ...] = (
    (sim.Reassure(), sim.Ok()),
    (sim.GetConfig(), sim.Configured(100.0, 1.0, False, True)),
    (sim.ListEntities(), sim.EntitiesListed((1, 0))),
    (
        sim.AddEntity(
            1.0, 0.25, SOMEWHERE, UPRIGHT, SOMEWHERE, UPRIGHT, True, (sim.ExtendedAttribute("render", b"x"),)
        ),
        sim.Added(sim.ItemType.ENTITY, 1),
    ),
    (sim.SetEntity(0, sim.Attribute.VELOCITY, SOMEWHERE), sim.Ok()),
    (sim.SetEntity(0, sim.Attribute.CORPOREAL, False), sim.Ok()),
    (sim.GetEntity(0, sim.Attribute.ORIENTATION), sim.EntityGot(sim.Attribute.ORIENTATION, UPRIGHT)),
    (sim.GetEntity(7, sim.Attribute.POSITION), sim.Error(0, "No entity with given ID.")),
    (sim.ListObjectClasses(), sim.Error(18, "Not documented.")),
    (sim.ListObjects(), sim.ObjectsListed(b"\0\0\0\0")),
    (sim.AddObject("turbulence", bytes(8)), sim.Added(sim.ItemType.OBJECT, 1)),
    (sim.SetObject(bytes(8)), sim.Ok()),
    (sim.GetObject(bytes(5)), sim.ObjectGot(bytes(9))),
    (sim.ListCameras(), sim.Error(18)),
    (sim.AddCamera(0, UPRIGHT, SOMEWHERE, 0.5), sim.Added(sim.ItemType.CAMERA, 0)),
    (sim.SetCamera(0, sim.CameraAttribute.FOCAL_LENGTH, 1.5), sim.Ok()),
    (sim.ViewCamera(bytes(8)), sim.CameraGot(bytes(16))),
    (sim.StreamCamera(0, 2, 1), sim.Added(sim.ItemType.CAMERA_STREAM, 0)),
    (sim.BroadcastCamera(0), sim.Added(sim.ItemType.CAMERA_BROADCAST, 0)),
    (sim.AddTrigger(sim.CollisionTrigger(0, 1, 0.5)), sim.Added(sim.ItemType.TRIGGER, 0)),
    (sim.AddTrigger(sim.SweepCollisionTrigger(0, 1)), sim.Added(sim.ItemType.TRIGGER, 1)),
    (sim.AddTrigger(sim.PathTrigger(0, NOWHERE, SOMEWHERE, 0.125)), sim.Added(sim.ItemType.TRIGGER, 2)),
    (sim.AddTrigger(sim.BytecodeTrigger(b"code")), sim.Error(0)),
    (sim.AddTrigger(sim.UnknownTrigger(77, b"later")), sim.Error(0)),
    (
        sim.StreamEntity(0, 1, (sim.Attribute.POSITION, sim.Attribute.CORPOREAL)),
        sim.Added(sim.ItemType.ENTITY_STREAM, 0),
    ),
    (sim.SetExtended(1, "note", b"hello"), sim.Ok()),
    (sim.GetExtended(1, "note"), sim.ExtendedGot("note", b"hello")),
    (sim.StreamExtended(1, 2, ("note", "render")), sim.Added(sim.ItemType.EXTENDED_STREAM, 0)),
    (sim.Spy(), sim.Added(sim.ItemType.SPY, 0)),
    (sim.Run(10), sim.Ok()),
    (sim.Pause(), sim.Ok()),
    (sim.Remove(sim.ItemType.CAMERA, 0), sim.Ok()),
)
#: Out-of-band messages.
TOLD: tuple[sim.Response, ...] = (
    sim.EntityData(0, (sim.Attribute.POSITION, sim.Attribute.CORPOREAL), (SOMEWHERE, True)),
    sim.EntityData(1, tuple(sim.Attribute)[:5], (SOMEWHERE, SOMEWHERE, NOWHERE, (0.5, 0.5, -0.5, 0.5), SOMEWHERE)),
    sim.CameraData(0, 0.25, -0.5, 0.125, 2.0),
    sim.ExtendedData(0, (NOTE, sim.ExtendedAttribute("render", b""))),
    sim.Triggered(0),
    sim.Untriggered(0),
    sim.PathStarted(2),
    sim.PathFailed(2),
    sim.PathEnded(2),
    sim.Spied(True, sim.ItemType.ENTITY, 1),
    sim.Spied(False, sim.ItemType.ENTITY, 1, id_bytes=4),
    sim.Completed(),
)


def conversation() -> tuple[Sent, ...]:
    """Return each request with its answer, then the out-of-band messages."""
    asked = (
        sent
        for request, response in ASKED
        for sent in (Sent(Side.OPERATOR, request), Sent(Side.VEHICLE, response, sim.Answer(request, response)))
    )
    return (*asked, *(Sent(Side.VEHICLE, response) for response in TOLD))


def commands() -> Callable[[bytes], Iterator[bool]]:
    """Return a reader of the vehicle's velocities."""
    connection = sim.ServerConnection()

    def read(data: bytes) -> Iterator[bool]:
        connection.receive_data(data)
        for request in connection.events():
            if isinstance(request, sim.SetEntity) and request.attribute == sim.Attribute.VELOCITY:
                assert isinstance(request.value, tuple)
                yield not any(request.value)

    return read


class RecordedSimulator(Recorded):
    """Reader of a recording, whose client is limited only by the wire: the log may be of any client."""

    def __init__(self, kind: ProtocolKind, parameters: Mapping[str, Any]) -> None:
        super().__init__(kind, parameters)
        self.readers[Side.VEHICLE] = sim.ClientConnection(max_request_bytes=sim.MAX_BODY_BYTES, max_outstanding=1 << 20)

    def note_sent(self, sender: Side, event: Any) -> None:
        super().note_sent(sender, event.response if isinstance(event, sim.Answer) else event)
