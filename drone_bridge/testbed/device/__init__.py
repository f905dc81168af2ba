# SPDX-License-Identifier: Apache-2.0
"""How a testbed's drone moves, for an emulated testbed and for vehicles in ROS that follow velocities."""
