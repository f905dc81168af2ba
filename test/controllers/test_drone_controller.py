# SPDX-License-Identifier: Apache-2.0
"""drone_controller with its behaviour seek_target, with a fake clock and a simulated bridge."""

import array
import math

import pytest
from controller_node import ControllerNode
from controller_pilot import BASELINE, HEIGHT, TARGET, TARGET_M, WIDTH, messages, properties
from nav_msgs.msg import Odometry

from drone_bridge.controllers.seek_target.behaviour import StereoFrame
from drone_bridge.controllers.seek_target.pilot import SeekParameters, SeekTarget
from drone_bridge.motion.flight_control import DroneModel
from drone_bridge.ros.time import seconds_of, time_from_seconds

STEP_S = 1 / 60


class Pilot:
    """drone_controller with seek_target, and the frames that a bridge publishes for it."""

    def __init__(self, clock, *, is_announced=True, **parameters):
        self.node = ControllerNode(clock, "seek_target", **parameters)
        self.time_s = 1000.0
        if is_announced:
            self.announce()

    def announce(self, **changes):
        self.node.say(drone_properties=properties(**changes))

    def show(self, spheres=(), frames=1, step_s=STEP_S, **changes):
        """Publish frames; return the state after the last one."""
        for _ in range(frames):
            self.time_s += step_s
            self.node.run(step_s)
            frame = messages(self.time_s, spheres, **changes)
            self.node.say(**{topic.replace("/", "__"): message for topic, message in frame.items()})
        return self.node.state

    def show_until(self, wanted, spheres=(), **changes):
        for _ in range(200):
            if (state := self.show(spheres, **changes)).state == wanted:
                return state
        raise AssertionError(f"not {wanted} but {state}")


@pytest.fixture
def pilot(clock):
    return Pilot(clock)


def fields_of(message, names):
    return {name: getattr(message, name) for name in names}


def first_command(spheres):
    """Return the behaviour's reply to the first frame of a flight."""
    drone = DroneModel(**fields_of(properties(), DroneModel.__dataclass_fields__))
    frame = StereoFrame.read(messages(1000.0, spheres))
    seek = SeekTarget(SeekParameters(), drone, frame.pinhole, BASELINE)
    return seek.update(frame.stamp, frame.left, frame.right, frame.attitude).command


# Commands and states.


def test_a_frame_is_answered_with_rates_and_thrust_of_its_stamp(pilot):
    expected = first_command([TARGET])
    assert expected.yaw_rate > 0  # towards the target, on the left
    state = pilot.show([TARGET])
    (command,) = pilot.node.commands("cmd_rates")
    assert seconds_of(command.header.stamp) == pytest.approx(pilot.time_s)
    assert command.header == state.header
    got = (command.roll_rate, command.pitch_rate, command.yaw_rate, command.thrust)
    assert got == pytest.approx((expected.roll_rate, expected.pitch_rate, expected.yaw_rate, expected.thrust))


def test_the_state_has_the_activity_and_the_reason(pilot):
    state = pilot.show()
    assert (state.behaviour, state.state) == ("seek_target", "searching")
    assert state.reason == "nothing in sight, looking around here"
    assert math.isnan(state.distance)
    state = pilot.show_until("approaching", [TARGET])
    assert state.distance == pytest.approx(TARGET_M, rel=0.1)
    assert f"target in sight at {state.distance:.2f} m" == state.reason
    logged = [line.partition(":")[0] for line in pilot.node.lines]
    assert logged == ["searching", "approaching"]  # changes, not frames


def test_no_command_is_sent_before_drone_properties(clock):
    pilot = Pilot(clock, is_announced=False)
    pilot.announce(mass=0.0)
    (line,) = pilot.node.lines
    assert "mass must be above 0, not 0.0" in line
    pilot.node.run(2.0)
    assert pilot.node.state.reason.startswith("for drone_properties, left/")
    pilot.show(frames=5)
    assert not pilot.node.commands("cmd_rates")
    pilot.announce()
    pilot.show()
    assert len(pilot.node.commands("cmd_rates")) == 1


