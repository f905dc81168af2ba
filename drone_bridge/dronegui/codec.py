# SPDX-License-Identifier: Apache-2.0
"""ControllerConnection and ReceiverConnection: codec of a controller and an AR.Drone's GUI.

One JSON document per UDP datagram.

Theory of operation, by the document "Network control protocol" (its section "Setting control state") and, for navdata,
which it lacks, by the real GUI, see docs/dronegui.md:

- **Control packets** (`{"seq": n, "state": {...}}`, controller to GUI, port 5560). The state names three buttons and
four axes. Omitted controls keep their state. A packet takes effect if its number is higher than all previous ones, or
1, by which a controller starts over. Others are late. There is no acknowledgement and no timeout: the last state stays
in force. `take_off` and `reset` act when they are pressed, so the packets of a press repeat it until its release.
- **Navdata** (GUI to port 5561 of its controllers, after the first press of `reset`): each block of the drone's navdata
as one object, named by `type`. Versions of the GUI differ in types and fields: fields may be missing, unknown ones are
ignored, and the oldest version does not name the type.
- **Axes**: roll + goes right, pitch + goes backward, yaw + turns right, gas + climbs. The drone's own axes are x
forward, y right, z down: phi + banks right, theta + raises the nose, psi + turns right.
- **Refusal**: an unreadable datagram is refused as a whole, and does not affect later ones, as datagrams are
independent. Sizes, nesting and numbers are limited before anything is stored.

On the wire:

UDP; one JSON document per datagram.

**Control packets** go to port 5560 of the GUI, without acknowledgement. `state` has the fields of `Controls`, which may
be omitted. The bridge sends strict JSON with all seven, and numbers its packets 1, 2, 3, ...:

```json
{"seq":1,"state":{"take_off":false,"reset":false,"hover":true,"roll":0.0,"pitch":0.0,"yaw":0.0,"gas":0.0}}
```

**Navdata** goes to port 5561 of the GUI's own machine, and of each host that controls it (from port 3456). Each
datagram has one block of the drone's navdata, `demo` about 15 times per second, with the fields of `Demo` and
`VisionDetect`:

```json
{"type": "demo", "ctrl_state": 262144, "vbat_flying_percentage": 87, "theta": -1205.4, "phi": 535.6, "psi": 36600.0,
 "altitude": 400, "vx": 200.9, "vy": -120.0, "vz": 0.0, "num_frames": 14}
{"type": "visiondetect", "features": [{"xc": 512, "yc": 430, "width": 88, "height": 61, "dist": 143}]}
```

A missing or NaN field is unknown. Unknown fields and blocks are ignored (`iphoneangles`, `vision`, `checksum`, and
blocks of other versions are counted). The oldest GUIs do not send `type`; `demo` and `visiondetect` are then
distinguished by their fields.

**Video** goes to port 5562, from port 3457, after the GUI's user has chosen "Start Video": the drone's packets
unchanged, one picture per datagram, see `ar_drone.uvlc`.

**A fresh GUI has no navdata.** After its start, a GUI does not listen to its drone. It requests navdata when its user
chooses "Stream Navdata", and in its bootstrap, which the `reset` button triggers on the ground (in the air it stops the
motors). Until then it does not know whether the drone flies: pressing `take_off` twice causes two take-offs, and only
the action "Land" of its window lands the drone. See "Taking off and landing" in docs/dronegui.md.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any

from drone_bridge.ar_drone.flight_state import MAJOR_STATE_SHIFT, FlightState, flight_state_of
from drone_bridge.wire.events import (
    NEED_DATA,
    LocalProtocolError,
    MessageSource,
    RemoteProtocolError,
)
from drone_bridge.wire.json_faults import fault_in
from drone_bridge.wire.json_fields import JsonObject, Number, RefusedValueError, shown
from drone_bridge.wire.json_numbers import is_number, whole_number
from drone_bridge.wire.outgoing import Range

__all__ = [
    "AXES", "BUTTONS", "CHARGE", "DEFAULT_NAVDATA_PORT", "DEFAULT_NAVDATA_SOURCE_PORT", "DEFAULT_PORT",
    "DEFAULT_VIDEO_PORT", "DEFAULT_VIDEO_SOURCE_PORT", "FIRST_SEQ", "MAJOR_STATE_SHIFT", "MAX_DATAGRAM_BYTES",
    "MAX_FEATURES", "MAX_MAGNITUDE", "MAX_NESTING", "MAX_SEQ", "NEED_DATA", "ControlPacket", "ControllerConnection",
    "Controls", "Demo", "Feature", "FlightState", "LatePacket", "Navdata", "OtherNavdata", "ReceiverConnection",
    "VisionDetect",
]  # fmt: skip


# Types of navdata values.


#: Far above any physical value, and exact enough in single precision.
MAX_MAGNITUDE = 1e9
MAX_WHOLE = 2**32 - 1
#: A drone detects at most four.
MAX_FEATURES = 16


class _Measurement(Number):
    """Number. A value that is not finite is unknown, because the GUI forwards the drone's floats unchecked."""

    def read(self, value: Any) -> Any:
        is_unknown = isinstance(value, float) and not math.isfinite(value)
        return None if is_unknown else super().read(value)


