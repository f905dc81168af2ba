# SPDX-License-Identifier: Apache-2.0
"""Limits of a vehicle while its reports lack a number, by the feedback of its session.

A number that is missing in some reports must not open the fence, nor the maximum height.
"""

import math

import pytest
from reporting_body import MISSING, PASSING, QUANTITIES, ReportingBody

FENCE_M, MAX_HEIGHT_M = 3.0, 3.0
#: Largest distance from the start, and largest height: what the body travels until a missing number is noticed.
FARTHEST_M = 3.5
#: Each set of quantities that a vehicle reports, with one of them that is missing at times.
LACKING = [
    pytest.param(reports, lacks, id=f"{' '.join(reports)} without {lacks}")
    for reports in (
        QUANTITIES,
        ("velocity", "yaw", "height"),  # vehicles that are steered by tilt
        ("velocity", "yaw"),
        ("position", "yaw"),
        ("position", "velocity", "yaw"),  # a rover's odometry
    )
    for lacks in reports
]


@pytest.mark.parametrize("value", [None, math.nan])
@pytest.mark.parametrize("when", MISSING)
@pytest.mark.parametrize(("reports", "lacks"), LACKING)
def test_limits_hold(reports, lacks, when, value):
    body = ReportingBody(reports, fence_radius=FENCE_M, max_height=MAX_HEIGHT_M)
    places = body.fly((1.0, 0.5, 1.0), MISSING[when], lacks, value)
    farthest_m, highest_m = max(math.hypot(x, y) for x, y, _ in places), max(z for _, _, z in places)
    assert max(farthest_m, highest_m) <= FARTHEST_M
    assert min(farthest_m - FENCE_M, highest_m - MAX_HEIGHT_M) >= -0.5 or when not in PASSING, "it is blocked for ever"
