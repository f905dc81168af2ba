# SPDX-License-Identifier: Apache-2.0
"""The tracked robot in demonstrations."""

from drone_bridge.programs.demonstration import Demonstration, Pose, Row


def _pose(row: Row) -> Pose:
    return Pose(float(row["x"]), float(row["y"]), 0.0, float(row["heading"]))


DEMONSTRATION = Demonstration(pose=_pose)
