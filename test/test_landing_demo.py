# SPDX-License-Identifier: Apache-2.0
"""What the demonstrations of flights make of what they get; make demo and make demo-landings run all of it."""

import re

import pytest

from drone_bridge.telemetry.emulator.touchdown import Touchdown
from drone_bridge.tools.demo.series import PATTERNS, TOUCHDOWN, Condition, fly, report_landings

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("on_rover", [True, False])
def test_the_emulators_line_about_a_touchdown_is_understood(on_rover):
    touchdown = Touchdown(time=12.34, on_rover=on_rover, position_error=0.123, vertical_speed=0.56, relative_speed=0.07)
    found = TOUCHDOWN.search(f"[landing-2] {touchdown.describe()}\n")
    assert found["where"] == ("rover" if on_rover else "ground")
    numbers = [float(found[name]) for name in ("time", "error", "vertical", "relative")]
    assert numbers == [12.34, 0.123, 0.56, 0.07]
    assert (found["verdict"] == "good") == touchdown.is_good


def touchdown(error_m):
    landed = Touchdown(10.0, on_rover=True, position_error=error_m, vertical_speed=0.5, relative_speed=0.2)
    return TOUCHDOWN.search(landed.describe())


@pytest.mark.parametrize(
    ("spoiled", "status"), [([], 0), ([3], 0), ([3, 4], 1)], ids=["none is bad", "one is bad", "two are bad"]
)
@pytest.mark.parametrize("instead", [None, touchdown(0.9)], ids=["missing", "bad"])
def test_nineteen_of_twenty_are_enough_for_each_pattern(capsys, spoiled, status, instead):
    results = {pattern: [touchdown(0.1)] * 20 for pattern in PATTERNS}
    for seed in spoiled:
        results["square"][seed] = instead
    assert report_landings(20, results) == status
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.startswith(PATTERNS)}
    assert lines.keys() == set(PATTERNS)
    assert f"{20 - len(spoiled)} of 20" in lines["square"]
    assert "20 of 20" in lines["random"]


def test_each_seed_is_flown_under_each_condition(domain):
    def emulator(seed, port):
        return f"drone_bridge.testbed.emulator --role connect --port {port} --seed {seed} --once --steps 2"

    listening = {"testbed_bridge_role": "listen"}
    conditions = [
        Condition(name, "testbed.launch.xml", "testbed_port", listening, ("Waiting for a peer",), emulator)
        for name in ("one", "other")
    ]
    results = fly(conditions, 2, 2, re.compile(r"ended: (\d+) steps"))
    assert {name: [found[1] for found in flights] for name, flights in results.items()} == {
        "one": ["2", "2"],
        "other": ["2", "2"],
    }


def test_the_picture_is_drawn(tmp_path):
    from drone_bridge.tools.demo.picture import Flight, draw  # with matplotlib, for which no other test waits

    rows = [
        {"time": str(t), "x": "1", "y": "0", "z": str(5.3 - t / 2), "yaw": "0", "rover_x": "1", "rover_y": "0"}
        for t in range(11)
    ]
    landing = Flight.read("drone", "landing", rows, None, 10.0)
    assert landing.distances_m[[0, 10]] == pytest.approx([5, 0])
    assert landing.flown_m == pytest.approx(5)
    fixed = Flight.read("other", "landing", rows, (1.0, 3.0, 0.3), 5.0)
    assert fixed.distances_m[10] == pytest.approx(3)
    file = tmp_path / "flights.png"
    draw(file, [landing, fixed])
    assert file.read_bytes().startswith(b"\x89PNG")
