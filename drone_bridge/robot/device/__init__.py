# SPDX-License-Identifier: Apache-2.0
"""The robot's side of the conversations with its drivers, for an emulated robot and for vehicles in ROS."""