class _WholeNumber:
    """Whole number of 32 bits. A value that is not finite is unknown."""

    def read(self, value: Any) -> int | None:
        if isinstance(value, float) and not math.isfinite(value):
            return None
        whole = whole_number(value)
        if whole is None or not 0 <= whole <= MAX_WHOLE:
            raise RefusedValueError(f" is {shown(value)}, not a whole number from 0 to 2^32 - 1.")
        return whole

    write = read


class _FeatureList:
    """Detections of a block."""

    def read(self, value: Any) -> "tuple[Feature, ...]":
        if not isinstance(value, list) or len(value) > MAX_FEATURES:
            raise RefusedValueError(f" is {shown(value)}, not an array of at most {MAX_FEATURES} objects.")
        features = []
        for number, feature in enumerate(value):
            try:
                features.append(_FEATURE.read(feature))
            except RefusedValueError as error:
                raise RefusedValueError(f"[{number}]{error}") from error
        return tuple(features)

    def write(self, value: "tuple[Feature, ...]") -> list[Any]:
        return [_FEATURE.write(feature) for feature in value]


_MEASURED = _Measurement(-MAX_MAGNITUDE, MAX_MAGNITUDE)
_COORDINATE = Number(-MAX_MAGNITUDE, MAX_MAGNITUDE)
_WHOLE = _WholeNumber()


# Messages, in the units of the wire. Each field is declared once.


#: Range of an axis, from full deflection to full deflection.
DEFLECTION = Range(-1.0, 1.0)

#: Range of a battery's charge, percent.
CHARGE = Range(0.0, 100.0)


@dataclass(frozen=True, slots=True)
class Controls:
    """State of all controls: three buttons, and four axes from -1 to 1.

    `take_off` (a toggle that lands a flying drone) and `reset` (an emergency stop in flight) act when they are
    pressed. `hover` acts while it is pressed, and overrides the axes.
    """

    take_off: bool = False
    reset: bool = False
    hover: bool = True
    roll: Annotated[float, DEFLECTION] = 0.0  # share of the maximum angle, + goes right
    pitch: Annotated[float, DEFLECTION] = 0.0  # share of the maximum angle, + goes backward
    yaw: Annotated[float, DEFLECTION] = 0.0  # share of the maximum rate, + turns right
    gas: Annotated[float, DEFLECTION] = 0.0  # share of the maximum speed, + climbs


_CONTROLS = JsonObject(Controls)
BUTTONS = tuple(each.name for each in fields(Controls) if each.type is bool)
AXES = tuple(each.name for each in fields(Controls) if each.type is not bool)


@dataclass(frozen=True, slots=True)
class ControlPacket:
    """Packet that took effect, with the resulting state of all controls."""

    seq: float
    controls: Controls


@dataclass(frozen=True, slots=True)
class LatePacket:
    """Packet that was discarded, after one with the same or a higher number."""

    seq: float
    newest_seq: float