@pytest.mark.parametrize("what", ["stamps that run back", "another drone", "other cameras"])
def test_another_testbed_resets_the_controller(pilot, what):
    pilot.show_until("approaching", [TARGET])
    # Out of sight, it is still approached where it was last seen ...
    assert pilot.show().reason.startswith("target out of sight, expected at")
    # ... but not in another world.
    changes = {}
    if what == "stamps that run back":
        pilot.time_s = 5.0
    elif what == "another drone":
        pilot.announce(mass=2.0)
    else:
        changes = {"left_camera_info": {"k": [30.0, 0.0, 31.5, 0.0, 30.0, 23.5, 0.0, 0.0, 1.0]}}
    state = pilot.show(**changes)
    assert state.reason == "nothing in sight, looking around here"
    assert math.isnan(state.distance)


def test_no_command_is_sent_after_the_end(pilot):
    pilot.show([TARGET], frames=3)
    pilot.node.commands("cmd_rates")
    pilot.node.behaviour.leave()
    pilot.show([TARGET], frames=3)
    assert not pilot.node.commands("cmd_rates")


def test_missing_frames_are_reported_with_the_last_stamp(pilot):
    pilot.show([TARGET])
    pilot.node.run(3.0)
    state = pilot.node.state
    assert (state.state, state.reason[:18]) == ("waiting", "for left/image_raw")
    assert seconds_of(state.header.stamp) == pytest.approx(pilot.time_s)


# Unusable messages.

BAD_FRAMES = {
    "left/image_raw has 1 x 48 pixels, but left/camera_info has 64 x 48": {"left_image_raw": {"width": 1}},
    "left/image_raw has 64 x 48 pixels, but left/camera_info has 64 x 24": {
        "left_camera_info": {"height": 24, "k": [32.0, 0.0, 31.5, 0.0, 24.0, 11.5, 0.0, 0.0, 1.0]}
    },
    "right/image_raw has 0 x 0 pixels": {"right_image_raw": {"width": 0, "height": 0, "data": array.array("B")}},
    "left/camera_info has 0 x 0 pixels": {
        "left_camera_info": {"width": 0, "height": 0},
        "left_image_raw": {"width": 0, "height": 0, "step": 0, "data": array.array("B")},
        "right_image_raw": {"width": 0, "height": 0, "step": 0, "data": array.array("B")},
    },
    "left/image_raw has 10 bytes, 192 per row": {"left_image_raw": {"data": array.array("B", bytes(10))}},
    "left/image_raw has 12288 bytes, 256 per row": {
        "left_image_raw": {"data": array.array("B", bytes(256 * HEIGHT)), "step": 256}
    },
    "left/image_raw is encoded as 'holographic'": {"left_image_raw": {"encoding": "holographic"}},
    "left/image_raw is encoded as '8UC3'": {"left_image_raw": {"encoding": "8UC3"}},
    "fx is 0.0 but must be a finite number above 0": {"left_camera_info": {"k": [0.0] * 9}},
    "cx is 1e\\+30, outside the 64 pixels": {
        "left_camera_info": {"k": [32.0, 0.0, 1e30, 0.0, 24.0, 23.5, 0.0, 0.0, 1.0]}
    },
    r"P\[3\] is 0.0 and P\[0\] is 0.0": {"right_camera_info": {"p": [0.0] * 12}},
    r"P\[3\] is 8.0 and P\[0\] is 32.0": {"right_camera_info": {"p": [32.0, 0.0, 0.0, 8.0] + [0.0] * 8}},
    r"the orientation in imu/data is \(nan, 0.0, 0.0, 1.0\)": {"imu_data": {"x": math.nan}},
}


