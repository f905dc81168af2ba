# SPDX-License-Identifier: Apache-2.0
"""Tables of verbs: what an end of ours does with each command of a protocol that moves, stops or disables.

A row has the command, and what is executed: commands, names of requests or of calls, answers; a Refusal by its name and
answer; of a session, the counter of refusals. Nothing means that it is ignored.
"""

from dataclasses import fields, replace

import pytest

from drone_bridge.robot_class import BodyVelocity, Move, Refusal, Request
from drone_bridge.session.session import Call, Note, Publish

STAND = BodyVelocity()


def verbs(table):
    """Run a test for each row: `sent`, and the list `meaning`."""
    rows = [
        (sent, [*map(_comparable, it)] if isinstance(it, list) else [_comparable(it)]) for sent, it in table.items()
    ]
    return pytest.mark.parametrize(("sent", "meaning"), rows, ids=map(repr, table))


def by_robot(end, data):
    """Return what a robot's end does with a packet."""
    read = [name for name, request in end.requests.items() if request.packet == data] or end.decode_command(data)
    return [_comparable(each) for each in (read if isinstance(read, (tuple, list)) else [read]) if each is not None]


def by_session(actions, *refusals):
    """Return what a session does: published messages, called services, and counters, of `refusals`."""
    values = {Publish: lambda it: it.message, Call: lambda it: it.name, Note: lambda it: it.counter}
    done = [(action, values[type(action)](action)) for action in actions if type(action) in values]
    return [value for action, value in done if not isinstance(action, Note) or value in refusals]


def _comparable(meaning):
    if isinstance(meaning, Request):
        return meaning.name
    if isinstance(meaning, Refusal):
        return Refusal(meaning.command, answer=meaning.answer)
    if isinstance(meaning, (BodyVelocity, Move)):
        values = {each.name: getattr(meaning, each.name) for each in fields(meaning)}
        return replace(meaning, **{name: round(it, 6) for name, it in values.items() if isinstance(it, float)})
    return meaning
