# SPDX-License-Identifier: Apache-2.0
"""Plans in simulated time that differs from wall time."""

import pytest

from drone_bridge.telemetry.operator import PlanClock


def test_a_plan_goes_by_the_drones_timestamps():
    clock = PlanClock()
    for wall_s, timestamp_s in [(50.0, 7.0), (50.1, 7.4), (50.2, 7.8)]:
        clock.update(wall_s, timestamp_s)
    assert clock.elapsed_s == pytest.approx(0.8)


def test_plan_uses_the_wall_clock_without_steady_drone_timestamps():
    clock = PlanClock()
    for wall_s, timestamp_s in [(50.0, None), (50.1, None), (50.2, 7.0), (50.3, 2.0), (50.4, 2.5)]:
        clock.update(wall_s, timestamp_s)
    assert clock.elapsed_s == pytest.approx(0.3 + 0.5)
