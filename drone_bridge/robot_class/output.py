# SPDX-License-Identifier: Apache-2.0
"""SessionOutput: the actions of a session in a plain program, which prints what a node would log."""

from typing import Any

from drone_bridge.programs.program import LimitedReports, print_event
from drone_bridge.session.session import Note, Outcome, Session


class SessionOutput:
    """Base class: prints notes, and leaves the rest to the program. All but `note` is for the loop's thread."""

    _limited = LimitedReports()

    def publish_event(self, message: Any) -> None:
        """Take a wire message that the session publishes."""

    def note(self, note: Note) -> None:
        """Print a note with a sentence, what goes on at most once per second."""
        if note.sentence:
            (self._limited.print if note.is_ongoing else print_event)(note.sentence)

    def call_service(self, name: str, tag: Any) -> None:
        """Carry out a request that the session received."""

    def resolve(self, outcome: Outcome) -> None:
        """Take the outcome of a request."""

    def link_opened(self) -> None:
        """Follow the opening of the link."""

    def turn_ended(self, session: Session) -> None:
        """Follow the session's state, after each turn of the loop."""
