# SPDX-License-Identifier: Apache-2.0
"""Positions that stand still, with the pull of the drone's tilt."""

import pytest

from drone_bridge.motion.judged_position import WINDOW_S, JudgedPosition


@pytest.mark.parametrize(
    ("step_m", "pull_after", "is_doubted"),
    [(1e-5, 0.2, True), (1e-5, -0.1, True), (1e-5, 0.1, False), (1e-3, 0.2, False)],
    ids=["more pull", "opposite pull", "the same pull", "positions in mm"],
)
def test_a_position_that_stands_still_while_the_pull_changes_is_doubted(step_m, pull_after, is_doubted):
    judged, x = JudgedPosition(0.2), 0.0
    for number in range(80):
        x += step_m * (number % 3) * (number < 40)
        judged.believed((x, 0.0, 1.0), (x, 0.0, 1.0), 0.1 if number < 45 else pull_after, WINDOW_S)
    assert bool(judged.reasons) == is_doubted
