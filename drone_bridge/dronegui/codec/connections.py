# SPDX-License-Identifier: Apache-2.0
"""The two ends of the conversation: a controller, and the GUI that receives its packets."""

import json
import math
from dataclasses import fields, replace
from typing import Any, Final

from drone_bridge.dronegui.codec import navdata
from drone_bridge.dronegui.codec.documents import is_number, parse, shown
from drone_bridge.dronegui.codec.messages import AXES, BUTTONS, ControlPacket, Controls, LatePacket, Navdata
from drone_bridge.wire.events import EventQueue, EventSource, LocalProtocolError, NeedData, RemoteProtocolError

#: UDP, where the GUI takes control packets.
DEFAULT_PORT: Final = 5560
#: UDP, where the GUI sends navdata to, on the hosts of its controllers, and where it sends it from.
DEFAULT_NAVDATA_PORT: Final = 5561
DEFAULT_NAVDATA_SOURCE_PORT: Final = 3456
FIRST_SEQ: Final = 1  # takes effect whatever came before: a controller that starts over
MAX_SEQ: Final = 2**63 - 1


class ControllerConnection(EventSource[Navdata]):
    """The controller's side: sends complete states, numbered from 1, and receives navdata on another port.

    A datagram that is refused changes nothing for those after it.
    """

    def __init__(self) -> None:
        self._next_seq = FIRST_SEQ
        self._queue: EventQueue[Navdata] = EventQueue()

    @property
    def next_seq(self) -> int:
        """The number of the next packet."""
        return self._next_seq

    def send(self, controls: Controls) -> bytes:
        """Return the next datagram. Raises LocalProtocolError for what the protocol does not allow."""
        if not isinstance(controls, Controls):
            raise LocalProtocolError(f"A controller does not send {type(controls).__name__}.")
        state = {field.name: getattr(controls, field.name) for field in fields(controls)}
        for name, value in state.items():
            if problem := _problem_with(name, value):
                raise LocalProtocolError(problem)
        datagram = _encoded({"seq": self._next_seq, "state": state})
        self._next_seq += 1
        return datagram

    def receive_data(self, datagram: bytes | bytearray | memoryview) -> None:
        """Receive a whole datagram of navdata, for `next_event`."""
        try:
            self._queue.put(_read_navdata(datagram))
        except RemoteProtocolError as error:
            self._queue.put(error)

    def next_event(self) -> Navdata | NeedData:
        """Return the next block of navdata, or NEED_DATA. Raises RemoteProtocolError, once per refused datagram."""
        return self._queue.next_event()


