# SPDX-License-Identifier: Apache-2.0
"""TargetEstimator: Kalman filter of the target's position, the drone's velocity and disturbances, from outlines.

Frame: levelled, z up, x along the nose at yaw 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from drone_bridge.controllers.seek_target.sphere_detector import Outline
from drone_bridge.motion.matrices import Matrix, Vector

POSITION = slice(0, 3)  # of the target relative to the drone, m
VELOCITY = slice(3, 6)  # of the drone, m/s
DISTURBANCE = slice(6, 9)  # acceleration not explained by thrust or by drag in calm air, m/s^2
LOG_RADIUS = 9  # natural logarithm of the target's radius in m
SIZE = 10
FITTED = [0, 1, 2, LOG_RADIUS]

START_SPEED_DEVIATION = 0.3  # m/s
START_DISTURBANCE_DEVIATION = 0.4  # m/s^2: 1 m/s of wind with a drag of 0.2 kg/s for half a kilogram
ACCELERATION_NOISE = 0.1  # m/s after 1 s, by the error of the predicted acceleration
DISTURBANCE_NOISE = 0.15  # m/s^2 after 1 s
UNRELATED_DEVIATIONS = 5.0  # an outline this far from the expected place is not the tracked target
ITERATIONS = 6
DOUBTED_SPEED_DEVIATION = 1.0  # m/s
PLACE_DEVIATION = 3e-3  # m, of the drone's measured position
DISTURBANCE_TIME = 30.0  # s, decay time of an unobserved disturbance
MIDDLE_DEVIATION = 3.0  # of the target's centre from the middle of the visible part, in apparent radii; errors persist
LEAST_APPARENT_RADIUS = 0.01  # rad
FARTHEST = 1000.0  # m, for the initial estimate
INSIDE_MARGIN = 1.02  # least distance in radii at which an outline exists


class TargetEstimator:
    """Estimator of a sphere's relative position, the drone's velocity, and a slow disturbance (wind, a tilted frame).

    The measurement is the angle between each point of the outline and the direction to the centre, which should be
    asin(radius / distance). The points of both cameras contain all information: direction, apparent size, disparity.
    Poor or missing components, such as those of a clipped outline, get less weight automatically. A visible part
    without any outline still gives a rough direction.
    """

    def __init__(self, baseline: float, decay: float, radius: float, radius_deviation: float) -> None:
        """Initialize with baseline, m, decay of speed by drag, 1/s, and radius, m, with its relative deviation."""
        self._eyes = (np.array([0, baseline / 2, 0]), np.array([0, -baseline / 2, 0]))  # body axes
        self._decay = decay
        self._radius = radius
        self._radius_deviation = radius_deviation
        self._state: npt.NDArray[np.float64] = np.zeros(SIZE)
        self._state[LOG_RADIUS] = math.log(radius)
        deviations = [0.0] * 3 + [START_SPEED_DEVIATION] * 3 + [START_DISTURBANCE_DEVIATION] * 3 + [radius_deviation]
        self._covariance = np.diag(deviations) ** 2
        self.is_tracking = False
        self._origin: Vector | None = None  # reference of the position without a target, if odometry is available

    @property
    def position(self) -> Vector:
        """Position of the target relative to the drone, m. Meaningless before the first sighting."""
        return self._state[POSITION].copy()

    @property
    def velocity(self) -> Vector:
        """Velocity of the drone, m/s."""
        return self._state[VELOCITY].copy()

    @property
    def disturbance(self) -> Vector:
        """Acceleration by wind and other disturbances, m/s^2."""
        return self._state[DISTURBANCE].copy()

    @property
    def radius(self) -> float:
        """Radius of the target, m."""
        return math.exp(float(self._state[LOG_RADIUS]))

    def forget(self) -> None:
        """Discard the target, but keep the velocity."""
        self.is_tracking = False
        self._origin = None

    def predict(self, acceleration: Vector, step: float) -> None:
        """Advance by `step` seconds under the acceleration by thrust and gravity, m/s^2."""
        transition = np.eye(SIZE)
        kept = math.exp(-self._decay * step)
        gained = -math.expm1(-self._decay * step) / self._decay if self._decay > 1e-9 else step
        for axis in range(3):
            position, velocity, disturbance = axis, VELOCITY.start + axis, DISTURBANCE.start + axis
            transition[position, velocity] = -gained
            transition[position, disturbance] = -step * step / 2
            transition[velocity, velocity] = kept
            transition[velocity, disturbance] = gained
            transition[disturbance, disturbance] = math.exp(-step / DISTURBANCE_TIME)
        self._state = transition @ self._state
        self._state[POSITION] -= acceleration * step * step / 2
        self._state[VELOCITY] += acceleration * gained
        self._covariance = transition @ self._covariance @ transition.T
        for axis in range(3):
            self._covariance[VELOCITY.start + axis, VELOCITY.start + axis] += ACCELERATION_NOISE**2 * step
            self._covariance[DISTURBANCE.start + axis, DISTURBANCE.start + axis] += DISTURBANCE_NOISE**2 * step

    def correct_by_place(self, place: Vector) -> None:
        """Correct velocity and disturbance by the drone's position, m. Ignored while a target is tracked.

        The first position then serves as a fixed reference, in place of the target.
        """
        if self.is_tracking:
            return
        if self._origin is None:
            self._origin = place
            self._state[POSITION] = 0
            self._covariance[POSITION, :] = self._covariance[:, POSITION] = 0
            return
        cross = self._covariance[:, POSITION]
        spread = cross[POSITION] + PLACE_DEVIATION**2 * np.eye(3)
        gain = np.linalg.solve(spread, cross.T).T
        self._state = self._state + gain @ (self._origin - place - self._state[POSITION])
        self._covariance = self._covariance - gain @ cross.T
        self._covariance = (self._covariance + self._covariance.T) / 2

    def correct(self, outlines: Sequence[Outline | None], rotation: Matrix) -> None:
        """Correct by the outlines in the left and right image. `rotation`: from body axes to levelled ones."""
        seen = [
            (rotation @ eye, outline) for eye, outline in zip(self._eyes, outlines, strict=True) if outline is not None
        ]
        if not seen:
            return
        if not self.is_tracking:
            self._start_tracking(seen, rotation)
        if not self._fit(seen, rotation):
            self._doubt_motion()
            self._start_tracking(seen, rotation)
            self._fit(seen, rotation)

    def _start_tracking(self, seen: Sequence[tuple[Vector, Outline]], rotation: Matrix) -> None:
        """Initialize the target's position by its centre and size in the images."""
        self.is_tracking = True
        self._covariance[LOG_RADIUS, :] = self._covariance[:, LOG_RADIUS] = 0
        self._covariance[LOG_RADIUS, LOG_RADIUS] = self._radius_deviation**2
        self._state[LOG_RADIUS] = math.log(self._radius)
        guesses = []
        for eye, outline in seen:
            # A cone of half angle a has a solid angle of 2 pi (1 - cos a).
            versine = min(outline.solid_angle / math.tau, 1.0)
            distance = min(self._radius / math.sqrt(versine * (2 - versine)), FARTHEST)
            guesses.append(eye + distance * (rotation @ outline.middle))
        guess = np.mean(guesses, axis=0)
        self._state[POSITION] = guess
        self._covariance[POSITION, :] = 0
        self._covariance[:, POSITION] = 0
        self._covariance[POSITION, POSITION] = np.eye(3) * float(guess @ guess)

    def _doubt_motion(self) -> None:
        """Reset the disturbance and the uncertainty of the motion, whose prediction missed the target."""
        for block, deviation in ((VELOCITY, DOUBTED_SPEED_DEVIATION), (DISTURBANCE, START_DISTURBANCE_DEVIATION)):
            self._covariance[block, :] = 0
            self._covariance[:, block] = 0
            self._covariance[block, block] = deviation**2 * np.eye(3)
        self._state[DISTURBANCE] = 0

    def _fit(self, seen: Sequence[tuple[Vector, Outline]], rotation: Matrix) -> bool:
        """Correct the state by outlines. Return False, without changes, if they are not the tracked target's."""
        prior = self._state[FITTED]
        prior_covariance = self._covariance[np.ix_(FITTED, FITTED)]
        prior_information = np.linalg.inv(prior_covariance + 1e-12 * np.eye(4))
        fitted = prior.copy()
        for _ in range(ITERATIONS):
            information = np.zeros((4, 4))
            pull: npt.NDArray[np.float64] = np.zeros(4)
            for eye, outline in seen:
                # Errors of neighbouring points are correlated, so the total weight of an outline is limited.
                weights = 1 / (outline.deviations**2 * max(1.0, len(outline.deviations) / 40))
                residuals, jacobian = _outline_residuals(fitted, eye, outline.edges @ rotation.T)
                information += jacobian.T @ (weights[:, np.newaxis] * jacobian)
                pull -= jacobian.T @ (weights * residuals)
                residuals, jacobian = _middle_residuals(fitted, eye, rotation @ outline.middle)
                information += jacobian.T @ jacobian
                pull -= jacobian.T @ residuals
            change = np.linalg.solve(prior_information + information, pull + prior_information @ (prior - fitted))
            largest = 0.5 * float(np.linalg.norm(fitted[:3]))
            change *= min(1.0, largest / max(float(np.linalg.norm(change[:3])), 1e-9))
            fitted = fitted + change
            if float(np.linalg.norm(change[:3])) < 1e-4 * largest:
                break
        moved = fitted - prior
        if float(moved @ prior_information @ moved) > UNRELATED_DEVIATIONS**2:
            return False
        # Use the fit as a measurement of position and radius. Its information matrix may be singular.
        cross = self._covariance[:, FITTED]
        gain = cross @ np.linalg.inv(np.eye(4) + information @ prior_covariance)
        posterior_change = pull + information @ moved
        self._state = self._state + gain @ posterior_change
        self._covariance = self._covariance - gain @ information @ cross.T
        self._covariance = (self._covariance + self._covariance.T) / 2
        return True


