# SPDX-License-Identifier: Apache-2.0
"""Flying a drone that takes body rates and thrust: its model, its attitude, its velocity. Without ROS."""
