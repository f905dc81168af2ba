# SPDX-License-Identifier: Apache-2.0
"""Behaviour land_on_pad: finds a pad that may move, follows it, and lands on it."""
