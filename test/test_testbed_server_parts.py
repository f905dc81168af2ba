# SPDX-License-Identifier: Apache-2.0
"""The parts of testbed_server without a peer: synchronized frames, time, commands and their watchdog."""

import math
from types import SimpleNamespace

import pytest
from builtin_interfaces.msg import Time
from sensor_msgs.msg import Image, Imu

from drone_bridge.ros.images import rgb8_pixels, set_data
from drone_bridge.ros.time import time_from_seconds
from drone_bridge.testbed import topics as translate
from drone_bridge.testbed.codec import AngleUnit, Constants, MotionParameters
from drone_bridge.testbed.device import FlightLimits, ModelledFlight
from drone_bridge.testbed.server.drone import ATTITUDE_TIMEOUT_S, FrameSynchronizer, RosDrone
from drone_bridge.testbed.server.node import CommandOutputs, CommandWatchdog

LONG_S = 1.0
CONSTANTS = Constants(120.0, 90.0, 2, 1, 0.25, 1.0, 9.8125, 0.25, 25.0, 720.0, 720.0, 720.0)


def image(stamp_s, marker=0, encoding="rgb8", width=2, height=1, step=None, data=None):
    step = step or 3 * width
    message = Image(width=width, height=height, encoding=encoding, step=step)
    message.header.stamp = time_from_seconds(stamp_s)
    set_data(message, bytes([marker]) * (step * height) if data is None else data)
    return message


def imu(stamp_s, **orientation):
    message = Imu()
    message.header.stamp = time_from_seconds(stamp_s)
    message.orientation.w = orientation.get("w", 1.0)
    return message


class Inputs:
    """A FrameSynchronizer that is given messages, and how often it reported input."""

    def __init__(self, depth=4, *, keeps_order=False, is_mono=False, tolerance_s=0.0):
        self.calls = 0
        self.synchronizer = FrameSynchronizer(
            depth, keeps_order=keeps_order, is_mono=is_mono, on_input=self._count, tolerance_s=tolerance_s
        )

    def _count(self):
        self.calls += 1

    def pair(self, stamp_s, now_s=0.0, marker=0):
        self.synchronizer.add_image("left", image(stamp_s, marker), now_s)
        self.synchronizer.add_image("right", image(stamp_s, marker + 1), now_s)

    def add_attitude(self, stamp_s, now_s=0.0):
        self.synchronizer.add_attitude(imu(stamp_s), now_s)

    def take(self, now_s=0.0):
        return self.synchronizer.take(now_s, LONG_S)


def test_a_pair_needs_both_sides_of_the_same_stamp_and_an_attitude():
    inputs = Inputs()
    inputs.synchronizer.add_image("left", image(1.0), 0.0)
    inputs.synchronizer.add_image("right", image(1.5), 0.0)
    inputs.add_attitude(1.5)
    assert inputs.take() is None
    inputs.synchronizer.add_image("right", image(1.0), 0.0)
    assert inputs.take().stamp == time_from_seconds(1.0)
    assert inputs.take() is None


@pytest.mark.parametrize(("tolerance_s", "frames"), [(0.0, 0), (0.005, 0), (0.015, 30)])
def test_two_cameras_that_run_freely_make_pairs_within_the_tolerance(tolerance_s, frames):
    inputs = Inputs(tolerance_s=tolerance_s)
    stamps_s = []
    for number in range(30):
        stamp_s = number / 30
        inputs.synchronizer.add_image("left", image(1.0 + stamp_s), 0.0)
        inputs.synchronizer.add_image("right", image(1.01 + stamp_s), 0.0)
        inputs.add_attitude(1.01 + stamp_s)
        if frame := inputs.take():
            stamps_s.append(frame.stamp_ns)
            assert (frame.left.header.stamp, frame.stamp_ns) == (frame.stamp, round((1.0 + stamp_s) * 1e9))
    assert len(stamps_s) == frames


def test_cameras_whose_stamps_match_make_no_other_pairs():
    inputs = Inputs(tolerance_s=0.015)
    inputs.pair(1.0)
    inputs.add_attitude(1.0)
    assert inputs.take()
    inputs.synchronizer.add_image("left", image(1.1), 0.0)
    inputs.synchronizer.add_image("right", image(1.11), 0.0)
    inputs.add_attitude(1.2)
    assert inputs.take() is None


