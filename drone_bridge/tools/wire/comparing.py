# SPDX-License-Identifier: Apache-2.0
"""Compares what a side sends with what it sent in a recording."""

from collections.abc import Collection, Iterator, Sequence
from difflib import SequenceMatcher

from drone_bridge.tools.wire.decoding import Message
from drone_bridge.tools.wire.describing import differences


def compare(then: Sequence[Message], now: Sequence[Message], ignored: Collection[str] = ()) -> Iterator[str]:
    """Yield a sentence for each message that is missing, new or different.

    `ignored` has names of messages, and of their fields as in EntityData.id.
    """
    before = [message for message in then if message.name not in ignored]
    after = [message for message in now if message.name not in ignored]
    matcher = SequenceMatcher(None, [one.name for one in before], [one.name for one in after], autojunk=False)
    for tag, first, last, now_first, now_last in matcher.get_opcodes():
        if tag == "equal":
            for index, (one, other) in enumerate(
                zip(before[first:last], after[now_first:now_last], strict=True), first
            ):
                changed = [
                    change
                    for change in differences(one.meaning, other.meaning)
                    if f"{one.name}.{change.partition(' ')[0]}" not in ignored
                ]
                if changed:
                    yield f"Message {index + 1}, {one.name}: then {', then '.join(changed)}."
            continue
        for index, one in enumerate(before[first:last], first):
            yield f"Message {index + 1} is missing: {one.text}"
        for other in after[now_first:now_last]:
            yield f"New after message {last}: {other.text}"
