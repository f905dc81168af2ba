# SPDX-License-Identifier: Apache-2.0
"""Your pilot: thrust by what is observed."""

import gymnasium

import drone_bridge.learn  # noqa: F401 # registers the environments

WEIGHT = 9.81  # N


class Pilot:
    """Hovers, more or less."""

    def act(self, observation):
        """Return roll, pitch and yaw rate (rad/s), and thrust (N)."""
        return [0.0, 0.0, 0.0, WEIGHT]


if __name__ == "__main__":
    env = gymnasium.make("drone_bridge/Testbed-v0")
    seen, _ = env.reset(seed=1)
    pilot = Pilot()
    for step in range(600):
        seen, _, is_over, _, _ = env.step(pilot.act(seen))
        if is_over:
            break
        if step % 30 == 0:
            print(f"{step / 60:4.1f} s: the sphere is {seen[7]:5.2f} m above", " " * int(5 * abs(seen[7])) + "o")