def test_the_attitude_of_the_same_stamp_is_waited_for_and_brings_the_news():
    inputs = Inputs()
    inputs.add_attitude(0.9)
    inputs.pair(1.0)
    assert (inputs.take(), inputs.calls) == (None, 0)
    inputs.add_attitude(1.0)
    assert inputs.calls == 1
    assert inputs.take().attitude.header.stamp == time_from_seconds(1.0)


def test_a_slow_attitude_is_waited_for_but_not_for_long():
    inputs = Inputs()
    inputs.add_attitude(0.9)
    inputs.pair(1.0, now_s=10.0)
    assert inputs.take(now_s=10.0 + ATTITUDE_TIMEOUT_S / 2) is None
    assert inputs.take(now_s=10.0 + 2 * ATTITUDE_TIMEOUT_S).attitude.header.stamp == time_from_seconds(0.9)


def test_an_attitude_that_is_too_old_is_not_used():
    inputs = Inputs()
    inputs.add_attitude(1.0)
    inputs.pair(1.0 + 2 * LONG_S)
    assert inputs.take(now_s=ATTITUDE_TIMEOUT_S) is None


def test_the_nearest_attitude_is_taken():
    inputs = Inputs()
    for stamp_s in (0.9, 0.96, 1.01, 1.1):
        inputs.add_attitude(stamp_s)
    inputs.pair(1.0)
    assert inputs.take().attitude.header.stamp == time_from_seconds(1.01)


def test_latest_takes_the_newest_and_counts_the_rest():
    inputs = Inputs()
    for number in range(10):
        inputs.pair(1.0 + number)
        inputs.add_attitude(1.0 + number)
    assert inputs.take().stamp == time_from_seconds(10.0)
    assert inputs.synchronizer.dropped == 9
    assert inputs.take() is None


def test_in_order_none_is_left_out_until_there_is_no_room():
    inputs = Inputs(depth=3, keeps_order=True)
    for number in range(5):
        inputs.pair(1.0 + number)
        inputs.add_attitude(1.0 + number)
    assert [inputs.take().stamp.sec for _ in range(3)] == [3, 4, 5]
    assert inputs.synchronizer.dropped == 2


@pytest.mark.parametrize("keeps_order", [True, False])
def test_stale_data_is_never_given_as_new(keeps_order):
    inputs = Inputs(keeps_order=keeps_order)
    inputs.pair(1.0, now_s=10.0)
    inputs.add_attitude(1.0)
    assert inputs.take(now_s=10.0 + 2 * LONG_S) is None
    assert inputs.synchronizer.dropped == 1


def test_when_time_runs_back_what_came_before_is_forgotten():
    inputs = Inputs()
    inputs.add_attitude(5.0)
    inputs.pair(5.0)
    inputs.pair(0.0)
    assert inputs.take() is None  # the attitude is of the simulation before
    inputs.add_attitude(0.0)
    taken = inputs.take()
    assert (taken.stamp, taken.attitude.header.stamp) == (Time(), Time())


def test_images_without_their_other_side_are_not_kept_for_ever():
    inputs = Inputs()
    for number in range(100):
        inputs.synchronizer.add_image("left", image(float(number)), 0.0)
    assert inputs.synchronizer.unmatched == 92


def test_one_camera_serves_both_sides():
    inputs = Inputs(is_mono=True)
    inputs.add_attitude(1.0)
    inputs.synchronizer.add_image("left", image(1.0), 0.0)
    taken = inputs.take()
    assert taken.left is taken.right


# Pixels.

RED_BLUE = bytes([255, 0, 1, 2, 3, 254])


@pytest.mark.parametrize(
    ("encoding", "step", "data", "expected"),
    [
        ("rgb8", 6, RED_BLUE, RED_BLUE),
        ("rgb8", 8, RED_BLUE + b"..", RED_BLUE),
        ("bgr8", 6, RED_BLUE, bytes([1, 0, 255, 254, 3, 2])),
        ("rgba8", 8, bytes([1, 2, 3, 9, 4, 5, 6, 9]), bytes([1, 2, 3, 4, 5, 6])),
        ("bgra8", 8, bytes([1, 2, 3, 9, 4, 5, 6, 9]), bytes([3, 2, 1, 6, 5, 4])),
        ("mono8", 2, bytes([7, 8]), bytes([7, 7, 7, 8, 8, 8])),
    ],
)
def test_pixels_become_red_green_blue(encoding, step, data, expected):
    assert bytes(rgb8_pixels(image(0.0, encoding=encoding, step=step, data=data))) == expected


