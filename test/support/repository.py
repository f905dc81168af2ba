# SPDX-License-Identifier: Apache-2.0
"""Where things are in the repository."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "test"
CAPTURES = TESTS / "captures"
"""Byte streams of programs that are not ours."""
