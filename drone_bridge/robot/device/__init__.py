# SPDX-License-Identifier: Apache-2.0
"""The robot's side of the robot protocol: binding, sensor readings, and what stops the motors."""
