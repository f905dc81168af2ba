# SPDX-License-Identifier: Apache-2.0
"""What a client's session publishes: the world and what happens in it, in the numbers of the wire."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from drone_bridge.simulator import codec as sim


class States(NamedTuple):
    """States of entities after the same step."""

    of: tuple[tuple[int, tuple[Any, ...]], ...]
    """The entity, and the values of STREAMED, with q about its model."""


class Time(NamedTuple):
    """The simulated time, which has just gone on unless it is only repeated."""

    nanoseconds: int
    is_due: bool
    """Whether it is to be published by itself."""


class Reported(NamedTuple):
    """What the simulator has reported by itself, and what the IDs in it stand for."""

    message: sim.Response
    name: str = ""
    """Of the entity or trigger that it is about, if that has one."""
    camera: tuple[int, str, int] = (0, "", 0)
    """ID and name of the camera, and the ID of what is seen."""


class Scene(NamedTuple):
    """What there is to publish from now on, and nothing else."""

    entities: Mapping[int, str]
    """The names of those whose states are published."""
    cameras: frozenset[str]
    """The names of ours."""


class CameraPlaced(NamedTuple):
    """Where a camera is on its entity."""

    name: str
    camera: sim.AddCamera


class Begun(NamedTuple):
    """A conversation has begun."""

    is_new: bool
    """Whether it is about another simulation than the last one."""


class BodyToModelKnown(NamedTuple):
    """The rotation from the vehicle's principal axes to its model."""

    rotation: tuple[float, float, float, float] | None
    """w, x, y, z; None while it is not known."""


class HeadingUnknown(NamedTuple):
    """It can't be learned now where the vehicle points to."""


class Fact(NamedTuple):
    """Something for /diagnostics."""

    name: str
    text: str


class RoundTrip(NamedTuple):
    """How long an answer took, s."""

    duration_s: float