@dataclass(frozen=True, slots=True)
class Demo:
    """The navdata block `demo`. None stands for a value that is missing, NaN or infinite."""

    ctrl_state: Annotated[int | None, _WHOLE] = None
    vbat_flying_percentage: Annotated[float | None, _MEASURED] = None  # share of a full battery
    theta: Annotated[float | None, _MEASURED] = None  # thousandths of a degree, + raises the nose
    phi: Annotated[float | None, _MEASURED] = None  # thousandths of a degree, + banks right
    psi: Annotated[float | None, _MEASURED] = None  # thousandths of a degree, + turns right
    altitude: Annotated[float | None, _MEASURED] = None  # mm
    vx: Annotated[float | None, _MEASURED] = None  # mm/s, + forward
    vy: Annotated[float | None, _MEASURED] = None  # mm/s, + right
    vz: Annotated[float | None, _MEASURED] = None  # mm/s, + down
    num_frames: Annotated[int | None, _WHOLE] = None  # counter of video pictures

    @property
    def charge(self) -> float | None:
        """Share of a full battery, None if missing. Values of 101 % or -1 % are clamped."""
        if self.vbat_flying_percentage is None:
            return None
        return float(CHARGE.clamped(self.vbat_flying_percentage)) / CHARGE.most

    @property
    def flight_state(self) -> FlightState | None:
        """Major flight state, None if missing or unknown."""
        return flight_state_of(self.ctrl_state)


@dataclass(frozen=True, slots=True)
class Feature:
    """Detection of the drone's vision."""

    xc: Annotated[float, _COORDINATE]  # thousandths of the image, centre, from the left edge
    yc: Annotated[float, _COORDINATE]  # thousandths of the image, centre, from the upper edge
    width: Annotated[float, _COORDINATE]  # thousandths of the image
    height: Annotated[float, _COORDINATE]  # thousandths of the image
    dist: Annotated[float | None, _MEASURED] = None  # cm


@dataclass(frozen=True, slots=True)
class VisionDetect:
    """The navdata block `visiondetect`: the current detections."""

    features: Annotated[tuple[Feature, ...], _FeatureList()] = ()


@dataclass(frozen=True, slots=True)
class OtherNavdata:
    """Navdata block that is not interpreted: its type, empty if missing, and its other fields."""

    type: str
    fields: Mapping[str, Any]


Navdata = Demo | VisionDetect | OtherNavdata


# Untrusted JSON objects, one per datagram.


MAX_DATAGRAM_BYTES = 8192
MAX_NESTING = 16  # of arrays and objects; the protocol itself needs 3

# A string, closed or not, a bracket, or a Python literal. None of these can start inside another one.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"?|[][{}]|\b(?:True|False|None)\b', re.DOTALL)
_JSON_OF_PYTHON = {"True": "true", "False": "false", "None": "null"}


def refuse_constant(name: str) -> None:
    """Refuse NaN, Infinity and -Infinity."""
    raise json.JSONDecodeError(f"{name} is not JSON", name, 0)


def parse(
    datagram: bytes | bytearray | memoryview, parse_constant: Callable[[str], Any] = refuse_constant
) -> dict[str, Any]:
    """Return the object in a datagram. Raises RemoteProtocolError.

    True, False and None are accepted as JSON's true, false and null. `parse_constant` converts NaN, Infinity and
    -Infinity.
    """
    if len(datagram) > MAX_DATAGRAM_BYTES:
        raise RemoteProtocolError(f"The packet has {len(datagram)} bytes (limit {MAX_DATAGRAM_BYTES}).")
    try:
        text = bytes(datagram).decode()
    except UnicodeDecodeError as error:
        raise RemoteProtocolError(f"The packet is not UTF-8: {error.reason} at byte {error.start}.") from error
    _check_nesting(text)
    text = _TOKEN.sub(lambda token: _JSON_OF_PYTHON.get(token[0], token[0]), text)
    try:
        document = json.loads(text, parse_constant=parse_constant)
    except json.JSONDecodeError as error:
        raise RemoteProtocolError(f"The packet{fault_in(text, error.msg, error.pos)}") from error
    except (ValueError, RecursionError) as error:  # for example a number of thousands of digits
        raise RemoteProtocolError(f"The packet can't be read: {error}") from error
    if not isinstance(document, dict):
        raise RemoteProtocolError(f"The packet is {shown(document)}, not an object.")
    return document


