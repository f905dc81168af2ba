# SPDX-License-Identifier: Apache-2.0
"""The behaviour waypoints: goes to one place after the other by odometry."""
