# SPDX-License-Identifier: Apache-2.0
"""Autopilot side of the testbed protocol, as a ROS 2 node."""
