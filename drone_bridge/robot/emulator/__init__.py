# SPDX-License-Identifier: Apache-2.0
"""A tracked robot and the daemon on it: the robot's side of the robot protocol."""