@pytest.mark.parametrize("changes", [{"encoding": "16UC1"}, {"encoding": "yuv422"}, {"data": b"12345"}, {"step": 5}])
def test_other_images_are_refused_with_a_sentence(changes):
    with pytest.raises(ValueError, match=r"has to be one of|says to be"):
        rgb8_pixels(image(0.0, **changes))


# The drone.


class Flown:
    """A drone in ROS that has constants."""

    def __init__(self, *, stamps_are_simulated=False):
        self.inputs = Inputs(keeps_order=True, depth=20)
        self.commands, self.velocities, self.refused = [], [], []
        self.drone = RosDrone(
            self.inputs.synchronizer,
            AngleUnit.DEGREES,
            stamps_are_simulated=stamps_are_simulated,
            now_s=lambda: 0.0,
            max_age_s=lambda: LONG_S,
            command=lambda command, stamp: self.commands.append((command, stamp)),
            follow=self.velocities.append,
            refuse=self.refused.append,
        )
        self.properties = translate.drone_properties(CONSTANTS, AngleUnit.DEGREES)
        self.drone.learn(self.properties)

    def times(self, *stamps_s):
        for stamp_s in stamps_s:
            self.inputs.add_attitude(stamp_s)
            self.inputs.pair(stamp_s)
            yield self.drone.sense().time


def test_time_counts_from_the_first_frame():
    assert list(Flown().times(1000.0, 1000.5, 1002.0)) == [0.0, 0.5, 2.0]


@pytest.mark.parametrize("stamps_are_simulated", [True, False])
def test_when_time_runs_back_a_new_simulation_begins(stamps_are_simulated):
    flown = Flown(stamps_are_simulated=stamps_are_simulated)
    assert list(flown.times(0.0, 5.0, 0.0, 0.5)) == [0.0, 5.0, 0.0, 0.5]
    assert list(flown.times(0.25, 1.0)) == [0.0, 0.75]  # a step back to anything but 0 is told as the same


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [("image_width", 0, "width is 0"), ("mass", math.nan, "weight is nan"), ("max_thrust", 1e300, "does not fit")],
)
def test_properties_that_no_autopilot_would_take_are_refused_with_a_sentence(name, value, sentence):
    flown = Flown()
    known = flown.drone.constants
    setattr(flown.properties, name, value)
    with pytest.raises(ValueError, match=sentence):
        flown.drone.learn(flown.properties)
    assert flown.drone.constants == known


def test_a_command_bears_the_stamp_of_its_frame_and_is_limited():
    flown = Flown()
    list(flown.times(3.5))
    flown.drone.fly(MotionParameters(0.0, 0.0, 0.0, 1000.0))
    ((command, stamp),) = flown.commands
    assert (command.thrust, stamp, flown.drone.limited) == (CONSTANTS.max_thrust, time_from_seconds(3.5), 1)


def test_a_drone_that_follows_velocities_gets_those_of_the_model_and_no_rates():
    flown = Flown()
    limits = FlightLimits(max_speed=5.0, max_climb_speed=2.5, max_tilt=1.0, max_yaw_rate=4.0, max_lead=1.0)
    flown.drone.flight = ModelledFlight(CONSTANTS, AngleUnit.DEGREES, limits, 0.5)
    list(flown.times(1.0))
    flown.drone.fly(MotionParameters(0.0, 0.0, 90.0, 1000.0))
    list(flown.times(1.5))
    flown.drone.fly(MotionParameters(0.0, 0.0, 90.0, 1000.0))
    assert (flown.commands, flown.drone.limited) == ([], 2)
    assert flown.velocities[-1] == pytest.approx((0.0, 0.0, 2.5, math.pi / 2))
    flown.drone.start_over()
    assert flown.drone.flight is None


def test_a_frame_of_another_size_is_refused_with_a_sentence():
    flown = Flown()
    flown.inputs.add_attitude(1.0)
    for side in ("left", "right"):
        flown.inputs.synchronizer.add_image(side, image(1.0, width=4), 0.0)
    assert flown.drone.sense() is None
    assert flown.refused == ["the left image has 4 x 1 pixels, and the drone's properties say 2 x 1."]


# Who steers.


