# SPDX-License-Identifier: Apache-2.0
"""What the pictures of all demonstrations share: style, labels, square plots. Draws into files, without a display."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
from matplotlib.transforms import offset_copy

GRID_COLOUR: Final = "#e6e6e6"
INK: Final = "#333333"
DOTS_PER_INCH: Final = 110


def new_figure(size_inches: tuple[float, float]) -> Any:
    """Return an empty figure in the common style."""
    mpl.rcParams.update({"font.size": 10, "axes.edgecolor": INK, "axes.labelcolor": INK, "text.color": INK})
    return plt.figure(figsize=size_inches, constrained_layout=True)


def save(figure: Any, file: Path) -> None:
    """Write the figure as PNG and close it."""
    figure.savefig(file, dpi=DOTS_PER_INCH, facecolor="white")
    plt.close(figure)


def show_square(panel: Any, points: npt.NDArray[np.float64], margin: float) -> None:
    """Show a square that holds all points (n x 2) with a margin around them, both axes to one scale."""
    low, high = points.min(axis=0), points.max(axis=0)
    centre, half = (low + high) / 2, (high - low).max() / 2 + margin
    panel.set_aspect("equal")
    panel.set(xlim=(centre[0] - half, centre[0] + half), ylim=(centre[1] - half, centre[1] + half))


def finish(panel: Any, title: str) -> None:
    """Add the title, and a grid behind the data."""
    panel.set_title(title, loc="left", fontweight="bold")
    panel.grid(color=GRID_COLOUR, lw=0.8)
    panel.set_axisbelow(True)


def label(panel: Any, text: str, place: Sequence[float], offset: tuple[float, float], **style: Any) -> None:
    """Write a text beside a place in the panel's data, `offset` points to the right and up.

    As `annotate` does, which fails in a part of a figure with matplotlib before 3.6, as humble has it.
    """
    right, up = offset
    panel.text(*place, text, transform=offset_copy(panel.transData, panel.get_figure(), right, up, "points"), **style)
