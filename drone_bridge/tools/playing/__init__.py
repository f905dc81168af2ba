# SPDX-License-Identifier: Apache-2.0
"""Plays bags back."""
