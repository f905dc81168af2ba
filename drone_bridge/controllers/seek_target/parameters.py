# SPDX-License-Identifier: Apache-2.0
"""The parameters of the behaviour `seek_target`; the ROS node declares each field."""

import math
from dataclasses import dataclass

from drone_bridge.described import described


@dataclass(frozen=True, slots=True)
class SeekParameters:
    """What to seek, and how to fly.

    Raises ValueError for a holding point inside the target or beyond reach_distance, and for an invalid colour.
    """

    target_colour: tuple[int, ...] = described((255, 0, 0), "Red, green, blue of the target, each 0 to 255.")
    colour_tolerance: int = described(10, "Tolerance of each colour channel.", 0, 255)
    background_level: int = described(
        200, "Pixels with all channels at or above this are background; 0: everything but the target.", 0, 255
    )
    target_radius: float = described(0.5, "Radius of the target, m.", 0.01, 100.0)
    target_radius_deviation: float = described(
        0.005, "Relative deviation of the radius; about 1 when it is not known, then stereo decides.", 0.0, 10.0
    )
    hold_distance: float = described(0.65, "Distance from the target's centre at which to stop, m.", 0.1, 100.0)
    reach_distance: float = described(
        0.75, "Distance from the target's centre within which it counts as reached, m.", 0.1, 100.0
    )
    max_speed: float = described(4.0, "Horizontal speed limit, m/s.", 0.1, 50.0)
    max_climb_speed: float = described(2.5, "Climb and sink rate limit, m/s.", 0.1, 50.0)
    max_deceleration: float = described(3.0, "Deceleration on which braking distances are based, m/s^2.", 0.1, 50.0)
    max_acceleration: float = described(5.0, "Sideways acceleration limit, m/s^2.", 0.1, 50.0)
    max_tilt: float = described(math.radians(30), "Tilt limit, rad.", 0.05, 1.2)
    max_turn_rate: float = described(4.0, "Roll and pitch rate limit, rad/s.", 0.1, 20.0)
    search_yaw_rate: float = described(2.0, "Yaw rate while looking around, rad/s.", 0.1, 10.0)
    search_height: float = described(3.0, "Change of height for each further turn of the search, m.", 0.1, 100.0)
    coast_time: float = described(
        2.0, "Time to continue by dead reckoning while the target is out of sight, s.", 0.0, 60.0
    )
    position_gain: float = described(1.4, "Position gain close to the holding point, 1/s.", 0.01, 20.0)
    velocity_gain: float = described(2.5, "Velocity gain, 1/s.", 0.01, 20.0)
    attitude_gain: float = described(8.0, "1/s.", 0.1, 50.0)
    yaw_gain: float = described(3.0, "1/s.", 0.1, 50.0)
    edge_margin: float = described(
        math.radians(12), "Desired margin between the target's outline and the edge of the view, rad.", 0.0, 1.0
    )

    def __post_init__(self) -> None:
        if not self.target_radius < self.hold_distance < self.reach_distance:
            raise ValueError(
                f"hold_distance has to be between target_radius, {self.target_radius}, and reach_distance, "
                f"{self.reach_distance}, not {self.hold_distance}"
            )
        if len(self.target_colour) != 3 or not all(0 <= channel <= 255 for channel in self.target_colour):
            raise ValueError(f"target_colour has to be three numbers from 0 to 255, not {list(self.target_colour)}")
