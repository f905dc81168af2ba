# SPDX-License-Identifier: Apache-2.0
"""Log of the commands that a relay has seen: it detects a missing neutral one."""

import pytest
import relay


def commands_of(*said, **options):
    commands = relay.CommandLog(**options)
    commands._commands = list(said)
    return commands


@pytest.mark.parametrize(
    ("said", "moved_s"),
    [
        ([(0.0, False), (1.0, False), (1.4, False), (1.5, True)], 0.4),
        ([(0.0, False), (1.5, True)], 0.0),
        ([(0.0, True), (1.5, True), (1.6, False)], None),
        ([(0.0, False)], None),
        ([(0.0, False), (0.9, True)], 0.0),
        ([], None),
    ],
)
def test_a_missing_neutral_command_is_found(said, moved_s):
    became = commands_of(*said).becomes_neutral(1.0, 0.0, 0.0)
    assert became == (moved_s if moved_s is None else pytest.approx(moved_s))


@pytest.mark.parametrize(("is_neutral", "moved_s"), [(True, 0.5), (False, None)])
def test_for_a_vehicle_without_a_request_since_then_the_next_answer_counts(monkeypatch, is_neutral, moved_s):
    """Like one delayed by the machine: without a reply, a testbed's drone does not move."""
    commands = commands_of((1.0, False), (1.5, False), is_asked=True)
    monkeypatch.setattr(commands, "wait", lambda *_: commands._commands.append((4.0, is_neutral)))
    assert commands.becomes_neutral(1.0, 2.5, 0.0) == moved_s
