# SPDX-License-Identifier: Apache-2.0
"""Telemetry emulator: a drone above a rover with a landing pad."""
