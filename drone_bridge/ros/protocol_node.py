# SPDX-License-Identifier: Apache-2.0
"""ProtocolNode: a node whose conversation is a session, run on a link by a LinkLoop.

Three threads: the executor's, in which subscriptions and services are served and which hands work to the session by
`post`; the loop's, which alone touches link and session and calls `publish_event`; and that of the reports. What the
session counts and says goes to logs and /diagnostics.
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from drone_bridge.net.clock import Clock
from drone_bridge.net.link_loop import DROPPED_BY_STALL, DROPPED_WORK, Intake, Link, LinkLoop
from drone_bridge.ros.vehicle_node import UNREACHABLE, VehicleNode
from drone_bridge.session.session import REFUSED_DATAGRAMS, Actions, Call, Note, Outcome, Session


class ProtocolNode(VehicleNode):
    """A bridge or server: it gives its topics and parameters, its link, its session, and how a message is published."""

    problems = (*VehicleNode.problems, DROPPED_WORK, DROPPED_BY_STALL, REFUSED_DATAGRAMS, "dropped_messages")
    #: Commands that the loop's thread takes.
    intake: Intake | None = None

    # What a node has to provide.

    @abstractmethod
    def make_transport(self) -> Link:
        """Return the link, by the parameters as they are now. Raises LinkError."""

    @abstractmethod
    def make_session(self) -> Session:
        """Return a session that has not begun."""

    @abstractmethod
    def publish_event(self, message: Any) -> None:
        """Publish a wire message on its topics. For the loop's thread."""

    def call_service(self, name: str, tag: Any) -> None:
        """Call a service for the session, and post what comes of it. For the loop's thread."""
        raise NotImplementedError(f"{type(self).__name__} calls no services.")

    # What a node can use.

    def post(self, work: Callable[[float], Actions], *, is_kept: bool = False) -> bool:
        """Have the loop's thread call a function with the time, and do the actions that it returns.

        What is kept is never dropped, as a caller waits for it. Return whether it was accepted: False if the node is
        not active, or its link has just ended.
        """
        loop = self._loop
        return loop is not None and loop.post(work, is_kept=is_kept)

    @property
    def has_link(self) -> bool:
        """Whether there is a link, or one is being opened."""
        return self._loop is not None

    @property
    def decided_s(self) -> float:
        """When it was decided to publish what `publish_event` is given, see `VehicleNode.publish`."""
        return self._loop.decided_s if self._loop else math.inf

    # The lifecycle.

    def make_loop(self) -> LinkLoop:
        transport, session, clock = self.make_transport(), self.make_session(), Clock()
        self.report.start_link()
        stage = _Stage(self, session)
        return LinkLoop(f"{self.get_name()} link", transport, session, stage, clock, intake=self.intake)


class _Stage:
    """Carries out the loop's actions. Notes with a sentence come in a thread of their own."""

    def __init__(self, node: ProtocolNode, session: Session) -> None:
        self._node, self._session = node, session

    def publish(self, message: Any) -> None:
        self._node.publish_event(message)

    def note(self, note: Note) -> None:
        if note.counter:
            self._node.report.counts[note.counter] += 1
        if not note.sentence:
            return
        if note.is_expected:
            self._node.report.inform(note.sentence)
        elif note.is_ongoing:
            self._node.report.warn_ongoing(note.counter, note.sentence, is_usual_at_start=note.is_usual_at_start)
        else:
            self._node.report.warn(note.sentence, note.counter)

    def call(self, call: Call) -> None:
        self._node.call_service(call.name, call.tag)

    def settle(self, outcome: Outcome) -> None:
        outcome.request.finish(outcome.is_success, outcome.sentence, outcome.result)

    def opened(self) -> None:
        self._node.report.end_ongoing(UNREACHABLE)

    def turned(self) -> None:
        self._node.report.follow(self._session)
