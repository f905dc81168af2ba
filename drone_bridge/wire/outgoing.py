# SPDX-License-Identifier: Apache-2.0
"""What goes out: messages whose numbers are brought into the wire's range, and neutral in place of what has none.

A number that is computed may miss the end of its range by a rounding error: a tilt of 1.0000000000000002 is full tilt,
and no reason to lose a link. So bridges and servers send what they have computed by `encoded`. The codecs themselves
clamp nothing: they refuse what the wire can't carry, without exception.
"""

import math
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, NamedTuple, TypeVar, get_type_hints

from drone_bridge.wire.events import LocalProtocolError

#: The count of messages of our own that the wire can't carry.
UNENCODABLE = "unencodable_messages"

MessageT = TypeVar("MessageT")
EncodedT = TypeVar("EncodedT")


class Range(NamedTuple):
    """The range of a command's number, beyond which its end is meant. A field is annotated with it.

    Not for what is measured, nor for numbers that name something: out of range they mean nothing, and are refused.
    """

    least: float
    most: float

    def holds(self, value: float) -> bool:
        """Return whether a number is within; NaN never is."""
        return self.least <= value <= self.most

    def clamped(self, value: Any) -> Any:
        """Return the nearest number within. What is not finite, and what is no number, is for the codec to refuse."""
        is_number = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
        return min(max(value, self.least), self.most) if is_number else value


def fitted(message: MessageT) -> MessageT:
    """Return a message with each number that has a Range within it; itself if all are."""
    kind: Any = type(message)
    changed = {}
    for name, allowed in _ranges(kind):
        now = getattr(message, name)
        if (fit := allowed.clamped(now)) is not now:
            changed[name] = fit
    return replace(message, **changed) if changed else message  # type: ignore[type-var]


def encoded(
    send: Callable[[MessageT], EncodedT],
    message: MessageT,
    neutral: MessageT | None,
    refuse: Callable[[str], None],
) -> EncodedT | None:
    """Return what `send` makes of a message of our own that was brought into the wire's range; None if nothing.

    Args:
        send: encodes a message; raises LocalProtocolError.
        message: to be sent.
        neutral: what goes out instead of a message that can't be encoded all the same, as one with NaN; if any.
        refuse: gets a sentence about such a message.
    """
    try:
        return send(fitted(message))
    except LocalProtocolError as error:
        instead = "Nothing" if neutral is None else "The neutral command"
        refuse(f"{type(message).__name__} can't be sent: {error} {instead} is sent instead.")
    return None if neutral is None else encoded(send, neutral, None, refuse)


@cache
def _ranges(kind: type) -> tuple[tuple[str, Range], ...]:
    """Return the fields of a message that have a range, with it."""
    if not is_dataclass(kind):
        return ()
    hints = get_type_hints(kind, include_extras=True)
    extras = [(each.name, extra) for each in fields(kind) for extra in getattr(hints[each.name], "__metadata__", ())]
    return tuple((name, extra) for name, extra in extras if isinstance(extra, Range))
