# SPDX-License-Identifier: Apache-2.0
"""possible_telemetry: telemetry without the values that can't be, and a clause for each of these. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.measurement import Measurement, Picture
from drone_bridge.robot_class.robot import FASTEST, finite_command
from drone_bridge.wire.printable import printable

#: Charge above 1 that counts as full: the capacity of a new battery is more than the nominal one.
FULL = 1.1
#: Longest text, characters: it becomes the reason of a hold.
LONGEST_TEXT = 100


def possible_telemetry(
    telemetry: Measurement, own_topics: Mapping[str, str], rays: int = 0
) -> tuple[Measurement, list[str]]:
    """Return telemetry with float numbers, and why values were left out, as in "has charge=12, which must be ...".

    A charge or voltage that is not finite counts as not reported. `own_topics` are the types of the messages in
    `extra` by topic, and `rays` is the number of distances of a scan.
    """
    changed: dict[str, Any] = {}
    left_out = []
    for names, (read, expected) in _FIELDS.items():
        for name in names.split():
            if (value := getattr(telemetry, name)) is not None:
                try:
                    changed[name] = read(value)
                    if changed[name] is None and name not in ("charge", "voltage"):
                        left_out.append(f"has {name}={value!r:.60}, which is not finite")
                except (TypeError, ValueError, AttributeError, OverflowError):
                    changed[name] = None
                    left_out.append(f"has {name}={value!r:.60}, which must be {expected}")
    if len(scan := changed.get("scan") or ()) not in (0, rays):
        changed["scan"] = None
        left_out.append(f"has a scan of {len(scan)} distances, and its lidar has {rays} rays")
    messages = telemetry.extra if isinstance(telemetry.extra, Mapping) else {}
    changed["extra"] = {name: each for name, each in messages.items() if _type_name(each) == own_topics.get(name)}
    for name, message in messages.items():
        if name not in own_topics:
            left_out.append(f"has extra[{name!r}], which is none of its topics: {', '.join(own_topics) or 'none'}")
        elif message is not None and name not in changed["extra"]:
            left_out.append(f"has {_type_name(message)} for its topic {name}, which must be {own_topics[name]}")
    if messages is not telemetry.extra:
        left_out.append(f"has extra={telemetry.extra!r:.60}, which must be messages by topic")
    return replace(telemetry, **changed), left_out


def _type_name(message: Any) -> str:
    """Return the type of a message, as in sensor_msgs/Range, without an import of ROS."""
    return f"{type(message).__module__.partition('.')[0]}/{type(message).__name__}"


def _number(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None


def _within(low: float, high: float, most: float = math.inf) -> Callable[[Any], float | None]:
    def read(value: Any) -> float | None:
        if (number := _number(value)) is not None and not low <= number <= high:
            raise ValueError
        return None if number is None else min(number, most)

    return read


def _vector(value: Any) -> tuple[float, float, float] | None:
    x, y, z = (_number(each) for each in value)
    return None if x is None or y is None or z is None else (x, y, z)


def _scan(value: Any) -> tuple[float, ...]:
    distances = tuple(map(float, value))
    if any(each < 0 for each in distances):
        raise ValueError
    return distances


def _velocity(value: Any) -> BodyVelocity | None:
    if not isinstance(value, BodyVelocity):
        raise TypeError
    if any(FASTEST < abs(each) < math.inf for each in value.components):
        raise ValueError
    try:
        return finite_command(value)
    except ValueError:
        return None


def _image(value: Any) -> bytes | Picture:
    if not isinstance(value, bytes | bytearray | memoryview | Picture):
        raise TypeError
    return value if isinstance(value, Picture) else bytes(value)


def _truth(value: Any) -> bool:
    if value not in (True, False):  # 1 and 0 as well
        raise ValueError
    return bool(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return printable(value, LONGEST_TEXT)


#: Readers of fields, and the values that they accept.
_FIELDS: Mapping[str, tuple[Callable[[Any], Any], str]] = {
    "yaw imu_yaw height climb time_s": (_number, "a number"),
    "charge": (_within(0.0, FULL, 1.0), "a share from 0 to 1"),
    "voltage": (_within(0.0, 1000.0), "a number of volts, from 0 to 1000"),
    "roll pitch": (_within(-math.tau, math.tau), "an angle in radians"),
    "position rates acceleration": (_vector, "three numbers"),
    "velocity": (_velocity, f"a BodyVelocity of at most {FASTEST:g} m/s and rad/s"),
    "scan": (_scan, "distances, from 0"),
    "contacts": (lambda value: tuple(filter(None, map(_vector, value))), "points of three numbers each"),
    "image": (_image, "bytes or a Picture"),
    "is_flying is_charging": (_truth, "True or False"),
    "disobeys": (_text, "a text"),
}
