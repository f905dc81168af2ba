# SPDX-License-Identifier: Apache-2.0
"""Codecs, emulators and operators need nothing that only Linux has: docs/install.md."""

import sys

import pytest
from ports import free_port
from processes import Process
from repository import ROOT

pytestmark = pytest.mark.exhaustive

PLAN = ("--plan", "0.5s up 0.3, 0.5s forward 0.2")


def run(*words):
    """Start `drone-bridge` on a system that lacks what macOS lacks."""
    return Process(sys.executable, ROOT / "test" / "package" / "without_linux.py", *words)


@pytest.mark.parametrize(
    ("kind", "serving", "said"),
    [
        ("testbed", ("--width", "8", "--height", "8"), "the plan is done"),
        ("simulator", (), "the plan is done"),
        ("robot", ("--no-discovery",), "^ended"),
    ],
)
def test_an_operator_steers_an_emulator_by_tcp(kind, serving, said):
    with run("emulate", kind, "--port", "0", *serving) as emulator:
        port = emulator.wait_for_line(r"listening on 127\.0\.0\.1:(\d+)")[1]
        with run("operate", kind, "--port", port, *PLAN) as operator:
            assert operator.wait() == 0, operator.output
            operator.wait_for_line(said)


def test_the_drone_gui_is_steered_by_datagrams():
    navdata = str(free_port())
    with run("emulate", "dronegui", "--port", "0", "--navdata-port", navdata, "--bootstrapped") as emulator:
        port = emulator.wait_for_line(r"listening on 127\.0\.0\.1:(\d+)")[1]
        with run("operate", "dronegui", "--port", port, "--navdata-port", navdata, *PLAN) as operator:
            assert operator.wait() == 0, operator.output


def test_telemetry_is_answered():
    with run("operate", "telemetry", "--port", "0", "--plan", "1s up 0.5") as operator:
        port = operator.wait_for_line(r"waiting for telemetry on 127\.0\.0\.1:(\d+)")[1]
        with run("emulate", "telemetry", "--port", port) as drone:
            assert operator.wait() == 0, operator.output
            operator.wait_for_line("^ended: .*flying")
            assert drone.stop() == 0
            drone.wait_for_line(r"documents sent, \d\d+ commands, 0 refused")


def test_the_doctor_says_what_there_is():
    with run("doctor") as doctor:
        assert doctor.wait() == 0, doctor.output
        doctor.wait_for_line("! +ROS 2 +not found")
        doctor.wait_for_line("shared memory  there is no /dev/shm")
