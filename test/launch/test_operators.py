# SPDX-License-Identifier: Apache-2.0
"""Launch files of servers put the plan of a scripted operator through ROS, by the end of the emulated vehicle."""

import signal

import pytest
from composition import launch
from ports import free_ports

from drone_bridge.tools.demo.composition import ports_of

PATIENT = "/**/testbed_server: {ros__parameters: {source_timeout: 600.0}}"  # for a busy machine
#: Plan, further arguments, and lines by protocol; the last one when all is stopped.
PLANS = {
    "robot": (
        "1s forward 0.5, 600s turn 1",
        {"namespace": "field"},
        ("leg 1s forward 0.5: ", r"reads .*left motor -512", "unbound subsystem 0", r"ended: .* at x \d+\.\d+ m"),
    ),
    "dronegui": (
        "1s forward 2",
        {},
        ("takeoff: ", "1s forward 2: ", "land: ", r"landing -> landed: .* x=(0\.[2-9]|[1-9])", "ended: "),
    ),
    "testbed": (
        "1s, 2s up 0.5",
        {"testbed_image_width": 8, "testbed_image_height": 8},
        ("leg 2s up 0.5", "the plan is done", r"ended: .* at \S+ (0\.[5-9]|1\.[0-2])\d* \S+ m"),
    ),
}


@pytest.mark.parametrize(
    "name", ["robot", *(pytest.param(each, marks=pytest.mark.exhaustive) for each in [*PLANS][1:])]
)
def test_the_launch_file_puts_an_operators_plan_through_ros(domain, name, tmp_path):
    (plan, arguments, lines), names = PLANS[name], ports_of(f"{name}_server.launch.xml")
    patient = tmp_path / "patient.yaml"
    patient.write_text(PATIENT)
    given = {"relay": True, "emulate": True, "operate": True, "operator_plan": plan, "params_file": patient}
    given |= dict(zip(names, free_ports(len(names)), strict=True))
    with launch(f"{name}_server.launch.xml", **given, **arguments) as flight:
        for line in lines:
            if line.startswith(("unbound", "ended")):
                flight.stop(signal.SIGINT)
            flight.wait_for_line(line, timeout_s=120)
