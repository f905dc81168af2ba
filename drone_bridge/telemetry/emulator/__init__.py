# SPDX-License-Identifier: Apache-2.0
"""A drone above a rover with a pad: the vehicles' side of the telemetry protocol."""
