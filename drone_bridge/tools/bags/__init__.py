# SPDX-License-Identifier: Apache-2.0
"""Bag reading, for the commands info, play, report and view."""
