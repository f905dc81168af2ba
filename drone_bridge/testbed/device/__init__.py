# SPDX-License-Identifier: Apache-2.0
"""The testbed's side of a conversation with an autopilot, for an emulated testbed and for vehicles in ROS."""