def _check_nesting(text: str) -> None:
    """Refuse nesting that may overflow a recursive parser, whose limit depends on the interpreter."""
    depth = 0
    for token in _TOKEN.finditer(text):
        if token[0] in ("[", "{"):
            depth += 1
        elif token[0] in ("]", "}"):
            depth -= 1
        if depth > MAX_NESTING:
            raise RemoteProtocolError(f"The packet is nested more than {MAX_NESTING} deep.")


# Navdata blocks.


_DEMO = "demo"
_VISION_DETECT = "visiondetect"
#: Fields that identify a block without a type, as no other block has them.
_OF_DEMO = frozenset({"ctrl_state", "theta", "phi", "psi"})
_DEMO_BLOCK, _VISION_BLOCK, _FEATURE = JsonObject(Demo), JsonObject(VisionDetect), JsonObject(Feature)


def _block(document: dict[str, Any]) -> Navdata:
    kind = document.get("type", "")
    if not isinstance(kind, str):
        raise RemoteProtocolError(f"type is {shown(kind)}, not a string.")
    if kind == _DEMO or (not kind and document.keys() >= _OF_DEMO):
        return _DEMO_BLOCK.read_document(document)
    if kind == _VISION_DETECT or (not kind and document.keys() == {"features"}):
        return _VISION_BLOCK.read_document({"features": [], **document})
    return OtherNavdata(kind, {name: value for name, value in document.items() if name != "type"})


def _document(navdata: Navdata) -> dict[str, Any]:
    """Return the document of a block. Raises ValueError for a block that a reader would refuse."""
    if isinstance(navdata, Demo):
        return {"type": _DEMO, **_DEMO_BLOCK.write(navdata)}
    if isinstance(navdata, VisionDetect):
        return {"type": _VISION_DETECT, **_VISION_BLOCK.write(navdata)}
    return {**({"type": navdata.type} if navdata.type else {}), **navdata.fields}


# The two ends of the protocol.


#: UDP port of the GUI for control packets.
DEFAULT_PORT = 5560
#: UDP port of the controllers' hosts for navdata, and the GUI's source port of navdata.
DEFAULT_NAVDATA_PORT = 5561
DEFAULT_NAVDATA_SOURCE_PORT = 3456
DEFAULT_VIDEO_PORT = 5562
DEFAULT_VIDEO_SOURCE_PORT = 3457
FIRST_SEQ = 1  # always takes effect: a controller starts over
MAX_SEQ = 2**63 - 1


class ControllerConnection(MessageSource[Navdata]):
    """Controller's end: sends complete states, numbered from 1, and receives navdata on another port.

    A refused datagram does not affect later ones.
    """

    def __init__(self) -> None:
        super().__init__()
        #: Number of the next packet. Read only.
        self.next_seq = FIRST_SEQ

    def send(self, controls: Controls) -> bytes:
        """Return the next datagram. Raises LocalProtocolError for invalid values."""
        datagram = self._datagram(self.next_seq, controls)
        self.next_seq += 1
        return datagram

    def send_urgent(self, controls: Controls) -> tuple[bytes, ...]:
        """Return datagrams of one packet that a receiver takes whatever it has received. Raises LocalProtocolError.

        They are number 1, twice because one may be lost, then the next number: without it, controllers with lower ones
        would get in.
        """
        first = self._datagram(FIRST_SEQ, controls)
        self.next_seq = max(self.next_seq, FIRST_SEQ + 1)
        return first, first, self.send(controls)

    def peek_urgent(self, *packets: Controls) -> tuple[bytes, ...]:
        """Return what `send_urgent` would for each of these, without sending it."""
        seq = self.next_seq
        try:
            return tuple(datagram for each in packets for datagram in self.send_urgent(each))
        finally:
            self.next_seq = seq

    def _datagram(self, seq: int, controls: Controls) -> bytes:
        if not isinstance(controls, Controls):
            raise LocalProtocolError(f"A controller does not send {type(controls).__name__}.")
        try:
            state = _CONTROLS.write(controls)
        except RefusedValueError as error:
            raise LocalProtocolError(str(error).removeprefix(".")) from error
        return _encoded({"seq": seq, "state": state})

    def receive_data(self, datagram: bytes | bytearray | memoryview) -> None:
        """Receive a whole datagram of navdata, for `next_event`."""
        self._queue.read(_read_navdata, datagram)


