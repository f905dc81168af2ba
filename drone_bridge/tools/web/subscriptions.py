# SPDX-License-Identifier: Apache-2.0
"""Subscriptions that come too early.

The Foxglove server advertises a channel a moment before it accepts subscriptions to it, and drops those that come
earlier with a status message (0.30.3: "Unknown channel ID: 7"). How long that moment is depends on how busy the machine
is, so a dropped subscription is requested again.
"""

import json
import re
from dataclasses import dataclass
from typing import Final

RETRY_DELAY_S: Final = 0.1
MAX_ATTEMPTS: Final = 100
MAX_SUBSCRIPTIONS: Final = 4096  # of one viewer that are remembered
_UNKNOWN_CHANNEL: Final = re.compile(r"Unknown channel ID: (\d+)")


@dataclass
class _Wanted:
    """A subscription of a viewer."""

    channel: int
    attempts: int = 1
    is_refused: bool = False


class Subscriptions:
    """What one viewer subscribes to."""

    def __init__(self) -> None:
        self._wanted: dict[int, _Wanted] = {}  # by the viewer's number

    def note(self, frame: str) -> None:
        """Note a viewer's request. Anything else is left to the server to refuse."""
        if "ubscribe" not in frame:
            return
        try:
            request = json.loads(frame)
            if request["op"] == "subscribe":
                for each in request["subscriptions"]:
                    if len(self._wanted) < MAX_SUBSCRIPTIONS:
                        self._wanted[int(each["id"])] = _Wanted(int(each["channelId"]))
            elif request["op"] == "unsubscribe":
                for number in request["subscriptionIds"]:
                    self._wanted.pop(int(number), None)
        except (ValueError, TypeError, KeyError, RecursionError):
            return

    def refuses(self, frame: str) -> bool:
        """Return whether the server's message drops a subscription that is going to be requested again."""
        if '"status"' not in frame or not (found := _UNKNOWN_CHANNEL.search(frame)):
            return False
        refused = [each for each in self._wanted.values() if each.channel == int(found[1])]
        for each in refused:
            each.is_refused = each.attempts < MAX_ATTEMPTS
        return any(each.is_refused for each in refused)

    def request_again(self) -> str | None:
        """Return the request for what was dropped, if anything was."""
        again = {number: each for number, each in self._wanted.items() if each.is_refused}
        if not again:
            return None
        for each in again.values():
            each.attempts += 1
            each.is_refused = False
        subscriptions = [{"id": number, "channelId": each.channel} for number, each in again.items()]
        return json.dumps({"op": "subscribe", "subscriptions": subscriptions})
