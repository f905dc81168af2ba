# SPDX-License-Identifier: Apache-2.0
"""Emulator: a drone on the network, and its camera."""