@pytest.mark.parametrize("sentence", BAD_FRAMES)
def test_an_unusable_frame_is_refused_with_a_sentence(sentence):
    with pytest.raises(ValueError, match=sentence):
        StereoFrame.read(messages(1.0, [TARGET], **BAD_FRAMES[sentence]))


@pytest.mark.parametrize(
    ("field", "value"),
    [("mass", math.nan), ("drag", math.inf), ("drag", -0.1), ("max_thrust", 0.0), ("max_yaw_rate", -1.0)],
)
def test_an_unflyable_drone_is_refused(field, value):
    fields = fields_of(properties(**{field: value}), DroneModel.__dataclass_fields__)
    with pytest.raises(ValueError, match=f"{field} must be"):
        DroneModel(**fields)


def test_a_missing_attitude_is_not_invented():
    frame = messages(1.0, imu_data={"w": 0.0, "orientation_covariance": [-1.0] + [0.0] * 8})
    attitude = StereoFrame.read(frame).attitude
    assert (attitude.roll, attitude.pitch, attitude.yaw) == (None, None, None)


@pytest.mark.parametrize(("ago_s", "answers"), [(0.0, 1), (0.5, 2)])
def test_only_odometry_of_the_frame_is_read(pilot, ago_s, answers):
    pilot.show()
    odometry = Odometry()
    odometry.header.stamp = time_from_seconds(pilot.time_s + STEP_S - ago_s)
    odometry.pose.pose.position.x = math.nan
    pilot.node.say(odom=odometry)
    pilot.show()
    assert len(pilot.node.published["cmd_rates"]) == answers


def test_early_odometry_is_kept_for_its_own_frame(pilot):
    odometry = Odometry()
    odometry.header.stamp = time_from_seconds(pilot.time_s + 2 * STEP_S)
    odometry.pose.pose.position.x = math.nan
    pilot.node.say(odom=odometry)
    pilot.show(frames=2)
    assert len(pilot.node.published["cmd_rates"]) == 1  # to the first frame; the other has its own odometry


def test_odometry_provides_position_and_attitude():
    odometry = Odometry()
    odometry.pose.pose.position.x, odometry.pose.pose.position.z = 3.0, 2.0
    odometry.pose.pose.orientation.z = 1.0  # half a turn, where imu/data says none
    odometry.pose.pose.orientation.w = 0.0
    frame = StereoFrame.read(messages(1.0) | {"odom": odometry})
    assert frame.place == (3.0, 0.0, 2.0)
    assert abs(frame.attitude.yaw) == pytest.approx(math.pi)
    assert StereoFrame.read(messages(1.0)).place is None


@pytest.mark.parametrize(
    ("encoding", "pixel"), [("bgr8", (0, 0, 255)), ("rgba8", (255, 0, 0, 9)), ("bgra8", (0, 0, 255, 9))]
)
def test_other_colour_encodings_mean_the_same(encoding, pixel):
    image = {"encoding": encoding, "step": len(pixel) * WIDTH, "data": array.array("B", pixel * (WIDTH * HEIGHT))}
    frame = StereoFrame.read(messages(1.0, left_image_raw=image))
    assert (frame.left == (255, 0, 0)).all()


# Parameters.


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"hold_distance": 0.9, "reach_distance": 0.75}, "must be between target_radius, 0.5, and .*, 0.75, not 0.9"),
        ({"hold_distance": 0.4, "reach_distance": 0.75}, "must be between target_radius, 0.5, and .*, 0.75, not 0.4"),
        ({"target_colour": [255, 0]}, r"target_colour must be three numbers from 0 to 255, not \[255, 0\]"),
        ({"target_colour": [255, 0, 256]}, r"target_colour must be three numbers from 0 to 255, not \[255, 0, 256\]"),
    ],
)
def test_invalid_parameters_are_refused_with_a_sentence(clock, parameters, sentence):
    with pytest.raises(ValueError, match=sentence):
        ControllerNode(clock, "seek_target", **parameters)
