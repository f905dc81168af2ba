# SPDX-License-Identifier: Apache-2.0
"""OutputChoice: which of the topics for commands is published, by their subscribers. Pure."""

from collections.abc import Collection, Sequence

RATES, VELOCITY = "cmd_rates", "cmd_vel"


class OutputChoice:
    """`look` is for the executor; `chosen` is replaced by the session, when that can be done."""

    def __init__(self, allowed: Sequence[str]) -> None:
        """`allowed` are the topics that may be published, the preferred one first."""
        self.allowed = tuple(allowed)
        #: The topic that is published, and the one that should be.
        self.chosen = self.wanted = self._seen_best = self.allowed[0]

    @property
    def is_velocity(self) -> bool:
        """Whether velocities are published."""
        return self.chosen == VELOCITY

    def look(self, subscribed: Collection[str], *, is_flying: bool) -> None:
        """Choose the topic by those that have subscribers.

        A change takes two looks, as the subscriptions of one node are not discovered at once. In flight the topic
        changes only once it has lost its subscribers.
        """
        best = next((topic for topic in self.allowed if topic in subscribed), self.wanted)
        before, self._seen_best = self._seen_best, best
        if best == before and not (is_flying and self.wanted in subscribed):
            self.wanted = best
