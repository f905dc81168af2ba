# SPDX-License-Identifier: Apache-2.0
"""Invalid options of emulators: each is refused with a sentence, and the exit status for that.

What all emulators read alike is asked of the testbed's.
"""

import pytest

from drone_bridge.kind import kinds, load
from drone_bridge.programs.program import CANNOT_START

REFUSED = {
    "testbed": [
        (["--hfov", "180"], "horizontal_angle_of_view is 180"),
        (["--width", "5000"], "width is 5000"),
        (["--rate", "nan"], "must be finite"),
        (["--wind", "1 2"], "must be three numbers"),
        (["--gusts", "-1"], "not below 0"),
        (["--port", "70000"], "at most 65535"),
        (["--obstacles", "100000"], "no room left"),
        (["--trajectory", "/no/such/folder/x.csv"], "No such file"),
    ],
    "simulator": [
        (["--rate", "0"], "must be above 0"),
        (["--scene", "moon"], "invalid choice"),
        (["--quirks", "some"], "must be none or real, not 'some'"),
        (["--btom", "1 0 0"], "must be a quaternion 'W X Y Z': not enough values"),
        (["--btom", "0 0 0 0"], "is not a rotation"),
        (["--host", "192.0.2.1"], ""),
    ],
    "robot": [
        (["--subsystems", "arm"], "must be tracks and headlight, each at most once, not 'arm'"),
        (["--discovery-interface", "lo"], "IPv4"),
        (["--name", ""], "255 bytes"),
    ],
    "telemetry": [
        (["--port", "0"], "0"),
        (["--rover", "triangular"], "must be stationary, linear, circular, square, random or follow, not 'triangular'"),
        (["--height", "0.3"], "from 1 to 50"),
    ],
}
# Free ports, so that only the option is refused.
BESIDE = {
    "testbed": ["--port", "0"],
    "simulator": ["--port", "0"],
    "robot": ["--port", "0", "--discovery-port", "0"],
    "telemetry": [],
}


@pytest.mark.parametrize(
    ("name", "arguments", "sentence"),
    [(name, *refused) for name, all_refused in REFUSED.items() for refused in all_refused],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value[:20],
)
def test_impossible_options_are_refused_with_a_sentence(capsys, name, arguments, sentence):
    run = load(next(kind.emulator.main for kind in kinds().values() if kind.emulator.name == name))
    try:
        status = run([*BESIDE[name], *arguments])
    except SystemExit as exit_:
        status = exit_.code
    assert status == CANNOT_START
    errors = capsys.readouterr().err
    assert errors.strip()
    assert sentence in errors
