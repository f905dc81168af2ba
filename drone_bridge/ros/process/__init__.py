# SPDX-License-Identifier: Apache-2.0
"""Process of a node: environment, log, watchdog and shared memory. No ROS."""
