# SPDX-License-Identifier: Apache-2.0
"""Outgoing messages: clamp numbers to the wire's range, and fall back to neutral if a message can't be encoded.

A computed number may exceed its range by a rounding error: a tilt of 1.0000000000000002 is full tilt, and no reason to
lose a link. Therefore bridges and servers send computed messages through `encoded`. The codecs never clamp: they refuse
every value that the wire can't carry.
"""

import math
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, NamedTuple, TypeVar, get_type_hints

from drone_bridge.wire.counters import ProblemCounter
from drone_bridge.wire.events import LocalProtocolError

#: Counter of our own messages that the wire can't carry.
UNENCODABLE = ProblemCounter("unencodable_messages")

MessageT = TypeVar("MessageT")
EncodedT = TypeVar("EncodedT")


class Secret(bytes):
    """Bytes of which a wire log keeps the number alone."""


class Range(NamedTuple):
    """Range of a command's number, as an annotation of its field. A value beyond it is clamped.

    Not for measurements or identifiers: out of range these are meaningless, and are refused.
    """

    least: float
    most: float

    def holds(self, value: float) -> bool:
        """Return whether a number is within the range. NaN never is."""
        return self.least <= value <= self.most

    def clamped(self, value: Any) -> Any:
        """Return the nearest number in the range. Other values, such as NaN, are returned for the codec to refuse."""
        is_number = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
        return min(max(value, self.least), self.most) if is_number else value


def fitted(message: MessageT) -> MessageT:
    """Return a copy of a message with its numbers clamped to their ranges, or itself if all are within."""
    kind: Any = type(message)
    changed = {}
    for name, allowed in _ranges(kind):
        now = getattr(message, name)
        if (fit := allowed.clamped(now)) is not now:
            changed[name] = fit
    return replace(message, **changed) if changed else message  # type: ignore[type-var]


def encoded(
    send: Callable[[MessageT], EncodedT], message: MessageT, neutral: MessageT | None, refuse: Callable[[str], None]
) -> EncodedT | None:
    """Encode a message of our own, clamped to the wire's range. Return None if there is nothing to send.

    Args:
        send: encodes a message; raises LocalProtocolError.
        message: the message to send.
        neutral: fallback for a message that still can't be encoded, such as one with NaN; None for no fallback.
        refuse: callback with a sentence about such a message.
    """
    try:
        return send(fitted(message))
    except LocalProtocolError as error:
        instead = "Nothing" if neutral is None else "The neutral command"
        refuse(f"{type(message).__name__} can't be sent: {error} {instead} is sent instead.")
    return None if neutral is None else encoded(send, neutral, None, refuse)


@cache
def _ranges(kind: type) -> tuple[tuple[str, Range], ...]:
    """Return the fields of a message class that have a Range, as pairs of name and range."""
    if not is_dataclass(kind):
        return ()
    hints = get_type_hints(kind, include_extras=True)
    extras = [(each.name, extra) for each in fields(kind) for extra in getattr(hints[each.name], "__metadata__", ())]
    return tuple((name, extra) for name, extra in extras if isinstance(extra, Range))
