# SPDX-License-Identifier: Apache-2.0
"""Tests of the table of obstacles."""

import re

import pytest

from drone_bridge.session.obstacles import Obstacle


@pytest.mark.parametrize("obstacle", Obstacle)
def test_an_obstacle_has_a_reason_and_a_remedy(obstacle):
    for text in (obstacle.reason(), obstacle.remedy()):
        assert text
        assert not text.endswith((".", ":", " "))
    facts = {name: f"<{name}>" for name in re.findall(r"\{(\w+)\}", obstacle.sentence())}
    assert "{" not in obstacle.sentence(**facts)
    assert all(fact in obstacle.sentence(**facts) for fact in facts.values())


def test_causes_are_named_from_the_start_of_a_commands_way():
    found = Obstacle.COMMANDERS, Obstacle.DISOBEYS, Obstacle.HOLD, Obstacle.DISCONNECTED, Obstacle.INACTIVE
    assert sorted(found, key=lambda each: each.rank) == list(reversed(found))
