# SPDX-License-Identifier: Apache-2.0
"""The entities of a simulator_server, as its parameter `entities` describes them."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from drone_bridge.ros.topic_names import topic_token
from drone_bridge.wire.layouts import printable

_KEYS = ("pose", "twist", "odom", "tf", "render", "radius")


@dataclass(frozen=True, slots=True)
class EntityPlan:
    """An entity and its topics or tf frame."""

    number: int
    name: str
    odom: str = ""
    pose: str = ""
    twist: str = ""
    tf: str = ""  # the frame, without prefix
    render: str = ""
    radius: float = 1.0  # m


def read_plans(lines: Iterable[str]) -> list[EntityPlan]:
    """Parse lines such as '3:buoy pose=/buoy/pose'. Raises ValueError with a sentence."""
    plans = [_read_plan(line) for line in lines if line.strip()]
    numbers = [plan.number for plan in plans]
    if twice := {number for number in numbers if numbers.count(number) > 1}:
        raise ValueError(f"entities names {min(twice)} twice.")
    return plans


def _read_plan(line: str) -> EntityPlan:
    first, *rest = line.split()
    number, _, name = first.partition(":")
    shown = printable(line)
    if not number.isdecimal() or int(number) > 0xFFFFFFFF:
        raise ValueError(f"{shown!r} begins with {printable(number)!r}, which must be an ID, a non-negative integer.")
    plan = EntityPlan(int(number), name or f"entity_{number}")
    words: dict[str, Any] = {}
    for word in rest:
        key, equals, value = word.partition("=")
        if key not in _KEYS or not equals or not value:
            raise ValueError(f"{shown!r} says {printable(word)!r}; allowed are {', '.join(_KEYS)}, each followed by =.")
        words[key] = value
    if len([key for key in ("odom", "pose", "tf") if key in words]) > 1:
        raise ValueError(f"{shown!r} has more than one of odom, pose and tf.")
    if "radius" in words:
        try:
            radius = float(words.pop("radius"))
        except ValueError:
            radius = 0.0
        if not 0.0 < radius < 1e9:
            raise ValueError(f"{shown!r} has a radius that is not a positive number of metres.")
        plan = replace(plan, radius=radius)
    if not words.keys() & {"odom", "pose", "tf"}:
        topic = f"entities/{topic_token(plan.name, 'entity')}"
        words["pose"] = f"{topic}/pose"
        words.setdefault("twist", f"{topic}/twist")
    return replace(plan, **words)
