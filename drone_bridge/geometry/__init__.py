# SPDX-License-Identifier: Apache-2.0
"""Rotations and vectors, without ROS."""
