# SPDX-License-Identifier: Apache-2.0
"""Testbed emulator: a drone with two cameras in a world of spheres."""
