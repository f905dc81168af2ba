# SPDX-License-Identifier: Apache-2.0
"""Paths in the repository."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "test"
CAPTURES = TESTS / "captures"
"""Captures of other programs."""
