# SPDX-License-Identifier: Apache-2.0
"""Plans of scripted operators."""

import re

import pytest

from drone_bridge.programs.plan import DEFAULT_PLAN, REST, Leg, Plan, parse_plan


def test_legs_follow_one_another_and_rest_follows_the_last():
    plan = parse_plan("4s forward 0.5 up -0.25,3s turn 0.5 left -1, 2s")
    first, second, third = Leg(4.0, forward=0.5, up=-0.25), Leg(3.0, left=-1.0, turn=0.5), Leg(2.0)
    assert plan == Plan((first, second, third))
    assert plan.duration_s == 9.0
    times = (-0.1, 0.0, 3.99, 4.0, 6.99, 7.0, 8.99, 9.0, 1e9)
    assert [plan.leg_at(time_s) for time_s in times] == [
        *(REST, first, first, second, second, third, third, REST, REST)
    ]


@pytest.mark.parametrize("text", ["4s forward 0.5, 3s left -1 turn 0.5, 2s", str(DEFAULT_PLAN)])
def test_a_plan_is_read_as_it_is_written(text):
    assert str(parse_plan(text)) == text


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "a leg is a duration and axes, such as '4s forward 0.5', not ''."),
        ("forward 0.5", "not 'forward 0.5'."),
        ("4s forward", "not '4s forward'."),
        ("4s forward 0.5,", "not ''."),
        ("0s", "more than 0 s, not 0s."),
        ("4s sideways 1", "'sideways' is not an axis; the axes are forward, left, up, turn."),
        ("4s up 1 up 2", "up is repeated."),
        ("4s up nan", "'nan' must be a number from -100 to 100."),
        ("infs", "'inf' must be a number from -3600 to 3600."),
        ("4s up 101", "'101' must be a number from -100 to 100."),
    ],
)
def test_an_invalid_plan_is_refused_with_a_sentence(text, error):
    with pytest.raises(ValueError, match=re.escape(error) + "$"):
        parse_plan(text)
