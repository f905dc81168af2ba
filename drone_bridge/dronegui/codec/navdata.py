# SPDX-License-Identifier: Apache-2.0
"""Navdata blocks as JSON objects, one per datagram, as the GUI sends them to its controllers.

Versions of the GUI differ in the types and the fields that they send: a field may be missing, one that is not known is
ignored, and the oldest version does not name the type.
"""

import math
from dataclasses import asdict, fields
from typing import Any, Final

from drone_bridge.dronegui.codec.documents import is_number, shown
from drone_bridge.dronegui.codec.messages import Demo, Feature, Navdata, OtherNavdata, VisionDetect
from drone_bridge.wire.events import RemoteProtocolError

#: A drone detects four at most.
MAX_FEATURES: Final = 16
#: Far more than any value with a unit, and little enough for single precision.
MAX_MAGNITUDE: Final = 1e9
MAX_CTRL_STATE: Final = 2**32 - 1

_DEMO: Final = "demo"
_VISION_DETECT: Final = "visiondetect"
_WHOLE: Final = frozenset({"ctrl_state", "num_frames"})
_DEMO_FIELDS: Final = tuple(field.name for field in fields(Demo))
#: What is in no other block: by these a block that does not name its type is recognised.
_OF_DEMO: Final = frozenset({"ctrl_state", "theta", "phi", "psi"})


def read(document: dict[str, Any]) -> Navdata:
    """Decode a datagram. Raises RemoteProtocolError."""
    kind = document.get("type", "")
    if not isinstance(kind, str):
        raise RemoteProtocolError(f"type is {shown(kind)}, and has to be a string.")
    if kind == _DEMO or (not kind and document.keys() >= _OF_DEMO):
        return Demo(**{name: _value(name, document.get(name)) for name in _DEMO_FIELDS})
    if kind == _VISION_DETECT or (not kind and document.keys() == {"features"}):
        return VisionDetect(_features(document.get("features", [])))
    return OtherNavdata(kind, {name: value for name, value in document.items() if name != "type"})


def write(navdata: Navdata) -> dict[str, Any]:
    """Return the document of a block."""
    if isinstance(navdata, Demo):
        return {"type": _DEMO, **_present(asdict(navdata))}
    if isinstance(navdata, VisionDetect):
        return {"type": _VISION_DETECT, "features": [_present(asdict(feature)) for feature in navdata.features]}
    return {**({"type": navdata.type} if navdata.type else {}), **navdata.fields}


def _present(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _value(name: str, value: Any) -> Any:
    """Return a value of `demo`, or None if it is not a finite number."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None  # the GUI hands on whatever the drone has in its floats
    if name not in _WHOLE:
        return _number(name, value)
    if type(value) is not int or not 0 <= value <= MAX_CTRL_STATE:
        raise RemoteProtocolError(f"{name} is {shown(value)}, and has to be a whole number from 0 to 2^32 - 1.")
    return value


def _number(name: str, value: Any) -> float:
    if not is_number(value) or not -MAX_MAGNITUDE <= value <= MAX_MAGNITUDE:
        raise RemoteProtocolError(f"{name} is {shown(value)}, and has to be a number of at most {MAX_MAGNITUDE:g}.")
    return float(value)


def _features(features: Any) -> tuple[Feature, ...]:
    if not isinstance(features, list) or len(features) > MAX_FEATURES:
        raise RemoteProtocolError(
            f"features is {shown(features)}, and has to be an array of at most {MAX_FEATURES} objects."
        )
    return tuple(map(_feature, features))


def _feature(feature: Any) -> Feature:
    if not isinstance(feature, dict):
        raise RemoteProtocolError(f"A feature is {shown(feature)}, and has to be an object.")
    missing = [name for name in ("xc", "yc", "width", "height") if name not in feature]
    if missing:
        raise RemoteProtocolError(f"A feature lacks {', '.join(missing)}.")
    place = {name: _number(name, feature[name]) for name in ("xc", "yc", "width", "height")}
    return Feature(**place, dist=_value("dist", feature.get("dist")))
