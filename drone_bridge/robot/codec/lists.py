# SPDX-License-Identifier: Apache-2.0
"""Reading and writing the robot protocol's lists; subsystems.py and sensors.py have them.

Their layouts differ from program to program, and nothing on the wire says which one is used. So a list is read strictly
in each known layout, and the one that ends exactly at the packet's end is taken. Nothing can be read after an entry of
an unknown type, as its size is unknown: the rest stays `opaque`. That is accepted only if the names before it look like
text; otherwise any garbage would pass.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from drone_bridge.robot.codec.wire import Reader
from drone_bridge.wire.events import LocalProtocolError
from drone_bridge.wire.layouts import Bytes, MisfitError, Numbers, check_items

UINT16: Final = Numbers("H")
REST: Final = Bytes()

ListT = TypeVar("ListT")


def encoded_count(items: Any, kind: type, missing: Any, meaning: str) -> bytes:
    """Return the number of items, including missing ones. Raises LocalProtocolError unless it is a list."""
    check_items(items, kind, meaning)
    if not isinstance(missing, int):
        raise LocalProtocolError(f"The number of missing {meaning} is {missing!r:.200}, and has to be whole.")
    return UINT16.pack(len(items) + missing, f"number of {meaning}")


def best_fit(payload: bytes, *layouts: Callable[[Reader], ListT], fallback: Callable[[Reader], ListT]) -> ListT:
    """Return the payload in the first layout that fits and reads like text, or else in the first that fits.

    If none does, the fallback is tried. Raises MisfitError, with what is wrong in the first layout.
    """
    fitting: list[ListT] = []
    problem = ""  # not the exception, whose traceback holds this frame: each would keep the other, and the lists
    for layout in layouts:
        reader = Reader(payload)
        try:
            result = layout(reader)
        except MisfitError as error:
            problem = problem or str(error)
            continue
        if reader.is_readable:
            return result
        fitting.append(result)
    if fitting:
        return fitting[0]
    try:
        return fallback(Reader(payload))
    except MisfitError:
        raise MisfitError(problem) from None


def opaque_rest(reader: Reader, smallest: int) -> bytes:
    """Return the bytes from an entry of an unknown type on, at least `smallest`, if that is credible."""
    if not reader.is_readable or reader.remaining < smallest:
        raise MisfitError("what follows an unknown type is too short, or the names are not text")
    return reader.take(reader.remaining, "rest")
