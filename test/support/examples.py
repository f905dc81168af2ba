# SPDX-License-Identifier: Apache-2.0
"""How many examples hypothesis draws where a test needs another number than usual."""

from hypothesis import settings


def examples(count):
    """Return settings for so many examples, or for the share of them that the profile in force draws of the usual 100.

    That is a fifth in `make check`: see conftest.py.
    """
    return settings(max_examples=count * settings.default.max_examples // 100)
