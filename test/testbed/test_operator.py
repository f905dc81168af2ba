# SPDX-License-Identifier: Apache-2.0
"""The scripted autopilot flies its plan in each layout, by the testbed's own record."""

import pytest
from composition import launch
from ports import free_port
from testbed_trajectory import rows_of


@pytest.mark.exhaustive
def test_the_launch_file_puts_a_flight_through_ros(domain, tmp_path):
    trajectory, patient = tmp_path / "flight.csv", tmp_path / "patient.yaml"
    patient.write_text("/**/testbed_server: {ros__parameters: {source_timeout: 600.0}}")  # for a busy machine
    programs = {"relay": True, "emulate": True, "operate": True, "operator_plan": "1s, 2s up 0.5"}
    given = {**programs, "testbed_image_width": 8, "testbed_image_height": 8}
    ports = {"testbed_server_port": free_port(), "vehicle_port": free_port()}
    files = {"testbed_trajectory": trajectory, "params_file": patient}
    with launch("testbed_server.launch.xml", **given, **ports, **files) as flight:
        flight.wait_for_line("leg 2s up 0.5")
        flight.wait_for_line("the plan is done", timeout_s=120)
        flight.wait_for_line("ended: ")
    rows = rows_of(trajectory)
    assert 0.3 < max(row["vy"] for row in rows) < 0.6
    assert rows[-1]["thrust"] == pytest.approx(9.81, abs=0.05)  # it leaves the drone hovering
