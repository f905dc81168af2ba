# SPDX-License-Identifier: Apache-2.0
"""The behaviour seek_target: flies to a sphere that both cameras see."""
