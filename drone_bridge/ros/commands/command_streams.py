# SPDX-License-Identifier: Apache-2.0
"""CommandStreams: subscriptions to command streams, polled by the link's thread or served by the executor.

Theory of operation:

- The session decides in the link's thread, and needs the newest command there. While commands flow, that thread
  therefore takes it: at each decision (`take`), and at the end of a turn of its loop if the last take is `period_s` old
  (`look`). The executor is not woken.
- Without a link, or without commands, the executor takes each message as it arrives. A single command is then followed
  at once, or a log line explains why it reaches no vehicle.

| messages are taken by | begins with | ends with |
|---|---|---|
| executor | configure; the end of the link; IDLE_S without a command | the next row |
| link's thread | work posted to it, after a command that arrived while there is a link | the row above |

- A lock guards taking, without waiting: a thread that finds it locked leaves the message to the other thread.
- A message that is taken late is stale. Waiting messages are dropped if the last take is over LATE_S ago, and after
  `drop_waiting`, for example at the release of a hold. A new link finds no messages: the executor has taken them. A
  dropped message may still end the command from before.
- Reports are made at the end of a turn of the loop, so that logging follows sending.
"""

import math
import threading
from collections.abc import Callable
from typing import Any

from drone_bridge.net.link_loop import Intake
from drone_bridge.ros.node.protocol_node import ProtocolNode
from drone_bridge.ros.streams import PolledCallbackGroup, newest_of, subscribe_to_stream
from drone_bridge.session.session import Actions

#: Longest time between two takes of the link's thread, s.
PERIOD_S = 0.05
#: The same for a session that sends new commands at once, s.
PROMPT_PERIOD_S = 0.02
#: Time without a take after which waiting messages are stale, s.
LATE_S = 0.1
#: Time without a command after which the executor takes over, s.
IDLE_S = 1.0
#: Counter of messages that were dropped because they were taken late.
DROPPED = "stale_commands"

Receive = Callable[[Any], bool]
"""Callback for a message; returns whether it is a command that is followed."""


class CommandStreams(Intake):
    """Command streams of one node. `add` and `drop_waiting` are for the executor, the rest for the link's thread."""

    def __init__(self, node: ProtocolNode, on_command: Callable[[], None], period_s: float | None = PERIOD_S) -> None:
        """Create an empty set of streams.

        Args:
            node: the node with the topics.
            on_command: callback after a command that was taken between two decisions.
            period_s: longest time between two takes of the link's thread, s; None: only the executor takes.
        """
        self._node, self._on_command, self._period_s = node, on_command, period_s
        self._group = PolledCallbackGroup(is_polled=False)
        self._streams: dict[str, tuple[list[Any], Receive, Receive]] = {}
        self._taking = threading.Lock()
        self._has_link = self._must_drop = False
        self._taken_s = self._commanded_s = -math.inf
        self._reports: list[Callable[[], object]] = []
        self._executor_wake = node.make_guard_condition(lambda: None)

    # For the executor.

    def add(
        self, message_type: type, topic: str, receive: Receive, receive_late: Receive = lambda message: False
    ) -> None:
        """Subscribe to a topic, instead of the former subscriptions to it, which may have had another type.

        Publishers that offer a weaker QoS than an override requests are received as well.
        `receive_late` is called with messages that are dropped because they were taken late.
        """

        def take(message: Any) -> None:
            if self._group.is_polled or not self._taking.acquire(blocking=False):
                return  # the link's thread takes newer messages
            try:
                is_command = receive(message)
            finally:
                self._taking.release()
            if is_command:
                self._on_command()
                if self._has_link:
                    self._node.post(self._take_over)

        with self._taking:
            # One that the link's thread uses would be destroyed too late: DDS allows one type of a topic.
            self._node.end_subscriptions(topic)
            subscriptions = subscribe_to_stream(self._node, message_type, topic, self._group, take)
            self._streams[topic] = subscriptions, receive, receive_late

    def drop_waiting(self) -> None:
        """Drop the messages that wait now, before the next take."""
        self._must_drop = True

    def report(self, call: Callable[[], object]) -> None:
        """Call a reporting function: at once in the executor, or at the end of the turn in the link's thread."""
        if self._group.is_polled:
            self._reports.append(call)
        else:
            call()

    # For the link's thread.

    @property
    def due_s(self) -> float:
        """Time of the next call of `look`, s; inf while the executor takes."""
        return self._taken_s + (self._period_s or 0.0) if self._group.is_polled else math.inf

    def opened(self) -> None:
        """Prepare for the link, which has opened."""
        self._has_link = self._period_s is not None

    def closed(self) -> None:
        """Hand over to the executor, as the link has closed."""
        self._has_link = False
        self._report_all()
        self._hand_back()

    def take(self, now_s: float) -> bool:
        """Take the newest message of each stream. Return whether one of them is a command that is followed."""
        if not self._group.is_polled or not self._taking.acquire(blocking=False):
            return False
        try:
            is_late = now_s - self._taken_s > LATE_S or self._must_drop
            self._taken_s, self._must_drop = now_s, False
            is_command = False
            for subscriptions, receive, receive_late in self._streams.values():
                for message in filter(None, map(newest_of, subscriptions)):
                    if is_late:
                        self._node.report.counts[DROPPED] += 1
                    is_command |= (receive_late if is_late else receive)(message)
            if is_command:
                self._commanded_s = now_s
            return is_command
        finally:
            self._taking.release()

    def after_turn(self, now_s: float) -> None:
        """Take if due, and report. Without commands for IDLE_S, hand over to the executor."""
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
            self._executor_wake.trigger()  # so that its wait set includes these topics
