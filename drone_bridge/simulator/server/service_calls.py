# SPDX-License-Identifier: Apache-2.0
"""Calls of simulator_bridge's services that answer a client's request."""

from collections.abc import Callable
from textwrap import shorten
from typing import Any, NamedTuple

from drone_bridge import srv
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import Error, ItemType, Request, Response
from drone_bridge.simulator.topics import calls as translate
from drone_bridge.simulator.topics.errors import simulators_own_text

#: Bytes of an error's text that visualizers have room for: they read 90 of an answer, and take the rest for the next.
LONGEST_TEXT = 77


class ServiceCall(NamedTuple):
    """A service call, and what turns its response into the answer, or into another call."""

    service: str
    request: Any
    on_success: Callable[[Any], "Response | ServiceCall"]
    #: Gets the response of a call that failed, or None after a timeout; by default the client gets the error.
    on_failure: "Callable[[Any], Response | ServiceCall] | None" = None


def ok(service: str, request: Any) -> ServiceCall:
    """Return a call whose success is answered with OK."""
    return ServiceCall(service, request, lambda _: sim.Ok())


def failure(response: Any) -> Error:
    """Return the error for a failed call, with the simulator's own text if it has one; None: it timed out."""
    if response is None:
        return Error(0, "The service has not answered in time.")
    if response.code < 0:  # the bridge's, for people
        text = shorten(response.message, LONGEST_TEXT, placeholder=" ...").encode()[:LONGEST_TEXT]
        return Error(0, text.decode(errors="ignore"))
    return Error(response.code, simulators_own_text(response.message))


#: Requests that are always the same call.
DIRECT_CALLS: dict[type[Request], Callable[[Any], ServiceCall]] = {
    sim.GetConfig: lambda _: ServiceCall(
        "get_configuration",
        srv.GetConfiguration.Request(),
        lambda r: sim.Configured(r.frequency, r.speed, r.non_real_time, r.use_desired_thrusters),
    ),
    sim.SetExtended: lambda q: ok("set_attribute", translate.set_attribute(q)),
    sim.ListObjectClasses: lambda _: ServiceCall(
        "list_object_classes", srv.ListObjectClasses.Request(), lambda r: sim.ObjectClassesListed(tuple(r.names))
    ),
    sim.ListObjects: lambda _: ServiceCall(
        "list_objects", srv.ListItems.Request(), lambda r: sim.ObjectsListed(tuple(r.ids))
    ),
    sim.AddObject: lambda q: ServiceCall(
        "add_object",
        srv.AddObject.Request(class_name=q.class_name, data=list(q.data)),
        lambda r: sim.Added(ItemType.OBJECT, r.id),
    ),
    sim.GetObject: lambda q: ServiceCall(
        "get_object",
        srv.GetObject.Request(id=q.id, attribute=q.attribute),
        lambda r: sim.ObjectGot(q.attribute, bytes(r.data)),
    ),
    sim.SetObject: lambda q: ok("set_object", srv.SetObject.Request(id=q.id, attribute=q.attribute, data=list(q.data))),
}
