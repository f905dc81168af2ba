# SPDX-License-Identifier: Apache-2.0
"""SessionOutput: executor of a session's actions in a plain program, which prints what a node would log."""

from typing import Any

from drone_bridge.programs.program import LimitedReports, print_event
from drone_bridge.session.session import Note, Outcome, Session


class SessionOutput:
    """Base class with empty actions, except that notes are printed. All but `note` is for the loop's thread."""

    _limited = LimitedReports()

    def publish_event(self, message: Any) -> None:
        """Handle an event that the session publishes."""

    def note(self, note: Note) -> None:
        """Print a note with a sentence. A repeated one is limited to once per second."""
        if note.sentence:
            (self._limited.print if note.is_ongoing else print_event)(note.sentence)

    def call_service(self, name: str, tag: Any) -> None:
        """Execute a request that the session received."""

    def resolve(self, outcome: Outcome) -> None:
        """Handle the outcome of a request."""

    def link_opened(self) -> None:
        """Handle the opening of the link."""

    def turn_ended(self, session: Session) -> None:
        """Handle the session's state after each turn of the loop."""
