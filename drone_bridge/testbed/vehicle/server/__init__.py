# SPDX-License-Identifier: Apache-2.0
"""Virtual testbed for legacy autopilots, with a ROS drone behind it."""
