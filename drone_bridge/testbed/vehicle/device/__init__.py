# SPDX-License-Identifier: Apache-2.0
"""Motion of the testbed's drone, for the emulator and for ROS vehicles that are steered by velocity."""
