# SPDX-License-Identifier: Apache-2.0
"""Train a small policy to land on a rover, then fly it through ROS: docs/learn.md.

python examples/learn_to_land.py train            # some minutes; writes landing_policy.zip
python examples/learn_to_land.py judge            # how often it lands well, in the environment
python examples/learn_to_land.py judge --ros      # the same through emulator and bridge
python examples/learn_to_land.py fly              # as a node, beside landing.launch.xml
"""

import argparse
import math
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import gymnasium
import numpy as np

import drone_bridge.learn  # noqa: F401 # registers the environments

PERIOD_S = 0.04  # between observations
FULL_TILT = 0.5  # rad
GRAVITY = 9.81


class Pilot:
    """Makes of each observation what the policy looks at, and of what it wants the four shares.

    The policy sees the pad as it is remembered, and wants velocities relative to it: that is all it has to learn.
    """

    def __init__(self) -> None:
        self._pad = np.zeros(3)  # where it is: forward, left, below, m
        self._rover = np.zeros(2)  # its velocity, m/s
        self._unseen_s = 3.0
        self._state = np.zeros(15)

    def look(self, state):
        """Return the 9 numbers that the policy sees, about from -1 to 1."""
        self._state = np.asarray(state, np.float64)
        velocity, sees, seen = self._state[5:8], self._state[9] > 0.5, self._state[10:13]
        turn = -self._state[4] * PERIOD_S
        rotation = np.array([[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]])
        self._rover = rotation @ self._rover
        self._pad[:2] = rotation @ self._pad[:2] + (self._rover - velocity[:2]) * PERIOD_S
        self._pad[2] += velocity[2] * PERIOD_S
        if sees and self._unseen_s > 2:
            self._pad, self._rover = seen.copy(), np.zeros(2)
        elif sees:
            missed = seen - self._pad
            self._pad += 0.3 * missed
            self._rover += 0.02 * missed[:2] / PERIOD_S
        self._unseen_s = 0.0 if sees else self._unseen_s + PERIOD_S
        relative = velocity[:2] - self._rover
        seen_lately = max(0.0, 1 - self._unseen_s / 3)
        pad = np.array([*self._pad[:2], self._pad[2] - 0.1])
        return np.array(
            [*np.tanh(pad / 2), *np.tanh(pad * 2)[:2], *relative, velocity[2], seen_lately], np.float32
        ).clip(-5, 5)

    def act(self, wanted):
        """Return the shares of thrust, pitch, roll and yaw for velocities (forward, left, up; -1 to 1)."""
        forward, left, up = np.clip(wanted, -1, 1) * (2.0, 2.0, 1.5)
        velocity = self._state[5:8]
        if self._state[14] > 0.5 and self._unseen_s < 5:
            return np.array([-1.0, 0.0, 0.0, 0.0], np.float32)  # it stands: the motors stay off
        relative = velocity[:2] - self._rover
        ahead, aside = 3.0 * (np.array([forward, left]) - relative) + 0.4 * velocity[:2]
        pitch, roll = (math.atan2(acceleration, GRAVITY) / FULL_TILT for acceleration in (ahead, -aside))
        return np.clip([(4.0 * (up - velocity[2]) + 2.0 * up) / 5.0, pitch, roll, 0.0], -1, 1).astype(np.float32)


class Piloted(gymnasium.Wrapper):
    """The environment as the policy sees it."""

    def __init__(self, env) -> None:
        super().__init__(env)
        self.observation_space = gymnasium.spaces.Box(-5, 5, (9,), np.float32)
        self.action_space = gymnasium.spaces.Box(-1, 1, (3,), np.float32)

    def reset(self, **options):
        """Begin with a pilot who remembers nothing."""
        state, info = self.env.reset(**options)
        self._pilot = Pilot()
        return self._pilot.look(state), info

    def step(self, action):
        """Fly what the policy wants."""
        state, *rest = self.env.step(self._pilot.act(action))
        return (self._pilot.look(state), *rest)


def make(**options):
    """Return the environment, with the pilot in it."""
    return Piloted(gymnasium.make("drone_bridge/Landing-v0", **options))


def train(options):
    """Train by PPO, and save the policy."""
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env

    torch.set_num_threads(1)
    env = make_vec_env(make, n_envs=8, seed=options.seed)
    model = PPO(
        "MlpPolicy",
        env,
        n_steps=512,
        batch_size=512,
        n_epochs=8,
        gamma=0.985,
        learning_rate=lambda left: 1e-3 * left,
        policy_kwargs={"net_arch": [32, 32], "log_std_init": -0.7},
        seed=options.seed,
        device="cpu",
        verbose=1,
    )
    model.learn(options.steps)
    model.save(options.policy)


def load(options):
    """Return a function from what the policy sees to what it wants."""
    from stable_baselines3 import PPO

    model = PPO.load(options.policy, device="cpu")
    return lambda seen: model.predict(seen, deterministic=True)[0]


