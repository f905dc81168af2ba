# SPDX-License-Identifier: Apache-2.0
"""Simulator's side of its protocol, for simulated bodies and vehicles in ROS."""
