# SPDX-License-Identifier: Apache-2.0
"""SessionTalk: runs a session in no time, and what its actions say."""

import json

from drone_bridge.session.session import Note, Publish, Send


class SessionTalk:
    """A session at a time of the test's own."""

    def __init__(self, session):
        self.session, self.now_s = session, 100.0

    def take(self, actions):
        """Do what the session wants, where a test has a peer for it; return all that is done."""
        return actions

    def run(self, seconds):
        """Let time pass, in which ticks come when they are due; return what is done."""
        actions, end_s = [], self.now_s + seconds
        while self.session.due_s <= end_s:
            self.now_s = max(self.now_s, self.session.due_s)
            actions += self.take(self.session.tick(self.now_s))
        self.now_s = end_s
        return actions


def documents(actions, to):
    """Return the JSON documents that are sent there."""
    return [json.loads(action.data) for action in actions if isinstance(action, Send) and action.to == to]


def sent(actions):
    """Return what is sent, wherever to."""
    return [action for action in actions if isinstance(action, Send)]


def published(actions):
    """Return the wire messages that are published."""
    return [action.message for action in actions if isinstance(action, Publish)]


def notes(actions, counter):
    """Return what is said of each thing that is counted so."""
    return [action.sentence for action in actions if isinstance(action, Note) and action.counter == counter]
