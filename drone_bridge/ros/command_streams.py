# SPDX-License-Identifier: Apache-2.0
"""CommandStreams: subscriptions to streams of commands, from which executor and link take in turn.

Theory of operation:

- A command is needed when the session decides what to send, in the link's thread. So while commands flow that thread
  takes the newest one: at each decision (`take`), and at the end of a turn of its loop where the last take is
  `period_s` old (`look`). Nothing wakes the executor.
- Without a link, or without commands, the executor takes each message as it arrives, so that a single one is followed
  at once, or its publisher is told why it reaches no vehicle.

| taken by | begins | ends |
|---|---|---|
| executor | at configure; at the end of the link; IDLE_S after the last command | with the next row |
| link's thread | with work posted to it, after a command that arrived while there is a link | with the row above |

- Taking is guarded by a lock for which nobody waits: a thread that finds it taken leaves the message to the other.
- A message that is taken late is not new. What waits is dropped where the last take is over LATE_S ago, and after
  `drop_waiting`: the release of a hold, for example. A new link finds nothing, as the executor took until then.
- Reports are made at the end of a turn of the loop: logs come after what is sent.
"""

import math
import threading
from collections.abc import Callable
from typing import Any

from drone_bridge.net.link_loop import Intake
from drone_bridge.ros.protocol_node import ProtocolNode
from drone_bridge.ros.streams import Polled, newest_of, subscribe_to_stream
from drone_bridge.session.session import Actions

#: How often the link's thread takes at least, s.
PERIOD_S = 0.05
#: The same where the session sends a new command at once, s.
PROMPT_PERIOD_S = 0.02
#: After which what has waited is stale, s.
LATE_S = 0.1
#: Without a command for so long, s, the executor takes again.
IDLE_S = 1.0
#: The count of messages that were dropped because they were taken late.
DROPPED = "stale_commands"

Receive = Callable[[Any], bool]
"""Reads a message; returns whether it is a command that is followed."""


class CommandStreams(Intake):
    """The streams of one node. `add` and `drop_waiting` are for the executor, the rest for the link's thread."""

    def __init__(self, node: ProtocolNode, on_command: Callable[[], None], period_s: float | None = PERIOD_S) -> None:
        """Prepare.

        Args:
            node: whose topics they are.
            on_command: called after a command that was taken between two decisions.
            period_s: how often the link's thread takes at least; None: only the executor takes.
        """
        self._node, self._on_command, self._period_s = node, on_command, period_s
        self._group = Polled(is_polled=False)
        self._streams: list[tuple[Any, Receive]] = []
        self._taking = threading.Lock()
        self._has_link = self._must_drop = False
        self._taken_s = self._commanded_s = -math.inf
        self._reports: list[Callable[[], object]] = []
        self._executor_wake = node.make_guard_condition(lambda: None)

    # For the executor.

    def add(self, message_type: type, topic: str, receive: Receive) -> None:
        """Subscribe to a topic. Publishers that offer less than an override requests are received as well."""

        def take(message: Any) -> None:
            if self._group.is_polled or not self._taking.acquire(blocking=False):
                return  # as the link's thread takes what is newer
            try:
                is_command = receive(message)
            finally:
                self._taking.release()
            if is_command:
                self._on_command()
                if self._has_link:
                    self._node.post(self._take_over)

        subscriptions = subscribe_to_stream(self._node, message_type, topic, self._group, take)
        self._streams += [(subscription, receive) for subscription in subscriptions]

    def drop_waiting(self) -> None:
        """Drop what waits now, before the next message is taken."""
        self._must_drop = True

    def report(self, call: Callable[[], object]) -> None:
        """Count and log: now in the executor, and in the link's thread at the end of its turn."""
        if self._group.is_polled:
            self._reports.append(call)
        else:
            call()

    # For the link's thread.

    @property
    def due_s(self) -> float:
        """When `look` has to be called next, s; inf while the executor takes."""
        return self._taken_s + (self._period_s or 0.0) if self._group.is_polled else math.inf

    def opened(self) -> None:
        """Note that there is a link."""
        self._has_link = self._period_s is not None

    def closed(self) -> None:
        """Have the executor take: the link is gone."""
        self._has_link = False
        self._report_all()
        self._hand_back()

    def take(self, now_s: float) -> bool:
        """Take the newest message of each stream, and return whether one of them is a command that is followed."""
        if not self._group.is_polled or not self._taking.acquire(blocking=False):
            return False
        try:
            is_late = now_s - self._taken_s > LATE_S or self._must_drop
            self._taken_s, self._must_drop = now_s, False
            is_command = False
            for subscription, receive in self._streams:
                if (message := newest_of(subscription)) is None:
                    continue
                if is_late:
                    self._node.report.counts[DROPPED] += 1
                else:
                    is_command |= receive(message)
            if is_command:
                self._commanded_s = now_s
            return is_command
        finally:
            self._taking.release()

    def look(self, now_s: float) -> None:
        """Take if it is time for that, report, and have the executor take if no commands flow any more."""
        if now_s >= self.due_s and self.take(now_s):
            self._on_command()
        self._report_all()
        if self._group.is_polled and now_s - self._commanded_s > IDLE_S:
            self._hand_back()

    def _take_over(self, now_s: float) -> Actions:
        if self._has_link and self._taking.acquire(blocking=False):
            self._taken_s = self._commanded_s = now_s
            self._group.is_polled = True
            self._taking.release()
        return ()

    def _report_all(self) -> None:
        reports, self._reports = self._reports, []
        for report in reports:
            report()

    def _hand_back(self) -> None:
        if self._group.is_polled:
            self._group.is_polled = False
            self._executor_wake.trigger()  # so that it waits for these topics, too
