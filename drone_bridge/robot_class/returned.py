# SPDX-License-Identifier: Apache-2.0
"""What the methods of a Robot return, checked where they return it, and raise: each in words that name the method."""

from __future__ import annotations

import functools
import time
import traceback
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import get_ident
from types import CodeType
from typing import Any

from drone_bridge.session.obstacles import Obstacle
from drone_bridge.wire.events import RemoteProtocolError

#: Function that returns a result, perhaps converted. Raises TypeError or ValueError for a wrong one.
Check = Callable[[Any], Any]
#: Number of slow calls within SLOW_S seconds from which a method is slow, not the machine.
SLOW_CALLS, SLOW_S = 3, 5.0
#: Methods that each thread is in, and the times of their calls, s.
_running: defaultdict[int, list[tuple[str, float]]] = defaultdict(list)
#: How long a method may take, s: commands and reports wait meanwhile, and beyond 0.3 s they are stale.
METHOD_S = 0.1
#: Calls that took longer, newest last: the method, its duration and end, s.
_slow: deque[tuple[str, float, float]] = deque(maxlen=SLOW_CALLS)


#: Folder of the code that calls the methods, and descriptions in it.
_KIT = Path(__file__).parent.parent
_OURS = _KIT / "robots", *Path(__file__).parent.glob("two_wheels*.py")


def _is_of_kit(code: CodeType) -> bool:
    path = Path(code.co_filename)
    return path.is_relative_to(_KIT) and not any(map(path.is_relative_to, _OURS))


class WrongResultError(RemoteProtocolError):
    """Result of a wrong type, which no received data excuse. The text names the method and what it must return."""


def described(error: BaseException) -> str:
    """Return an error of a description, a clause: its line, as in "my_robot.py:45, in decode_report", and its text."""
    walked = traceback.walk_tb(error.__traceback__)
    frames = [(frame.f_code, line) for frame, line in walked if not _is_of_kit(frame.f_code)]
    text = str(error).strip().rstrip(".")
    if type(error) is not ValueError or not text:
        text = f"{type(error).__name__}: {text}".rstrip(": ")
    if not frames or isinstance(error, WrongResultError):
        return str(error).strip().rstrip(".") or text
    code, line = [each for each in frames if each[0].co_filename == frames[0][0].co_filename][-1]
    return f"{Path(code.co_filename).name}:{line}, in {code.co_name}: {text}"


def stuck(limit_s: float) -> str:
    """Return the name of a method that has not returned within a limit, or ""."""
    late_s = time.monotonic() - limit_s
    return next((name for calls in tuple(_running.values()) for name, at_s in calls[-1:] if at_s < late_s), "")


def slow_method() -> str:
    """Return the newest slow method with its duration, a clause, or "" without SLOW_CALLS slow calls in SLOW_S."""
    found = [each for each in tuple(_slow) if time.monotonic() - each[2] < SLOW_S]
    if len(found) < SLOW_CALLS:
        return ""
    name, took_s, _ = found[-1]
    return Obstacle.SLOW_METHOD.reason(method=name, took=f"{took_s:.2f} s", limit=f"{METHOD_S:.2f} s")


def checked(name: str, method: Callable[..., Any], check: Check, expected: str) -> Callable[..., Any]:
    """Return a method whose result is checked. Raises WrongResultError, and ValueError for sys.exit()."""
    code = getattr(method, "__code__", None)
    place = f" ({Path(code.co_filename).name}:{code.co_firstlineno})" if code and not _is_of_kit(code) else ""

    @functools.wraps(method)
    def call(*arguments: Any, **options: Any) -> Any:
        _running[get_ident()].append((name, time.monotonic()))
        try:
            result = method(*arguments, **options)
        except SystemExit as error:
            raise ValueError(f"{name}() has called sys.exit({error.code!r})") from None
        finally:
            _, began_s = _running[get_ident()].pop()
            if (ended_s := time.monotonic()) - began_s > METHOD_S:
                _slow.append((name, ended_s - began_s, ended_s))
        try:
            return check(result)
        except (TypeError, ValueError):
            raise WrongResultError(f"{name}() must return {expected}, and returned {result!r:.60}{place}") from None

    return call


def one_of(*types: type) -> Check:
    """Return a check for types. A bytearray or memoryview also counts as bytes, and becomes bytes."""

    def check(result: Any) -> Any:
        if bytes in types and isinstance(result, bytearray | memoryview):
            return bytes(result)
        if not isinstance(result, types):
            raise TypeError
        return result

    return check


packet: Check = one_of(bytes)


def several(*types: type) -> Check:
    """Return a check for types, or a tuple of them. A NamedTuple of these types is no such tuple."""
    one = one_of(*types)
    return lambda result: tuple(map(one, result)) if type(result) is tuple else one(result)


def two_packets(result: Any) -> tuple[bytes, bytes]:
    """See Check."""
    neutral, last = one_of(tuple)(result)
    return packet(neutral), packet(last)


def steps(name: str, result: Any) -> Iterator[Any]:
    """Return an iterator whose steps are checked when they are yielded: the handshake of a method with this name."""
    following = checked(
        name, lambda iterator: next(iterator, None), _step, "steps: bytes, or bytes and a test of their answer"
    )
    return iter(functools.partial(following, iter(result)), None)


def _step(result: Any) -> Any:
    if result is None or not isinstance(result, tuple):
        return None if result is None else packet(result)
    first, test = result
    if not callable(test):
        raise TypeError
    return (first if callable(first) else packet(first)), test
