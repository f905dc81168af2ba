# SPDX-License-Identifier: Apache-2.0
"""A virtual testbed for legacy autopilots, with a drone that lives in ROS behind it."""
