# SPDX-License-Identifier: Apache-2.0
"""The dronegui control protocol: one JSON document per UDP datagram, from a controller to an AR.Drone's GUI.

Nothing ever comes back. A packet carries a sequence number and the state of some controls; the receiver keeps the
state of the others. Signs are those of the wire: roll + goes right, pitch + goes backward, yaw + turns right,
gas + climbs; see docs/dronegui.md.
"""

import json
import math
import re
import reprlib
from collections import deque
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from drone_bridge.protocols.errors import LocalProtocolError, RemoteProtocolError
from drone_bridge.protocols.events import NEED_DATA, NeedData

__all__ = ["NEED_DATA", "ControlPacket", "ControllerConnection", "Controls", "LatePacket", "ReceiverConnection"]

DEFAULT_PORT: Final = 5560
FIRST_SEQ: Final = 1  # takes effect whatever came before: a controller that starts anew
MAX_SEQ: Final = 2**63 - 1
MAX_DATAGRAM_BYTES: Final = 8192
MAX_NESTING: Final = 16  # of arrays and objects; the protocol itself needs 2

BUTTONS: Final = ("take_off", "reset", "hover")
AXES: Final = ("roll", "pitch", "yaw", "gas")

# A string, closed or not; a bracket; a Python literal. None of the three can start inside another one.
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"?|[][{}]|\b(?:True|False|None)\b', re.DOTALL)
_JSON_OF_PYTHON: Final = {"True": "true", "False": "false", "None": "null"}


@dataclass(frozen=True, slots=True)
class Controls:
    """The state of all controls: three buttons, pressed or not, and four axes from -1 to 1.

    `take_off` (a toggle: it lands a drone that flies) and `reset` (an emergency stop when flying) act when they are
    pressed, `hover` for as long as it is: the axes are then ignored.
    """

    take_off: bool = False
    reset: bool = False
    hover: bool = True
    roll: float = 0.0  # share of the greatest angle, + goes right
    pitch: float = 0.0  # share of the greatest angle, + goes backward
    yaw: float = 0.0  # share of the greatest rate, + turns right
    gas: float = 0.0  # share of the greatest speed, + climbs


@dataclass(frozen=True, slots=True)
class ControlPacket:
    """A packet that took effect: all controls as they are from now on."""

    seq: int
    controls: Controls


@dataclass(frozen=True, slots=True)
class LatePacket:
    """A packet that came after one with the same or a higher number, and was discarded."""

    seq: int
    newest_seq: int


class ControllerConnection:
    """The controller's side: complete states go out, numbered from 1."""

    def __init__(self) -> None:
        self._next_seq = FIRST_SEQ

    @property
    def next_seq(self) -> int:
        """The number of the packet that `send` makes next."""
        return self._next_seq

    def send(self, controls: Controls) -> bytes:
        """Return the next datagram. Raises LocalProtocolError for what the protocol does not allow."""
        state = {field.name: getattr(controls, field.name) for field in fields(controls)}
        for name, value in state.items():
            if complaint := _complaint(name, value):
                raise LocalProtocolError(complaint)
        datagram = json.dumps({"seq": self._next_seq, "state": state}, allow_nan=False, separators=(",", ":")).encode()
        self._next_seq += 1
        return datagram


