# SPDX-License-Identifier: Apache-2.0
"""SessionTalk: runs a session with a fake clock. Helpers for its actions."""

import json

from drone_bridge.session.session import Note, Publish, Send


class SessionTalk:
    """Session with a fake clock."""

    def __init__(self, session):
        self.session, self.now_s = session, 100.0

    def take(self, actions):
        """Execute actions with the test's peer. Return all executed actions."""
        return actions

    def stall(self, seconds):
        """Stall this process, and resume it; what waited meanwhile is dropped. Return all executed actions."""
        self.now_s += seconds
        self.session.fresh_since_s = self.now_s
        return self.take(self.session.resume(self.now_s))

    def run(self, seconds):
        """Advance the clock, with due ticks. Return all executed actions."""
        actions, end_s = [], self.now_s + seconds
        while self.session.due_s <= end_s:
            self.now_s = max(self.now_s, self.session.due_s)
            actions += self.take(self.session.tick(self.now_s))
        self.now_s = end_s
        return actions


def documents(actions, to):
    """Return the JSON documents sent to a peer."""
    return [json.loads(action.data) for action in actions if isinstance(action, Send) and action.to == to]


def sent(actions):
    """Return all sent data."""
    return [action for action in actions if isinstance(action, Send)]


def published(actions):
    """Return the published events."""
    return [action.message for action in actions if isinstance(action, Publish)]


def notes(actions, counter):
    """Return the sentences of notes with this counter."""
    return [action.sentence for action in actions if isinstance(action, Note) and action.counter == counter]
