# SPDX-License-Identifier: Apache-2.0
"""Reads bags and tells what is in them."""
