# SPDX-License-Identifier: Apache-2.0
"""Plans where simulated time does not run as the clock on the wall does."""

import csv

import pytest
from processes import Process

from drone_bridge.telemetry.operator import PlanClock


def test_a_plan_goes_by_the_drones_timestamps():
    clock = PlanClock()
    for wall_s, timestamp_s in [(50.0, 7.0), (50.1, 7.4), (50.2, 7.8)]:
        clock.update(wall_s, timestamp_s)
    assert clock.elapsed_s == pytest.approx(0.8)


def test_a_drone_without_timestamps_or_with_new_ones_leaves_it_to_the_wall_clock():
    clock = PlanClock()
    for wall_s, timestamp_s in [(50.0, None), (50.1, None), (50.2, 7.0), (50.3, 2.0), (50.4, 2.5)]:
        clock.update(wall_s, timestamp_s)
    assert clock.elapsed_s == pytest.approx(0.3 + 0.5)


def test_a_client_of_a_fast_simulator_goes_by_simulated_time(tmp_path):
    path = tmp_path / "swum.csv"
    emulator = ("--port", "0", "--speed", "4", "--trajectory", str(path))
    with Process.module("drone_bridge.simulator.emulator", *emulator) as simulator:
        port = simulator.wait_for_line(r"listening on \S+:(\d+)")[1]
        with Process.module(
            "drone_bridge.simulator.operator", "--port", port, "--plan", "8s forward 0.5, 8s"
        ) as operator:
            operator.wait_for_line("the plan's seconds are simulated ones, of which 4 pass in one")
            assert operator.wait() == 0
        assert simulator.stop() == 0
    *_, last = csv.DictReader(path.open())
    swum = sum(float(last[axis]) ** 2 for axis in ("x", "y")) ** 0.5
    assert 2.0 < swum < 8.0, "4 m, and not four times as far"
