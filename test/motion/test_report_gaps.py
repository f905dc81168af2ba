# SPDX-License-Identifier: Apache-2.0
"""ReportGaps: of robots that report seldom, often, in pairs, and of those that fall silent."""

import pytest

from drone_bridge.motion.report_gaps import ReportGaps


@pytest.mark.parametrize(
    ("usual", "longest_s"),
    [
        pytest.param((), 3.0, id="unknown"),
        pytest.param((2.0,), 3.0, id="0.5 Hz"),
        pytest.param((0.3,), 0.9, id="3 Hz"),
        pytest.param((1.0, 1.0, 2.0, 1.0), 3.0, id="1 Hz, one lost"),
        pytest.param((0.02, 1.5, 0.03, 1.4), 3.0, id="1 Hz in pairs"),
        pytest.param((0.05,), 0.5, id="20 Hz"),
        pytest.param((0.01, 0.09, 0.05, 0.07, 0.03), 0.5, id="20 Hz, jitter"),
        pytest.param((0.05, 0.05, 0.05, 0.05, 2.0), 0.5, id="20 Hz, once silent"),
        pytest.param((0.05, 0.05, 0.05, 1.0, 1.0), 3.0, id="20 Hz, then 1 Hz"),
    ],
)
def test_motion_is_known_for_some_usual_periods(usual, longest_s):
    for gap_s, is_known in ((longest_s - 0.01, True), (longest_s + 0.01, False), (-1.0, False)):
        gaps = ReportGaps()
        assert [*map(gaps.is_short, (*usual, gap_s))][-1] is is_known
