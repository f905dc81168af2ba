# SPDX-License-Identifier: Apache-2.0
"""OutputChoice: selects the command topic by its subscribers. Pure."""

from collections.abc import Collection, Sequence

RATES, VELOCITY = "cmd_rates", "cmd_vel"


class OutputChoice:
    """Command topic. The executor calls `update`; the session replaces `chosen` when it can switch."""

    def __init__(self, allowed: Sequence[str]) -> None:
        """`allowed` has the permitted topics, the preferred one first."""
        self.allowed = tuple(allowed)
        #: The published topic, and the one that should be published.
        self.chosen = self.wanted = self._seen_best = self.allowed[0]

    @property
    def is_velocity(self) -> bool:
        """Whether velocities are published."""
        return self.chosen == VELOCITY

    def update(self, subscribed: Collection[str], *, is_flying: bool) -> None:
        """Select a topic that has subscribers.

        A change takes two updates, as the subscriptions of one node are not discovered simultaneously. In flight, the
        topic changes only when it has lost its subscribers.
        """
        best = next((topic for topic in self.allowed if topic in subscribed), self.wanted)
        before, self._seen_best = self._seen_best, best
        if best == before and not (is_flying and self.wanted in subscribed):
            self.wanted = best
