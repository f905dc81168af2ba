# SPDX-License-Identifier: Apache-2.0
"""Comparison of a session's last words with what it sends at its end."""

import pytest
from session_talk import sent

from drone_bridge.session.session import Send

#: Property test: the seed of each of many conversations.
each_conversation = pytest.mark.parametrize("seed", range(40))


def words_of(session):
    """Return the last words in order, None without any."""
    words = session.last_words()
    return words and [*words.neutral, *words.leaves]


def sent_by_end(session, now_s):
    """End a session. Return what it sends."""
    actions = list(session.end(now_s))
    while not session.is_over:
        now_s = session.due_s
        actions += session.tick(now_s)
    return [bytes(action.data) for action in sent(actions)]


def without_repeats(packets):
    """Return packets that differ from the previous one."""
    return [each for number, each in enumerate(packets) if not number or each != packets[number - 1]]


def rest_of(actions):
    """Return the rest of a message that was sent in part."""
    sends = [action for action in actions if isinstance(action, Send)]
    return sends[-1].rest if sends else b""
