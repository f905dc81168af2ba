# SPDX-License-Identifier: Apache-2.0
"""SessionOutput: executor of a session's actions in a plain program, which prints what a node would log."""

from typing import Any

from drone_bridge.programs.program import LimitedReports, print_event
from drone_bridge.session.session import Note, Outcome, Session


class SessionOutput:
    """Base class with empty actions, except that notes are printed. All but `note` is for the loop's thread."""

    _limited = LimitedReports()

    def publish_event(self, message: Any) -> None:
        """Publish an event of the session."""

    def note(self, note: Note) -> None:
        """Print a note with a sentence. A repeated one is limited to once per second."""
        if note.sentence:
            (self._limited.print if note.is_ongoing else print_event)(note.sentence)

    def call_service(self, name: str, tag: Any) -> None:
        """Execute a request that the session received."""

    def resolve(self, outcome: Outcome) -> None:
        """Pass the outcome of a request to its caller."""

    def link_opened(self) -> None:
        """Called when the link has opened."""

    def turn_ended(self, session: Session) -> None:
        """Called after each turn of the loop, to update from the session's state."""