class Steered:
    """A vehicle that remembers what it was told."""

    def __init__(self, is_lockstep=False):
        self.told = []
        self.watchdog = CommandWatchdog(lambda: self.told.append("neutral"), is_lockstep=is_lockstep)

    def steer(self, now_s):
        return self.watchdog.forward(lambda: self.told.append("command"), now_s)


def test_an_operator_that_is_not_heard_leaves_one_neutral_command():
    vehicle = Steered()
    assert not vehicle.watchdog.check(100.0, 0.5)  # nobody has steered yet
    vehicle.steer(10.0)
    assert not vehicle.watchdog.check(10.4, 0.5)
    assert vehicle.watchdog.check(10.5, 0.5)
    assert not vehicle.watchdog.check(20.0, 0.5)
    vehicle.watchdog.release()
    assert vehicle.told == ["command", "neutral"]
    vehicle.steer(30.0)
    vehicle.watchdog.release()
    vehicle.watchdog.release()
    assert vehicle.told == ["command", "neutral", "command", "neutral"]


def test_in_lockstep_every_frame_has_one_command():
    vehicle = Steered(is_lockstep=True)
    vehicle.watchdog.ask(10.0)
    assert vehicle.steer(10.1)
    # A frame that comes when the last command is old has its operator's command, not the neutral one.
    assert not vehicle.watchdog.check(10.7, 0.5)
    vehicle.watchdog.ask(10.7)
    assert not vehicle.watchdog.check(11.1, 0.5)
    assert vehicle.steer(11.1)
    # One whose command does not come has the neutral one, and then not another.
    vehicle.watchdog.ask(11.2)
    assert vehicle.watchdog.check(11.7, 0.5)
    assert not vehicle.steer(11.7)
    assert vehicle.told == ["command", "command", "neutral"]
    vehicle.watchdog.ask(11.8)
    assert vehicle.steer(11.8)


class Takers:
    """A node that knows who takes what."""

    def __init__(self, **takers):
        self.takers = takers
        self.parameters = {"command_output": takers.pop("choice", "auto"), "enable_stamped_cmd_vel": False}

    def resolve_topic_name(self, topic):
        return f"/{topic}"

    def make_publisher(self, *_):
        return None

    def get_subscriptions_info_by_topic(self, topic):
        return [SimpleNamespace(node_name=name) for name in self.takers.get(topic[1:], [])]


def looked(is_flying=False, times=2, outputs=None, **takers):
    """What is published by outputs that have looked at these so often."""
    node = Takers(**takers)
    outputs = outputs or CommandOutputs(node, "base_link")
    outputs._node = node
    for _ in range(times):
        outputs.check_subscribers(is_flying=is_flying)
    return outputs


@pytest.mark.parametrize(
    ("takers", "published"),
    [
        ({}, "cmd_rates"),
        ({"cmd_vel": ["robot_bridge"]}, "cmd_vel"),
        ({"cmd_vel": ["testbed_bridge"], "cmd_rates": ["testbed_bridge"]}, "cmd_rates"),
        ({"cmd_vel": ["robot_bridge", "recorder"], "cmd_rates": ["recorder", "_ros2cli_7"]}, "cmd_vel"),
        ({"cmd_vel": ["robot_bridge"], "cmd_rates": ["_NODE_NAME_UNKNOWN_"]}, "cmd_rates"),
        ({"cmd_vel": ["robot_bridge"], "choice": "cmd_rates"}, "cmd_rates"),
        ({"cmd_rates": ["testbed_bridge"], "choice": "cmd_vel"}, "cmd_vel"),
    ],
)
def test_the_commands_published_are_those_with_subscribers(takers, published):
    assert looked(**takers).wanted == published


def test_a_subscriber_has_to_be_seen_twice_and_the_choice_holds_in_flight():
    seen = looked(cmd_vel=["drone"], times=1)
    assert seen.wanted == "cmd_rates"
    assert looked(cmd_vel=["drone"], times=1, outputs=seen).wanted == "cmd_vel"
    both = {"cmd_vel": ["drone"], "cmd_rates": ["rqt"]}
    assert looked(is_flying=True, outputs=seen, **both).wanted == "cmd_vel"
    assert looked(is_flying=True, outputs=seen, cmd_rates=["drone"]).wanted == "cmd_rates"
    assert looked(is_flying=True, outputs=seen).wanted == "cmd_rates"
