# SPDX-License-Identifier: Apache-2.0
"""Behaviour `waypoints`: straight lines between places by odometry, timed legs, takeoff and landing."""
