# SPDX-License-Identifier: Apache-2.0
"""The vehicle's side of each protocol, for simulated vehicles and those in ROS. No sockets, no clock, no ROS."""
