# SPDX-License-Identifier: Apache-2.0
"""The autopilot's side of the testbed's protocol, as a ROS 2 node."""
