# SPDX-License-Identifier: Apache-2.0
"""Events that a client's session publishes, in the wire's units."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from drone_bridge.simulator import codec as sim


class States(NamedTuple):
    """States of entities after the same step."""

    of: tuple[tuple[int, tuple[Any, ...]], ...]
    """The entity, and the values of STREAMED, with q of its model."""


class ClockTime(NamedTuple):
    """Simulated time, after a step or repeated."""

    nanoseconds: int
    is_due: bool
    """Whether to publish it on /clock."""


class SimulatorEvent(NamedTuple):
    """Event reported by the simulator, and the names of the IDs in it."""

    message: sim.Response
    name: str = ""
    """Name of its entity or trigger, if any."""
    camera: tuple[int, str, int] = (0, "", 0)
    """ID and name of the camera, and ID of the observed entity."""


class PublishedScene(NamedTuple):
    """All entities and cameras to publish from now on."""

    entities: Mapping[int, str]
    """Names of the entities whose states are published."""
    cameras: frozenset[str]
    """Names of this bridge's cameras."""


class CameraPlaced(NamedTuple):
    """Pose of a camera on its entity."""

    name: str
    camera: sim.AddCamera


class ConnectionStarted(NamedTuple):
    """Start of a connection to a simulation."""

    is_new: bool
    """Whether the simulation differs from the last one."""


class BodyToModelKnown(NamedTuple):
    """The rotation from the vehicle's principal axes to its model."""

    rotation: tuple[float, float, float, float] | None
    """w, x, y, z. None while unknown."""


class HeadingUnknown(NamedTuple):
    """The vehicle's heading can't be learned now."""


class DiagnosticValue(NamedTuple):
    """Value for /diagnostics."""

    name: str
    text: str


class RequestRoundTrip(NamedTuple):
    """Round trip of a request, s."""

    duration_s: float
