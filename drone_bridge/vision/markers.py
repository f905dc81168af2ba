# SPDX-License-Identifier: Apache-2.0
"""Parameters of the markers on a landing pad, and the confidence of a sighting. Does not import OpenCV."""

from __future__ import annotations

import math
from dataclasses import dataclass

from drone_bridge.parameter_fields import parameter

HALF_CONFIDENT_DEVIATION = 0.5  # m, at which a sighting has a confidence of a half


@dataclass(frozen=True, slots=True)
class MarkerParameters:
    """Markers on the pad: all centred on its middle, with their tops to its front.

    Raises ValueError unless each marker has a side above 0.
    """

    marker_dictionary: str = parameter("DICT_4X4_50", "The pad's ArUco dictionary, by OpenCV's name.")
    marker_ids: tuple[int, ...] = parameter((16, 1), "IDs of the markers around the pad's centre.")
    marker_sides: tuple[float, ...] = parameter((0.72, 0.12), "Side lengths of the markers, black border included, m.")

    def __post_init__(self) -> None:
        if len(self.marker_ids) != len(self.marker_sides):
            raise ValueError(
                f"marker_sides must have a side for each of the {len(self.marker_ids)} marker_ids, "
                f"not {len(self.marker_sides)}"
            )
        if not all(0 < side < math.inf for side in self.marker_sides):
            raise ValueError(f"marker_sides must be above 0, not {list(self.marker_sides)}")


def confidence(deviation: float) -> float:
    """Return the confidence of a sighting, 0 to 1, from its horizontal standard deviation, m."""
    return 1 / (1 + deviation / HALF_CONFIDENT_DEVIATION)
