# SPDX-License-Identifier: Apache-2.0
"""The behaviour flight_plan: takes off, flies a square by the clock and lands."""
