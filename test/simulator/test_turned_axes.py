# SPDX-License-Identifier: Apache-2.0
"""Operator of a vehicle whose principal axes are not those of its model."""

import csv

from processes import executable


def test_the_operator_drives_forward_along_the_model_s_axis(start_child, free_port, tmp_path):
    path = tmp_path / "trajectory.csv"
    link = ("simulator", "--port", free_port)
    emulator = start_child(executable("drone-bridge"), "emulate", *link, "--btom", "0 0 0 1", "--trajectory", path)
    emulator.wait_for_line("listening")
    operator = start_child(executable("drone-bridge"), "operate", *link, "--plan", "2s forward 0.3")
    assert operator.wait() == 0
    emulator.end()
    with path.open() as file:
        *_, last = csv.DictReader(file)
    assert float(last["x"]) > 0.1
