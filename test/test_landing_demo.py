# SPDX-License-Identifier: Apache-2.0
"""What the demonstrations of landings make of what they get; make demo and make demo-landings run all of it."""

import math

import numpy as np
import pytest

from drone_bridge.telemetry.emulator.touchdown import Touchdown
from drone_bridge.tools.demo.landing_recording import LandingRecording, Span, View, along
from drone_bridge.tools.demo.landings import PATTERNS, TOUCHDOWN, Landing, Task, report

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("on_rover", [True, False])
def test_the_emulators_line_about_a_touchdown_is_understood(on_rover):
    touchdown = Touchdown(time=12.34, on_rover=on_rover, position_error=0.123, vertical_speed=0.56, relative_speed=0.07)
    found = TOUCHDOWN.search(f"[landing-2] {touchdown.describe()}\n")
    assert found["where"] == ("rover" if on_rover else "ground")
    numbers = [float(found[name]) for name in ("time", "error", "vertical", "relative")]
    assert numbers == [12.34, 0.123, 0.56, 0.07]
    assert (found["verdict"] == "good") == touchdown.is_good


GOOD = Landing(is_good=True, time_s=10.0, error_m=0.1, vertical_speed=0.5, relative_speed=0.2)


@pytest.mark.parametrize(
    ("spoiled", "status"), [([], 0), ([3], 0), ([3, 4], 1)], ids=["none is bad", "one is bad", "two are bad"]
)
@pytest.mark.parametrize("instead", [None, GOOD._replace(is_good=False, error_m=0.9)], ids=["missing", "bad"])
def test_nineteen_of_twenty_are_enough_for_each_pattern(capsys, spoiled, status, instead):
    results = {Task(pattern, seed): GOOD for pattern in PATTERNS for seed in range(20)}
    for seed in spoiled:
        results[Task("square", seed)] = instead
    assert report(20, results) == status
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.startswith(PATTERNS)}
    assert lines.keys() == set(PATTERNS)
    assert f"{20 - len(spoiled)} of 20" in lines["square"]
    assert "20 of 20" in lines["random"]


def test_the_picture_is_drawn(tmp_path):
    """Of a drone that comes straight down onto a rover that stands still."""
    times = np.arange(0.0, 10.0, 0.04)
    still = np.zeros((len(times), 2))
    recording = LandingRecording(
        times=times,
        path=still,
        altitudes=np.interp(times, (0, 8), (5, 0.4)),
        rover_times=times,
        rover_path=still,
        sighting_times=times[:100],
        sightings=np.tile((0.0, 0.0, -3.0), (100, 1)),
        spans=[Span("descending", 0.0, 7.0), Span("committed", 7.0, 8.0), Span("landed", 8.0, 10.0)],
        landed_s=8.0,
    )
    matrix = np.array([[277.0, 0.0, 159.5], [0.0, 277.0, 119.5], [0.0, 0.0, 1.0]])
    image = np.zeros((240, 320, 3), np.uint8)
    for pad in (np.array([0.0, 0.0, -3.0]), None):
        recording.views.append(View(1.0, image, matrix, (0.0, 0.0, 1.0), pad, 3.3))
    assert [recording.state_at(time_s) for time_s in (-1.0, 0.0, 7.5, 99.0)] == [
        *("descending", "descending", "committed", "landed")
    ]
    assert recording.altitude_at(4.0) == pytest.approx(2.7)
    assert math.hypot(*along(times, still, 5.0)) == 0
    from drone_bridge.tools.demo.landing_picture import draw  # with matplotlib, for which no other test waits

    file = tmp_path / "landing.png"
    draw(recording, "very well", file)
    assert file.read_bytes().startswith(b"\x89PNG")
