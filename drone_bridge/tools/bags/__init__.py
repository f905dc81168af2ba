# SPDX-License-Identifier: Apache-2.0
"""Bag reading, and the commands info, export and recover."""
