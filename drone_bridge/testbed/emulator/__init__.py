# SPDX-License-Identifier: Apache-2.0
"""A drone with two cameras in a world of spheres: the testbed's side of its protocol."""