def _middle_residuals(
    fitted: npt.NDArray[np.float64], eye: Vector, middle: Vector
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the offset of the target from its visible part, in deviations, and the derivative, 3 x 4."""
    towards = fitted[:3] - eye
    distance = max(float(np.linalg.norm(towards)), 1e-6)
    apparent_radius = math.asin(min(math.exp(min(float(fitted[3]), 10.0)) / distance, 1.0))
    weight = 1 / (MIDDLE_DEVIATION * max(apparent_radius, LEAST_APPARENT_RADIUS))
    sideways = np.eye(3) - np.outer(middle, middle)
    residuals = weight * (sideways @ towards) / distance
    return residuals, np.hstack([weight / distance * sideways, np.zeros((3, 1))])


def _outline_residuals(
    fitted: npt.NDArray[np.float64], eye: Vector, directions: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the angle of each direction outside the outline, rad, and its derivative by the fitted state, n x 4."""
    radius = math.exp(min(float(fitted[3]), 10.0))
    towards = fitted[:3] - eye
    distance = max(float(np.linalg.norm(towards)), 1e-6)
    towards = towards / distance
    distance = max(distance, INSIDE_MARGIN * radius)
    cosines = directions @ towards
    sines = np.sqrt(np.maximum(1 - cosines**2, 1e-12))
    sine = radius / distance
    cosine = math.sqrt(1 - sine * sine)
    residuals = np.arctan2(sines, cosines) - math.asin(sine)
    sideways = (directions - cosines[:, np.newaxis] * towards) / sines[:, np.newaxis]
    by_position = -sideways / distance + sine / (distance * cosine) * towards
    by_log_radius = np.full((len(directions), 1), -sine / cosine)
    return residuals, np.hstack([by_position, by_log_radius])
