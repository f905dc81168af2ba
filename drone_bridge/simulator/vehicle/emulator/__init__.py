# SPDX-License-Identifier: Apache-2.0
"""Emulated underwater simulator: a world of rigid bodies, served to several clients."""
