# SPDX-License-Identifier: Apache-2.0
"""Limits of each kind of vehicle while its reports lack a number, by the feedback of its session. Pure.

A number that is missing in some reports must not open the fence, nor the maximum height.
"""

import functools
import math

import pytest
from reporting_body import MISSING, PASSING, QUANTITIES, ReportingBody

from drone_bridge.kind import kinds

FENCE_M, MAX_HEIGHT_M = 3.0, 3.0
#: Largest distance from the start, and largest height: what the body travels until a missing number is noticed.
FARTHEST_M = 3.5
#: Quantities that a vehicle reports, by protocol. A robot's odometry is dead reckoned from the speeds that it reports.
BY_TILT = ("velocity", "yaw", "height")
REPORTED = {
    "testbed": [("position", "yaw")],
    "dronegui": [BY_TILT],
    "ardrone": [BY_TILT],
    "telemetry": [BY_TILT],
    "simulator": [("position", "velocity", "yaw")],
    "robot": [("position", "velocity", "yaw")],
}
#: Robots in one class, and other protocols, may report any.
ANY = [QUANTITIES, BY_TILT, ("velocity", "yaw"), ("position", "yaw")]

kinds_and_the_kit = pytest.mark.parametrize(
    "kind", [None, *kinds().values()], ids=lambda kind: kind.name if kind else "robot in one class"
)


def lacking(kind):
    """Return what a vehicle of a kind may report, each time with one of these quantities that is missing."""
    reported = REPORTED.get(kind.name, ANY) if kind else ANY
    return [(reports, lacks) for reports in reported for lacks in reports]


@functools.cache
def farthest_m_in_fence(reports, when, lacks, value):
    """Return the largest distance from the start. Kinds that report the same fly the same."""
    places = ReportingBody(reports, fence_radius=FENCE_M).fly((2.0, 1.0, 0.0), MISSING[when], lacks, value)
    return max(math.hypot(*place) for place in places)


@functools.cache
def highest_m_below_maximum(reports, when, lacks, value):
    """Return the largest height, likewise."""
    places = ReportingBody(reports, max_height=MAX_HEIGHT_M).fly((0.0, 0.0, 1.0), MISSING[when], lacks, value)
    return max(z for _, _, z in places)


@pytest.mark.parametrize("value", [None, math.nan])
@pytest.mark.parametrize("when", MISSING)
@kinds_and_the_kit
def test_a_fence_holds(kind, when, value):
    for reports, lacks in lacking(kind):
        farthest_m = farthest_m_in_fence(reports, when, lacks, value)
        assert farthest_m <= FARTHEST_M, lacks
        assert farthest_m >= FENCE_M - 0.5 or when not in PASSING, f"it is not blocked without {lacks}"


@pytest.mark.parametrize("value", [None, math.nan])
@pytest.mark.parametrize("when", MISSING)
@kinds_and_the_kit
def test_a_maximum_height_holds(kind, when, value):
    for reports, lacks in lacking(kind):
        highest_m = highest_m_below_maximum(reports, when, lacks, value)
        assert highest_m <= FARTHEST_M, lacks
        assert highest_m >= MAX_HEIGHT_M - 0.5 or when not in PASSING, f"it is not blocked without {lacks}"
