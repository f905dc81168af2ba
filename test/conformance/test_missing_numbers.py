# SPDX-License-Identifier: Apache-2.0
"""Limits of each kind of vehicle while its reports lack a number, by the feedback of its session. Pure.

A number that is missing in some reports must not open the fence, nor the maximum height.
"""

import math

import pytest
from reporting_body import MISSING, PASSING, QUANTITIES, ReportingBody

from drone_bridge.kind import kinds

FENCE_M, MAX_HEIGHT_M = 3.0, 3.0
#: Largest distance from the start, and largest height: what the body travels until a missing number is noticed.
FARTHEST_M = 3.5
#: Quantities that a vehicle reports, by protocol. A robot's odometry is dead reckoned from its commands.
BY_TILT = ("velocity", "yaw", "height")
REPORTED = {
    "testbed": [("position", "yaw")],
    "dronegui": [BY_TILT],
    "ardrone": [BY_TILT],
    "telemetry": [BY_TILT],
    "simulator": [("position", "velocity", "yaw")],
    "robot": [],
}
#: Robots in one class, and other protocols, may report any.
ANY = [QUANTITIES, BY_TILT, ("velocity", "yaw"), ("position", "yaw")]

#: Kinds by the quantities that they report: those with the same ones are flown alike.
FLOWN = {reports: ["robot in one class"] for reports in ANY}
for name in kinds():
    for reports in REPORTED.get(name, ANY):
        FLOWN.setdefault(reports, []).append(name)

cases = [
    pytest.param(reports, lacks, id=f"{', '.join(names)}-{lacks}")
    for reports, names in FLOWN.items()
    for lacks in reports
]


@pytest.mark.parametrize("value", [None, math.nan])
@pytest.mark.parametrize("when", MISSING)
@pytest.mark.parametrize(("reports", "lacks"), cases)
def test_a_fence_holds(reports, lacks, when, value):
    places = ReportingBody(reports, fence_radius=FENCE_M).fly((2.0, 1.0, 0.0), MISSING[when], lacks, value)
    farthest_m = max(math.hypot(*place) for place in places)
    assert farthest_m <= FARTHEST_M
    assert farthest_m >= FENCE_M - 0.5 or when not in PASSING, "it is not blocked"


@pytest.mark.parametrize("value", [None, math.nan])
@pytest.mark.parametrize("when", MISSING)
@pytest.mark.parametrize(("reports", "lacks"), cases)
def test_a_maximum_height_holds(reports, lacks, when, value):
    places = ReportingBody(reports, max_height=MAX_HEIGHT_M).fly((0.0, 0.0, 1.0), MISSING[when], lacks, value)
    highest_m = max(z for _, _, z in places)
    assert highest_m <= FARTHEST_M
    assert highest_m >= MAX_HEIGHT_M - 0.5 or when not in PASSING, "it is not blocked"
