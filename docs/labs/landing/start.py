# SPDX-License-Identifier: Apache-2.0
"""Your pilot: thrust and tilt by what is observed."""

import gymnasium

import drone_bridge.learn  # noqa: F401 # registers the environments


class Pilot:
    """Looks for the pad, and then hovers."""

    def act(self, seen):
        """Return thrust, pitch, roll and yaw, as LandingEnv describes them."""
        climb = seen[7]  # m/s
        sees_pad = seen[9]
        if not sees_pad:
            return [0.3 * (0.5 - climb), 0.0, 0.0, 0.3]
        return [-0.3 * climb, 0.0, 0.0, 0.0]


if __name__ == "__main__":
    env = gymnasium.make("drone_bridge/Landing-v0", patterns=["stationary"])
    seen, _ = env.reset(seed=11)
    pilot = Pilot()
    for step in range(1000):
        seen, _, is_over, _, info = env.step(pilot.act(seen))
        if step % 50 == 0:
            print(f"{step / 25:4.1f} s: {seen[8]:.2f} m high, the pad is {info['distance']:.2f} m away")
        if is_over:
            print(info)
            break
