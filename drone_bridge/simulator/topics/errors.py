# SPDX-License-Identifier: Apache-2.0
"""The meanings of the simulator's error codes, which depend on the request."""

import re
from typing import Any

from drone_bridge.simulator import codec as sim
from drone_bridge.wire.layouts import printable

_MEANS = " This means that "
#: An explanation of an error that came with a text, which is a sentence.
_SAID = re.compile(rf"The simulator refused \w+ with code \d+: (.*?\.)(?:{_MEANS}.*)?$", re.DOTALL)
_NO_ENTITY = "there is no entity with the ID"
_NO_ATTRIBUTE = "there is no attribute with the ID"
_NO_CAMERA = "there is no camera with the ID"
_COLLISION = (
    "",
    "an entity can't collide with itself",
    "there is no entity with the ID of the first",
    "there is no entity with the ID of the second",
)
# Errors of the CUAUV server, which the document gives for ESET alone.
_MEANINGS: dict[type[Any], tuple[str, ...]] = {
    sim.Remove: ("there is no item with the type and the ID",),
    sim.AddEntity: ("the mass, the radius or the moments of inertia are impossible",),
    sim.SetEntity: (_NO_ENTITY, _NO_ATTRIBUTE),
    sim.GetEntity: (_NO_ENTITY, _NO_ATTRIBUTE),
    sim.StreamEntity: (_NO_ATTRIBUTE, _NO_ENTITY),  # the other way round
    sim.GetExtended: ("the entity has no attribute with the key",),
    sim.AddObject: ("there is no such class of objects, or its data are invalid",),
    sim.AddCamera: (_NO_ENTITY,),
    sim.SetCamera: (_NO_CAMERA, _NO_ATTRIBUTE),
    sim.StreamCamera: (_NO_CAMERA, _NO_ENTITY, "the camera is on that very entity"),
    sim.CollisionTrigger: _COLLISION,
    sim.SweepCollisionTrigger: _COLLISION,
    sim.PathTrigger: ("", _NO_ENTITY, "the distance is not above 0"),
    sim.Run: ("the simulation is running already",),
    sim.Pause: ("the simulation is paused already",),
}


def meaning(request: sim.Request, code: int) -> str:
    """Return the meaning of a code for a request, as the end of a sentence; empty if unknown."""
    asked = request.trigger if isinstance(request, sim.AddTrigger) else request
    meanings = _MEANINGS.get(type(asked), ())
    return meanings[code] if code < len(meanings) else ""


def explanation(request: sim.Request, error: sim.Error) -> str:
    """Return an explanation of a refused request."""
    text = printable(error.message.encode(errors="surrogateescape").decode(errors="replace")).strip()
    said = f"The simulator refused {request.NAME} with code {error.code}"
    said += f": {text.rstrip('.')}." if text else "."
    what = meaning(request, error.code)
    return f"{said}{_MEANS}{what}." if what else said


def simulators_own_text(explained: str) -> str:
    """Return the simulator's own message from an explanation, or all of it if there is none."""
    said = _SAID.match(explained)
    return said[1] if said else explained
