# SPDX-License-Identifier: Apache-2.0
"""Dronegui emulator: a drone behind its control GUI."""