class ReceiverConnection(EventSource[ControlPacket | LatePacket]):
    """The GUI's side: receives control packets, and sends navdata.

    A datagram that is refused changes nothing, and those after it are read as if it had not come.
    """

    def __init__(
        self, python_literals: bool = False, complete_states_only: bool = False, loose_values: bool = False
    ) -> None:
        """Follow the document, except where asked to follow real programs.

        Args:
            python_literals: accept True, False and None, which the document shows and JSON does not know.
            complete_states_only: refuse a packet that leaves out a control, as the real receiver does.
            loose_values: accept 0 and 1 for buttons and a fractional seq, and clamp axes, as the real receiver does.
        """
        self._python_literals = python_literals
        self._complete_states_only = complete_states_only
        self._loose_values = loose_values
        # What the document asks of a controller, to let go of hover, tells that it may be pressed at the start.
        self._controls = Controls()
        self._newest_seq: float | None = None
        self._queue: EventQueue[ControlPacket | LatePacket] = EventQueue()

    def send(self, block: Navdata) -> bytes:
        """Return the datagram of a block of navdata.

        Raises LocalProtocolError for one that a controller would refuse, or take for another one.
        """
        if not isinstance(block, Navdata):
            raise LocalProtocolError(f"A GUI does not send {type(block).__name__}.")
        try:
            datagram = _encoded(navdata.write(block))
            is_same = _read_navdata(datagram) == block
        except (RemoteProtocolError, AttributeError, TypeError, ValueError, RecursionError) as error:
            raise LocalProtocolError(f"{shown(block)} can't be sent: {error}") from error
        if not is_same:
            raise LocalProtocolError(f"{shown(block)} can't be sent: it would be read as something else.")
        return datagram

    def receive_data(self, datagram: bytes | bytearray | memoryview) -> None:
        """Receive a whole datagram, for `next_event`."""
        try:
            self._queue.put(self._read(datagram))
        except RemoteProtocolError as error:
            self._queue.put(error)

    def next_event(self) -> ControlPacket | LatePacket | NeedData:
        """Return the next event, or NEED_DATA. Raises RemoteProtocolError, once per refused datagram."""
        return self._queue.next_event()

    def _read(self, datagram: bytes | bytearray | memoryview) -> ControlPacket | LatePacket:
        document = parse(datagram, self._python_literals)
        seq = _seq(document, self._loose_values)
        if self._newest_seq is not None and seq != FIRST_SEQ and seq <= self._newest_seq:
            return LatePacket(seq, self._newest_seq)
        controls = replace(self._controls, **self._state(document))
        self._newest_seq, self._controls = seq, controls
        return ControlPacket(seq, controls)

    def _state(self, document: dict[str, Any]) -> dict[str, Any]:
        """Return the controls in the packet, converted to their types."""
        state = document.get("state", {})
        if not isinstance(state, dict):
            raise RemoteProtocolError(f"state is {shown(state)}, and has to be an object.")
        carried = {name: state[name] for name in (*BUTTONS, *AXES) if name in state}
        if self._loose_values:
            carried = {name: _tightened(name, value) for name, value in carried.items()}
        for name, value in carried.items():
            if problem := _problem_with(name, value):
                raise RemoteProtocolError(problem)
        missing = [name for name in (*BUTTONS, *AXES) if name not in state]
        if missing and self._complete_states_only:
            raise RemoteProtocolError(f"state lacks {', '.join(missing)}, and has to be complete.")
        return {name: value if name in BUTTONS else float(value) for name, value in carried.items()}


def _encoded(document: dict[str, Any]) -> bytes:
    return json.dumps(document, allow_nan=False, separators=(",", ":")).encode()


def _read_navdata(datagram: bytes | bytearray | memoryview) -> Navdata:
    # The GUI is written in Python, which writes NaN and Infinity where the drone has them.
    return navdata.read(parse(datagram, parse_constant=float))


def _seq(document: dict[str, Any], may_be_fractional: bool) -> float:
    if "seq" not in document:
        raise RemoteProtocolError("The packet has no seq.")
    seq = document["seq"]
    is_of_type = is_number(seq) if may_be_fractional else type(seq) is int
    if not is_of_type or not 0 <= seq <= MAX_SEQ:
        kind = "number" if may_be_fractional else "whole number"
        raise RemoteProtocolError(f"seq is {shown(seq)}, and has to be a {kind} from 0 to 2^63 - 1.")
    return seq  # type: ignore[no-any-return] # which was just checked


def _tightened(name: str, value: Any) -> Any:
    """Return how the real receiver interprets a value, if it accepts it."""
    if not is_number(value) or (isinstance(value, float) and not math.isfinite(value)):
        return value
    if name in BUTTONS:
        return bool(value) if value in (0, 1) else value
    return max(-1.0, min(1.0, value))


def _problem_with(name: str, value: Any) -> str | None:
    """Return a sentence about an invalid value of a control."""
    if name in BUTTONS:
        return None if isinstance(value, bool) else f"{name} is {shown(value)}, and has to be true or false."
    if not is_number(value) or (isinstance(value, float) and not math.isfinite(value)) or not -1 <= value <= 1:
        return f"{name} is {shown(value)}, and has to be a number from -1 to 1."
    return None
