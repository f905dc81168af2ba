# SPDX-License-Identifier: Apache-2.0
"""Text labels in figures."""

from collections.abc import Sequence
from typing import Any

from matplotlib.transforms import offset_copy


def label(panel: Any, text: str, place: Sequence[float], offset: tuple[float, float], **style: Any) -> None:
    """Write a text beside a place in the panel's data, `offset` points to the right and up.

    As `annotate` does, which fails in a part of a figure with matplotlib before 3.6, as humble has it.
    """
    right, up = offset
    panel.text(*place, text, transform=offset_copy(panel.transData, panel.get_figure(), right, up, "points"), **style)
