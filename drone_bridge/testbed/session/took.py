# SPDX-License-Identifier: Apache-2.0
"""Took: a duration that a session has measured, for reports."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Took:
    """How long something took."""

    name: str
    seconds: float
