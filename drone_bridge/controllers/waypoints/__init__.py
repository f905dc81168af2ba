# SPDX-License-Identifier: Apache-2.0
"""The behaviour `waypoints`: places on straight lines by odometry, legs by the clock, taking off and landing."""
