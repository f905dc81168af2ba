# SPDX-License-Identifier: Apache-2.0
"""CommandTopic: one command topic, with the refusals of its messages."""

import functools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from drone_bridge.motion.body_velocity import STILL, BodyVelocity
from drone_bridge.ros.commands.command_ages import CommandAges
from drone_bridge.session.arbiter import Arrival, Entrance
from drone_bridge.session.command_gaps import CommandGaps

RawT = TypeVar("RawT")
Refusal = Callable[[Any], str | None]
"""Returns why a message is refused, a sentence, or None."""


@dataclass
class CommandTopic(Generic[RawT]):
    """One topic of velocities or raw commands."""

    name: str
    message_type: type[Any]
    full_name: str
    #: Converts a message that is not refused, or raises ValueError with a sentence.
    read: Callable[[Any], BodyVelocity | RawT]
    #: In their order: the first sentence counts.
    refusals: Sequence[Refusal]
    #: Age check of stamped commands; None if they have no stamp.
    ages: CommandAges | None
    entrance: Entrance
    gaps: CommandGaps = field(default_factory=CommandGaps)
    newest: Arrival[RawT] | None = None
    #: Time of the last message that was refused for its stamp, s.
    aged_s: float = -math.inf

    def is_zero_velocity(self, message: Any) -> bool:
        """Return whether a message, even one that is refused, is a zero velocity."""
        try:
            return self.read(message) == STILL
        except ValueError:
            return False


def non_finite_field(message: Any) -> str | None:
    """Return a sentence for a message with a number that is not finite, else None."""
    for name, get in _float_getters(message.__class__):
        if not math.isfinite(value := get(message)):
            return f"{name} is {value} but must be a finite number."
    return None


def has_only_zeros(message: Any) -> bool:
    """Return whether all numbers of a message are zero."""
    return not any(get(message) for _, get in _float_getters(message.__class__))


@functools.cache
def _float_getters(message_type: type) -> tuple[tuple[str, Callable[[Any], float]], ...]:
    """Return name, such as angular.x, and getter of each float. Cached: the search is slower than a command."""

    def names(message: Any, prefix: str) -> Iterable[str]:
        for name in message.get_fields_and_field_types():
            value = getattr(message, name)
            if isinstance(value, float):
                yield f"{prefix}{name}"
            elif hasattr(value, "get_fields_and_field_types"):
                yield from names(value, f"{prefix}{name}.")

    return tuple((name, operator.attrgetter(name)) for name in names(message_type(), ""))
