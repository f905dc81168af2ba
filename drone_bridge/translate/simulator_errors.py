# SPDX-License-Identifier: Apache-2.0
"""What the simulator's errors mean: the same code is another thing for each request."""

from typing import Final

from drone_bridge.protocols import simulator as sim
from drone_bridge.protocols.text import printable

_NO_ENTITY: Final = "there is no entity with the ID"
_NO_ATTRIBUTE: Final = "there is no attribute with the ID"
# For a stream the two are the other way round than for the others, and than the document says of them.
_MEANINGS: Final[dict[type[sim.Request], tuple[str, ...]]] = {
    sim.SetEntity: (_NO_ENTITY, _NO_ATTRIBUTE),
    sim.GetEntity: (_NO_ENTITY, _NO_ATTRIBUTE),
    sim.StreamEntity: (_NO_ATTRIBUTE, _NO_ENTITY),
    sim.Run: ("the simulation is running already",),
    sim.Pause: ("the simulation is paused already",),
}


def meaning(request: sim.Request, code: int) -> str:
    """Return what a code means for a request, as the end of a sentence; empty where nothing is documented."""
    meanings = _MEANINGS.get(type(request), ())
    return meanings[code] if code < len(meanings) else ""


def explanation(request: sim.Request, error: sim.Error) -> str:
    """Return a sentence or two about a request that the simulator has refused."""
    text = printable(error.message.encode(errors="surrogateescape").decode(errors="replace")).strip()
    said = f"The simulator refused {request.NAME} with code {error.code}"
    said += f": {text.rstrip('.')}." if text else "."
    what = meaning(request, error.code)
    return f"{said} This means that {what}." if what else said
