# SPDX-License-Identifier: Apache-2.0
"""Plan of a simulator's client in simulated time, as a process."""

import csv

from processes import Process


def test_a_client_of_a_fast_simulator_goes_by_simulated_time(tmp_path):
    path = tmp_path / "swum.csv"
    emulator = ("--port", "0", "--speed", "4", "--trajectory", str(path))
    with Process.module("drone_bridge.simulator.vehicle.emulator", *emulator) as simulator:
        port = simulator.wait_for_line(r"listening on \S+:(\d+)")[1]
        with Process.module(
            "drone_bridge.simulator.vehicle.operator", "--port", port, "--plan", "8s forward 0.5, 8s"
        ) as operator:
            operator.wait_for_line("simulated time: 4 s")
            assert operator.wait() == 0
        assert simulator.stop() == 0
    *_, last = csv.DictReader(path.open())
    swum = sum(float(last[axis]) ** 2 for axis in ("x", "y")) ** 0.5
    assert 2.0 < swum < 8.0, "4 m, and not four times as far"
