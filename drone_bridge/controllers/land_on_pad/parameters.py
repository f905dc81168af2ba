# SPDX-License-Identifier: Apache-2.0
"""The parameters of the behaviour `land_on_pad`; the ROS node declares each field."""

from __future__ import annotations

from dataclasses import dataclass

from drone_bridge.described import described


@dataclass(frozen=True, slots=True)
class LandParameters:
    """How to search, follow and descend.

    Raises ValueError when the drone would have to tilt further than it can.
    """

    # How the drone answers.
    full_tilt: float = described(0.5, "Tilt for a share of 1 in cmd_vel, rad.", 0.01, 1.5)
    thrust_acceleration: float = described(5.0, "Upward acceleration for a share of 1 in cmd_vel, m/s^2.", 0.1, 100.0)
    response_time: float = described(0.2, "From a command to its effect, s.", 0.0, 2.0)

    # Limits.
    max_tilt: float = described(0.35, "Tilt limit, rad.", 0.02, 1.2)
    max_speed: float = described(2.5, "Towards the pad, beyond the pad's own speed, m/s.", 0.1, 20.0)
    max_deceleration: float = described(2.0, "Deceleration on which braking distances are based, m/s^2.", 0.1, 10.0)
    max_climb_speed: float = described(2.0, "m/s.", 0.1, 10.0)
    max_descent_speed: float = described(1.5, "Speed while searching, m/s.", 0.1, 10.0)

    # Search.
    search_height: float = described(7.0, "Height above ground while searching, m.", 0.5, 100.0)
    search_speed: float = described(1.5, "Speed while searching, m/s.", 0.1, 20.0)
    search_spacing: float = described(4.0, "Distance between the lanes of the search pattern, m.", 0.2, 100.0)
    search_radius: float = described(10.0, "How far the search goes before it starts over, m.", 1.0, 1000.0)
    lost_time: float = described(0.5, "Time without sight of the pad after which the drone climbs, s.", 0.05, 10.0)
    coast_time: float = described(3.0, "Time without sight of the pad after which the search restarts, s.", 0.1, 60.0)

    # Landing.
    align_radius: float = described(0.2, "Maximum distance from the pad's centre for landing, m.", 0.01, 10.0)
    align_slope: float = described(
        0.2, "Additional distance allowed while descending, per m above commit_height.", 0.0, 2.0
    )
    align_speed: float = described(0.4, "Maximum speed relative to the pad for landing, m/s.", 0.02, 10.0)
    commit_height: float = described(0.6, "Height above the pad below which the landing is not aborted, m.", 0.1, 10.0)
    blind_deviation: float = described(
        0.3,
        "Standard deviation of the pad's position, while out of sight, above which a landing is aborted, m.",
        0.01,
        100.0,
    )
    touchdown_speed: float = described(0.5, "Sink rate at touchdown, m/s.", 0.05, 5.0)
    touchdown_height: float = described(
        0.2, "Upper bound of the height measured while standing on the pad, m.", 0.0, 2.0
    )
    descent_gain: float = described(1.0, "Additional sink rate per m above commit_height, 1/s.", 0.0, 10.0)
    cut_time: float = described(2.0, "Time for which the motors are commanded to stop after touchdown, s.", 0.0, 60.0)

    # Control.
    position_gain: float = described(1.8, "Position gain close to the pad, 1/s.", 0.01, 20.0)
    velocity_gain: float = described(4.0, "Velocity gain, 1/s.", 0.01, 20.0)
    climb_gain: float = described(3.0, "1/s.", 0.01, 20.0)
    trim_gain: float = described(1.0, "Integral gain against wind, 1/s^2.", 0.0, 20.0)
    yaw_gain: float = described(
        0.7, "Fraction of the full turn rate per rad of heading error, while searching.", 0.0, 20.0
    )

    def __post_init__(self) -> None:
        if self.max_tilt > self.full_tilt:
            raise ValueError(f"max_tilt has to be at most full_tilt, {self.full_tilt}, not {self.max_tilt}")
        if self.lost_time > self.coast_time:
            raise ValueError(f"lost_time has to be at most coast_time, {self.coast_time}, not {self.lost_time}")