class ReceiverConnection:
    """The GUI's side: datagrams come in, `ControlPacket`s and `LatePacket`s come out.

    A datagram that is refused changes nothing, and those after it are read as if it had not come.
    """

    def __init__(self, python_literals: bool = False, complete_states_only: bool = False) -> None:
        """Follow the document, unless told to follow what programs really do.

        Args:
            python_literals: accept True, False and None, which the document shows and JSON does not know.
            complete_states_only: refuse a packet that leaves out a control, as the real receiver does.
        """
        self._python_literals = python_literals
        self._complete_states_only = complete_states_only
        # What the document asks of a controller, to let go of hover, tells that it may be pressed at the start.
        self._controls = Controls()
        self._newest_seq: int | None = None
        self._outcomes: deque[ControlPacket | LatePacket | RemoteProtocolError] = deque()

    def receive_data(self, datagram: bytes | bytearray | memoryview) -> None:
        """Take one whole datagram, of which `next_event` then tells what it was."""
        try:
            self._outcomes.append(self._read(datagram))
        except RemoteProtocolError as error:
            self._outcomes.append(error)

    def next_event(self) -> ControlPacket | LatePacket | NeedData:
        """Return what the next datagram was, or NEED_DATA. Raises RemoteProtocolError, once per refused datagram."""
        if not self._outcomes:
            return NEED_DATA
        outcome = self._outcomes.popleft()
        if isinstance(outcome, RemoteProtocolError):
            raise outcome
        return outcome

    def _read(self, datagram: bytes | bytearray | memoryview) -> ControlPacket | LatePacket:
        document = _parse(datagram, self._python_literals)
        if not isinstance(document, dict):
            raise RemoteProtocolError(f"The packet is {_shown(document)}, and has to be an object.")
        seq = _seq(document)
        if self._newest_seq is not None and seq != FIRST_SEQ and seq <= self._newest_seq:
            return LatePacket(seq, self._newest_seq)
        controls = replace(self._controls, **self._state(document))
        self._newest_seq, self._controls = seq, controls
        return ControlPacket(seq, controls)

    def _state(self, document: dict[str, Any]) -> dict[str, Any]:
        """Return the controls that the packet carries, each of its type."""
        state = document.get("state", {})
        if not isinstance(state, dict):
            raise RemoteProtocolError(f"state is {_shown(state)}, and has to be an object.")
        carried = {name: state[name] for name in (*BUTTONS, *AXES) if name in state}
        for name, value in carried.items():
            if complaint := _complaint(name, value):
                raise RemoteProtocolError(complaint)
        missing = [name for name in (*BUTTONS, *AXES) if name not in state]
        if missing and self._complete_states_only:
            raise RemoteProtocolError(f"state lacks {', '.join(missing)}, and has to be complete.")
        return {name: value if name in BUTTONS else float(value) for name, value in carried.items()}


def _parse(datagram: bytes | bytearray | memoryview, python_literals: bool) -> Any:
    """Return the value of one JSON document. Raises RemoteProtocolError, whatever the datagram is."""
    if len(datagram) > MAX_DATAGRAM_BYTES:
        raise RemoteProtocolError(
            f"The packet has more than {MAX_DATAGRAM_BYTES} bytes ({len(datagram)}), which no state of controls needs."
        )
    try:
        text = bytes(datagram).decode()
    except UnicodeDecodeError as error:
        raise RemoteProtocolError(f"The packet is no UTF-8: {error.reason} at byte {error.start}.") from error
    _check_nesting(text)
    if python_literals:
        text = _TOKEN.sub(lambda token: _JSON_OF_PYTHON.get(token[0], token[0]), text)
    try:
        return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        raise RemoteProtocolError(f"The packet is no JSON: {error.msg} at character {error.pos}.") from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, among others
        raise RemoteProtocolError(f"The packet can't be read: {error}") from error


def _check_nesting(text: str) -> None:
    """Refuse what a parser that calls itself could choke on; how deep that is depends on the interpreter."""
    depth = 0
    for token in _TOKEN.finditer(text):
        if token[0] in ("[", "{"):
            depth += 1
        elif token[0] in ("]", "}"):
            depth -= 1
        if depth > MAX_NESTING:
            raise RemoteProtocolError(f"The packet is nested more than {MAX_NESTING} deep.")


def _refuse_constant(name: str) -> None:
    raise RemoteProtocolError(f"The packet contains {name}, which is no JSON.")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its pairs. Of two values for one control nobody can tell which was meant."""
    result: dict[str, Any] = {}
    for name, value in pairs:
        if name in result:
            raise RemoteProtocolError(f"The packet names {_shown(name)} twice in one object.")
        result[name] = value
    return result


def _seq(document: dict[str, Any]) -> int:
    if "seq" not in document:
        raise RemoteProtocolError("The packet has no seq.")
    seq = document["seq"]
    if type(seq) is not int or not 0 <= seq <= MAX_SEQ:
        raise RemoteProtocolError(f"seq is {_shown(seq)}, and has to be a whole number from 0 to 2^63 - 1.")
    return seq


def _complaint(name: str, value: Any) -> str | None:
    """Return a sentence about a value that the control can't have."""
    if name in BUTTONS:
        return None if isinstance(value, bool) else f"{name} is {_shown(value)}, and has to be true or false."
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or (isinstance(value, float) and not math.isfinite(value)) or not -1 <= value <= 1:
        return f"{name} is {_shown(value)}, and has to be a number from -1 to 1."
    return None


def _shown(value: Any) -> str:
    """Return a value for a sentence, shortened."""
    return reprlib.repr(value)
