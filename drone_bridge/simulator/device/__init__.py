# SPDX-License-Identifier: Apache-2.0
"""The simulator's side of the simulator protocol, for simulated bodies and vehicles in ROS."""
