# SPDX-License-Identifier: Apache-2.0
"""Motion of a drone from the trajectory file of the emulated testbed."""

import csv
import itertools
import math


def rows_of(trajectory):
    with trajectory.open() as file:
        return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]


def motion_between(rows, began_s, ended_s):
    """Return the mean velocity forward, left and up, m/s, and the turn rate to the left, rad/s."""
    rows = [row for row in rows if began_s <= row["time"] <= ended_s]
    total = [0.0, 0.0, 0.0]
    turned = 0.0
    for before, after in itertools.pairwise(rows):
        heading = math.radians(after["heading"])
        x, up, z = after["vx"], after["vy"], after["vz"]
        total[0] += math.sin(heading) * x - math.cos(heading) * z
        total[1] += -math.cos(heading) * x - math.sin(heading) * z
        total[2] += up
        turned += math.remainder(math.radians(before["heading"] - after["heading"]), math.tau)
    steps = len(rows) - 1
    return [*(value / steps for value in total), turned / (rows[-1]["time"] - rows[0]["time"])]
