# SPDX-License-Identifier: Apache-2.0
"""What a testbed tells its autopilots and how its drone moves, whoever flies."""
