# SPDX-License-Identifier: Apache-2.0
"""The markers on a landing pad, and how far a sighting of them is to be trusted. Imports no OpenCV."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from drone_bridge.described import described

HALF_CONFIDENT_DEVIATION: Final = 0.5  # m, at which a sighting has a confidence of a half


@dataclass(frozen=True, slots=True)
class MarkerParameters:
    """What is printed on the pad: markers around its middle, their tops to its front.

    Raises ValueError for markers without a side, and sides of nothing.
    """

    marker_dictionary: str = described("DICT_4X4_50", "Which ArUco markers are on the pad, as OpenCV names them.")
    marker_ids: tuple[int, ...] = described((16, 1), "The markers around the pad's middle.")
    marker_sides: tuple[float, ...] = described((0.72, 0.12), "Their sides with the black border, m.")

    def __post_init__(self) -> None:
        if len(self.marker_ids) != len(self.marker_sides):
            raise ValueError(
                f"marker_sides has to have a side for each of the {len(self.marker_ids)} marker_ids, "
                f"not {len(self.marker_sides)}"
            )
        if not all(0 < side < math.inf for side in self.marker_sides):
            raise ValueError(f"marker_sides have to be above 0, not {list(self.marker_sides)}")


def confidence(deviation: float) -> float:
    """Return from 0 to 1 how far a sighting is to be trusted, by its standard deviation across, m."""
    return 1 / (1 + deviation / HALF_CONFIDENT_DEVIATION)
