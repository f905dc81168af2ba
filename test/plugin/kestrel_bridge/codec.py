# SPDX-License-Identifier: Apache-2.0
"""Codec of the kestrel's datagrams.

A client sends text to the drone: `hello`, `takeoff`, `land`, and `rc left forward up turn`, each axis from -100 to 100.
The drone answers the first three by their name, as in `ok takeoff` or `error takeoff it is flying`, to the sender of
the request. `rc` is never answered. From the first `hello` on, it sends its state to the sender of `hello` ten times
per second, as `name:value;` pairs: angles in degrees (roll + lowers the right side, pitch + raises the nose, yaw +
turns right), velocities in cm/s along the level body (x forward, y right, z down), height in cm, charge in percent.
"""

from dataclasses import dataclass, fields

from drone_bridge.wire import NEED_DATA, LocalProtocolError, RemoteProtocolError
from drone_bridge.wire.events import MessageSource

DEFAULT_PORT = 7800
MAX_DATAGRAM_BYTES = 512
FULL = 100  # full deflection of an axis
MAX_NUMBER = 1_000_000  # limit of numbers in the state, beyond those of any drone


@dataclass(frozen=True, slots=True)
class Hello:
    """Request for state. Must be the first packet."""


@dataclass(frozen=True, slots=True)
class TakeOff:
    """Takeoff, answered when the drone hovers."""


@dataclass(frozen=True, slots=True)
class Land:
    """Landing, answered when the drone stands."""


@dataclass(frozen=True, slots=True)
class Steer:
    """Shares of full deflection, percent. Stays in effect until the next one."""

    left: int = 0
    forward: int = 0
    up: int = 0
    turn: int = 0  # + turns left


@dataclass(frozen=True, slots=True)
class Answer:
    """Outcome of a request, by the request's word."""

    request: str
    is_ok: bool = True
    reason: str = ""


@dataclass(frozen=True, slots=True)
class State:
    """State of the drone, in the units of the wire."""

    pitch: int
    roll: int
    yaw: int
    vx: int
    vy: int
    vz: int
    height: int
    charge: int


REQUESTS = {"hello": Hello(), "takeoff": TakeOff(), "land": Land()}
WORDS = {type(request): word for word, request in REQUESTS.items()}
STATE_NAMES = tuple(each.name for each in fields(State))


class ClientConnection(MessageSource[Answer | State]):
    """Connection of a client: sends requests and steering, receives answers and state."""

    def send(self, message: Hello | TakeOff | Land | Steer) -> bytes:
        """Return a datagram. Raises LocalProtocolError."""
        if word := WORDS.get(type(message)):
            return word.encode()
        if not isinstance(message, Steer):
            raise LocalProtocolError(f"A client sends requests and Steer, not {type(message).__name__}.")
        axes = (message.left, message.forward, message.up, message.turn)
        if not all(type(axis) is int and -FULL <= axis <= FULL for axis in axes):
            raise LocalProtocolError(f"An axis is an integer from -{FULL} to {FULL}, not as in {message}.")
        return "rc {} {} {} {}".format(*axes).encode()

    def receive_data(self, data: bytes) -> None:
        """Receive a datagram."""
        self._queue.put(_outcome(_answer_or_state, data))


class DroneConnection(MessageSource[Hello | TakeOff | Land | Steer]):
    """Connection of a drone: receives requests and steering, sends answers and state."""

    def send(self, message: Answer | State) -> bytes:
        """Return a datagram. Raises LocalProtocolError."""
        if isinstance(message, Answer):
            text = f"{'ok' if message.is_ok else 'error'} {message.request} {message.reason}".rstrip()
        elif isinstance(message, State):
            text = "".join(f"{name}:{getattr(message, name)};" for name in STATE_NAMES)
        else:
            raise LocalProtocolError(f"A drone sends Answer and State, not {type(message).__name__}.")
        data = text.encode("ascii", "replace")  # replaced characters are detected below
        if _outcome(_answer_or_state, data) != message:
            raise LocalProtocolError(f"{message} can't be encoded as text.")
        return data

    def receive_data(self, data: bytes) -> None:
        """Receive a datagram."""
        self._queue.put(_outcome(_command, data))


def _outcome(read, data):
    """Return the message in a datagram, or the error for `next_event` to raise."""
    try:
        if len(data) > MAX_DATAGRAM_BYTES:
            raise RemoteProtocolError(f"A datagram has {len(data)} bytes, and must have at most {MAX_DATAGRAM_BYTES}.")
        try:
            return read(bytes(data).decode("ascii").strip())
        except UnicodeDecodeError:
            raise RemoteProtocolError(f"A datagram is not text in ASCII: {bytes(data[:40])!r}.") from None
    except RemoteProtocolError as error:
        return error.with_traceback(None)


def _command(text: str) -> Hello | TakeOff | Land | Steer:
    if request := REQUESTS.get(text):
        return request
    word, *numbers = text.split(" ")
    if word != "rc" or len(numbers) != len(fields(Steer)):
        raise RemoteProtocolError(f"{text[:80]!r} is no command.")
    return Steer(*(_number(each, FULL) for each in numbers))


def _answer_or_state(text: str) -> Answer | State:
    word, request, reason = (*text.split(" ", 2), "", "")[:3]
    if word in ("ok", "error") and request in REQUESTS:
        return Answer(request, word == "ok", reason)
    pairs = [pair.partition(":") for pair in text.removesuffix(";").split(";")]
    values = {name: _number(value, MAX_NUMBER) for name, _, value in pairs if name in STATE_NAMES}
    if missing := [name for name in STATE_NAMES if name not in values]:
        raise RemoteProtocolError(f"{text[:80]!r} is no answer, and as state it lacks {', '.join(missing)}.")
    return State(**values)  # further values of newer drones are ignored


def _number(text: str, most: int) -> int:
    digits = text.removeprefix("-")
    if not digits.isdecimal() or len(digits) > len(str(most)) or int(digits) > most:
        raise RemoteProtocolError(f"{text[:80]!r} is no integer from -{most} to {most}.")
    return int(text)


__all__ = ["NEED_DATA", "Answer", "ClientConnection", "DroneConnection", "Hello", "Land", "State", "Steer", "TakeOff"]