class ReceiverConnection(MessageSource[ControlPacket | LatePacket]):
    """GUI's end: receives control packets, and sends navdata.

    A refused datagram changes nothing, and does not affect later ones.
    """

    def __init__(self, complete_states_only: bool = False) -> None:
        """Follow the document. Like the real receiver, accept 0 and 1 for buttons and any seq, and clamp axes.

        True, False and None are accepted, too, which the document shows although they are not JSON.
        `complete_states_only`: refuse a packet without all controls, like the real receiver.
        """
        super().__init__()
        self._complete_states_only = complete_states_only
        # The document asks controllers to release hover, so it may be pressed at the start.
        self._controls = Controls()
        self._newest_seq: float | None = None

    def send(self, block: Navdata) -> bytes:
        """Return the datagram of a block of navdata.

        Raises LocalProtocolError for a block that a controller would refuse, or mistake for another one.
        """
        if not isinstance(block, Navdata):
            raise LocalProtocolError(f"A GUI does not send {type(block).__name__}.")
        try:
            datagram = _encoded(_document(block))
            is_same = _read_navdata(datagram) == block
        except (RemoteProtocolError, AttributeError, TypeError, ValueError, RecursionError) as error:
            raise LocalProtocolError(f"{shown(block)} can't be sent: {error}.") from error
        if not is_same:
            raise LocalProtocolError(f"{shown(block)} can't be sent: it would be read as another block.")
        return datagram

    def receive_data(self, datagram: bytes | bytearray | memoryview) -> None:
        """Receive a whole datagram, for `next_event`."""
        self._queue.read(self._read, datagram)

    def peek(self, datagram: bytes | bytearray | memoryview) -> ControlPacket | LatePacket:
        """Return the event of a whole datagram, without receiving it. Raises RemoteProtocolError for a refused one."""
        document = parse(datagram)
        seq = _seq(document)
        if self._newest_seq is not None and seq != FIRST_SEQ and seq <= self._newest_seq:
            return LatePacket(seq, self._newest_seq)
        return ControlPacket(seq, self._merged(document.get("state", {})))

    def _read(self, datagram: bytes | bytearray | memoryview) -> ControlPacket | LatePacket:
        event = self.peek(datagram)
        if isinstance(event, ControlPacket):
            self._controls, self._newest_seq = event.controls, event.seq
        return event

    def _merged(self, state: Any) -> Controls:
        """Merge a state into the controls in force. Raises RemoteProtocolError."""
        if not isinstance(state, dict):
            raise RemoteProtocolError(f"state is {shown(state)}, not an object.")
        missing = [name for name in (*BUTTONS, *AXES) if name not in state]
        if missing and self._complete_states_only:
            raise RemoteProtocolError(f"state lacks {', '.join(missing)}, but complete states are required.")
        state = {name: _tightened(name, value) for name, value in state.items()}
        return _CONTROLS.read_document(asdict(self._controls) | state)


def _encoded(document: dict[str, Any]) -> bytes:
    return json.dumps(document, allow_nan=False, separators=(",", ":")).encode()


def _read_navdata(datagram: bytes | bytearray | memoryview) -> Navdata:
    # The GUI is a Python program, which writes NaN and Infinity for such values of the drone.
    return _block(parse(datagram, parse_constant=float))


def _seq(document: dict[str, Any]) -> float:
    if "seq" not in document:
        raise RemoteProtocolError("The packet has no seq.")
    seq = document["seq"]
    if not is_number(seq) or not 0 <= seq <= MAX_SEQ:
        raise RemoteProtocolError(f"seq is {shown(seq)}, not a number from 0 to 2^63 - 1.")
    whole = whole_number(seq)
    return seq if whole is None else whole


def _tightened(name: str, value: Any) -> Any:
    """Return a value as the receiver interprets it, if it accepts it."""
    if not is_number(value) or (isinstance(value, float) and not math.isfinite(value)):
        return value
    if name in BUTTONS:
        return bool(value) if value in (0, 1) else value
    return DEFLECTION.clamped(value)
