# SPDX-License-Identifier: Apache-2.0
"""Turns a bag into one HTML page."""