def judge(options):
    """Print how often the policy lands well on each pattern, inside or through ROS."""
    from drone_bridge.telemetry.demonstration import PATTERNS

    land = land_through_ros if options.ros else land_inside
    for pattern, errors in land(load(options), PATTERNS, options.landings):
        good = [error for error in errors if error is not None]
        mean = f"{np.mean(good):.2f} ({max(good):.2f}) m off the centre" if good else ""
        print(f"{pattern:12} {len(good)} of {len(errors)}  {mean}", flush=True)


def land_inside(policy, patterns, landings):
    """Yield each pattern with how far off the centre each landing was; None for one that was not good."""
    for pattern in patterns:
        env, errors = make(patterns=[pattern], wind=0.0, delay=0), []
        for seed in range(landings):
            seen, info = env.reset(seed=seed)
            is_over = False
            while not is_over:
                seen, _, is_lost, is_late, info = env.step(policy(seen))
                is_over = is_lost or is_late
            touchdown = info.get("touchdown")
            errors.append(touchdown.position_error if touchdown and touchdown.is_good else None)
        yield pattern, errors


# Through ROS: the same pilot and policy between four topics and one.


def start_node(policy):
    """Return a node that flies whatever telemetry_bridge connects to."""
    from geometry_msgs.msg import PointStamped, TwistWithCovarianceStamped
    from rclpy.node import Node
    from sensor_msgs.msg import Imu
    from std_msgs.msg import Bool

    from drone_bridge.controllers.messages import StampedSets, read_angles
    from drone_bridge.msg import CommandAxes, LandingPad

    class LearnedLanding(Node):
        def __init__(self) -> None:
            super().__init__("learned_landing")
            self._pilot, self._landed, self._stamp_s = Pilot(), False, 0.0
            self._commands = self.create_publisher(CommandAxes, "cmd_axes", 1)
            types = {
                "imu/data": Imu,
                "velocity": TwistWithCovarianceStamped,
                "height": PointStamped,
                "landing_pad": LandingPad,
            }
            sets = StampedSets(tuple(types), self._on_measured)
            for topic, kind in types.items():
                self.create_subscription(kind, topic, lambda message, topic=topic: sets.add(topic, message), 1)
            self.create_subscription(Bool, "landed", self._on_landed, 1)

        def _on_landed(self, message) -> None:
            self._landed = message.data

        def _on_measured(self, messages) -> None:
            imu, velocity = messages["imu/data"], messages["velocity"].twist.twist.linear
            pad, height = messages["landing_pad"], messages["height"].point.z
            stamp_s = imu.header.stamp.sec + imu.header.stamp.nanosec * 1e-9
            if not 0 < stamp_s - self._stamp_s < 1:  # another flight
                self._pilot = Pilot()
            self._stamp_s = stamp_s
            angles, rates = read_angles(imu, "imu/data"), imu.angular_velocity
            where = (1.0, pad.offset_x, pad.offset_y, pad.distance, pad.confidence) if pad.detected else (0.0,) * 5
            state = [*angles[:2], rates.x, rates.y, rates.z, velocity.x, velocity.y, velocity.z, height, *where]
            thrust, pitch, roll, yaw = self._pilot.act(policy(self._pilot.look([*state, float(self._landed)]))).tolist()
            self._commands.publish(CommandAxes(header=imu.header, thrust=thrust, pitch=pitch, roll=roll, yaw=yaw))

    return LearnedLanding()


def land_through_ros(policy, patterns, landings):
    """Yield as land_inside() does, by the emulator's own judgement."""
    from drone_bridge.telemetry.demonstration import DEMONSTRATION
    from drone_bridge.tools.demo.composition import Composition, free_port, isolate_ros_graph

    isolate_ros_graph()
    import rclpy

    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        bridge = Composition("landing.launch.xml", Path(folder, "log"), telemetry_port=port, flights=False)
        rclpy.init()
        threading.Thread(target=rclpy.spin, args=(start_node(policy),), daemon=True).start()
        try:
            assert bridge.wait_for("Waiting for telemetry", 60.0), bridge.tail()
            for pattern in patterns:
                emulate = [sys.executable, "-m", "drone_bridge.telemetry.emulator", "--port", str(port), "--no-images"]
                emulate += ["--rover", pattern, "--duration", "60", "--until-landed"]
                ends = (
                    subprocess.run([*emulate, "--seed", str(seed)], capture_output=True, text=True, check=False).stdout
                    for seed in range(landings)
                )
                found = (re.search(DEMONSTRATION.flights.done, output) for output in ends)
                yield pattern, [float(end["error"]) if end and end["verdict"] == "good" else None for end in found]
        finally:
            rclpy.try_shutdown()
            bridge.stop()


def fly(options):
    """Fly until Ctrl-C."""
    import rclpy

    rclpy.init()
    rclpy.spin(start_node(load(options)))


def main():
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("train", "judge", "fly"))
    parser.add_argument("--policy", default="landing_policy.zip", help="(%(default)s)")
    parser.add_argument("--steps", type=int, default=300_000, help="of training (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of training (%(default)s)")
    parser.add_argument("--landings", type=int, default=20, help="per pattern (%(default)s)")
    parser.add_argument("--ros", action="store_true", help="judge through emulator, bridge and topics")
    options = parser.parse_args()
    {"train": train, "judge": judge, "fly": fly}[options.what](options)


if __name__ == "__main__":
    sys.exit(main())
