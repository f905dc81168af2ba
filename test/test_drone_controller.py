# SPDX-License-Identifier: Apache-2.0
"""drone_controller as a process, between topics; the test plays the bridge."""

import array
import math

import pytest
from controller_pilot import BASELINE, HEIGHT, TARGET, TARGET_M, WIDTH, Pilot, messages, properties, stamp_of
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from processes import Process, executable

from drone_bridge.controllers.drone_controller import BEHAVIOURS
from drone_bridge.controllers.seek_target.behaviour import StereoFrame
from drone_bridge.controllers.seek_target.pilot import SeekParameters, SeekTarget
from drone_bridge.motion.flight_control import DroneModel
from drone_bridge.ros.time import seconds_of

FRESH_S = 2.0  # between frames: the behaviour takes a gap as long as this for another flight and starts over
BRIEF_STEP_S = 0.001  # between frames that may be many, when no such gap may come of them


def controller(**parameters):
    return Process.node("drone_controller", **of_behaviour(parameters))


def of_behaviour(parameters):
    """The full names of parameters."""
    return {name if name == "behaviour" else f"seek_target.{name}": value for name, value in parameters.items()}


def fields_of(message, names):
    return {name: getattr(message, name) for name in names}


def first_command(spheres):
    """What the behaviour answers to the first frame of a flight, computed in this process."""
    drone = DroneModel(**fields_of(properties(), DroneModel.__dataclass_fields__))
    frame = StereoFrame.read(messages(1000.0, spheres))
    seek = SeekTarget(SeekParameters(), drone, frame.pinhole, BASELINE)
    return seek.update(frame.stamp, frame.left, frame.right, frame.attitude).command


# Commands and states.


def test_a_frame_is_answered_with_rates_and_thrust_of_its_stamp(ros):
    expected = first_command([TARGET])
    assert expected.yaw_rate > 0  # towards the target, on the left
    with controller():
        pilot = Pilot(ros)
        pilot.publish_until(lambda: len(pilot.commands), "a first command", [TARGET], step_s=FRESH_S)
        state = pilot.state_after([TARGET], step_s=FRESH_S)
        command = pilot.commands.wait(lambda command: stamp_of(command) == stamp_of(state))
    got = (command.roll_rate, command.pitch_rate, command.yaw_rate, command.thrust)
    assert got == pytest.approx((expected.roll_rate, expected.pitch_rate, expected.yaw_rate, expected.thrust))


def test_the_state_says_what_it_does_and_why(ros):
    with controller() as process:
        pilot = Pilot(ros)
        state = pilot.state_after()
        assert (state.behaviour, state.state) == ("seek_target", "searching")
        assert state.reason == "nothing in sight, looking around here"
        assert math.isnan(state.distance)
        state = pilot.state_after([TARGET], lambda state: state.state != "searching")
        assert state.state == "approaching"
        assert state.distance == pytest.approx(TARGET_M, rel=0.1)
        assert f"target in sight at {state.distance:.2f} m" == state.reason
        process.wait_for_line("searching: nothing in sight")
        process.wait_for_line("approaching: target in sight at")
        assert process.count_lines("searching|approaching") == 2  # changes, not frames


def test_nothing_is_commanded_before_the_drone_is_known(ros):
    with controller() as process:
        pilot = Pilot(ros, mass=0.0)
        process.wait_for_line("The drone on drone_properties can't be flown: mass has to be above 0, not 0.0")
        for _ in range(20):
            pilot.publish()
        pilot.announce()
        pilot.publish_until(lambda: len(pilot.commands), "a command")
        command = pilot.commands.wait()
    # The first command of all belongs to a frame that was not looked at before the announcement; two may wait for it.
    assert command.header.stamp.sec + command.header.stamp.nanosec / 1e9 > 1000.0 + 18.5 / 60


@pytest.mark.parametrize("what", ["stamps that run back", "another drone", "other cameras"])
def test_another_testbed_resets_the_controller(ros, what):
    with controller():
        pilot = Pilot(ros)
        pilot.state_after([TARGET], lambda state: state.state == "approaching")
        # Out of sight, it is still approached where it was last seen ...
        state = pilot.state_after()
        assert state.reason.startswith("target out of sight, expected at")
        # ... but not in another world.
        changes = {}
        if what == "stamps that run back":
            pilot.time_s = 5.0
        elif what == "another drone":
            pilot.announce(mass=2.0)
        else:
            changes = {"left_camera_info": {"k": [30.0, 0.0, 31.5, 0.0, 30.0, 23.5, 0.0, 0.0, 1.0]}}
        began_s = pilot.time_s
        state = pilot.state_after((), lambda state: state.state == "searching", BRIEF_STEP_S, **changes)
    assert pilot.time_s - began_s < SeekParameters().coast_time  # after which it would be given up anyway
    assert state.reason == "nothing in sight, looking around here"
    assert math.isnan(state.distance)


# Drones that are not a testbed's.


def test_a_drone_without_properties_is_known_by_parameters(ros):
    with controller(**{"drone.mass": 1.5, "drone.max_thrust": 25.0}):
        pilot = Pilot(ros, is_announced=False)
        pilot.publish_until(lambda: len(pilot.commands), "a command", [TARGET])
        command = pilot.commands.wait()
        assert command.thrust == pytest.approx(1.5 * 9.81, rel=0.2)
        assert command.header.frame_id == "d1/base_link"


def test_a_drone_that_holds_velocities_gets_them_and_zero_at_the_end(ros):
    velocities = ros.subscribe(Twist, "cmd_vel")
    with controller(commands="velocities", frame_timeout=0.3):
        pilot = Pilot(ros, is_announced=False)
        pilot.publish_until(lambda: len(velocities), "a velocity", [TARGET])
        first = velocities.wait(lambda twist: twist.linear.x > 0)
        assert first.linear.y > 0 or first.angular.z > 0  # the target is on the left
        assert pilot.state_after([TARGET]).header.frame_id == "d1/base_link"
        velocities.wait(lambda twist: twist == Twist())  # no more frames
        state = pilot.states.wait(lambda state: state.state == "waiting")
        assert state.reason.startswith("for left/image_raw")
        assert 1000.0 < seconds_of(state.header.stamp) <= pilot.time_s + 1e-6, "of the last frame that was answered"
    assert not len(pilot.commands), "nothing on cmd_rates"


# What can't be used.

BAD_FRAMES = {
    "left/image_raw has 1 x 48 pixels, and left/camera_info says 64 x 48": {"left_image_raw": {"width": 1}},
    "left/image_raw has 64 x 48 pixels, and left/camera_info says 64 x 24": {
        "left_camera_info": {"height": 24, "k": [32.0, 0.0, 31.5, 0.0, 24.0, 11.5, 0.0, 0.0, 1.0]}
    },
    "right/image_raw has 0 x 0 pixels": {"right_image_raw": {"width": 0, "height": 0, "data": array.array("B")}},
    "left/camera_info says 0 x 0 pixels": {
        "left_camera_info": {"width": 0, "height": 0},
        "left_image_raw": {"width": 0, "height": 0, "step": 0, "data": array.array("B")},
        "right_image_raw": {"width": 0, "height": 0, "step": 0, "data": array.array("B")},
    },
    "left/camera_info says 4294967295 x 4294967295": {
        "left_camera_info": {"width": 2**32 - 1, "height": 2**32 - 1},
    },
    "left/image_raw has 10 bytes, 192 per row, and 64 x 48 pixels of rgb8 are 9216, 192 per row": {
        "left_image_raw": {"data": array.array("B", bytes(10))}
    },
    "left/image_raw has 12288 bytes, 256 per row": {
        "left_image_raw": {"data": array.array("B", bytes(256 * HEIGHT)), "step": 256}
    },
    "left/image_raw is encoded as 'holographic'": {"left_image_raw": {"encoding": "holographic"}},
    "left/image_raw is encoded as ''": {"left_image_raw": {"encoding": ""}},
    "left/image_raw is encoded as '8UC3'": {"left_image_raw": {"encoding": "8UC3"}},
    "fx is 0.0, and has to be a finite number above 0": {"left_camera_info": {"k": [0.0] * 9}},
    "fx is nan": {"left_camera_info": {"k": [math.nan] * 9}},
    "cx is 1e\\+30, outside the 64 pixels": {
        "left_camera_info": {"k": [32.0, 0.0, 1e30, 0.0, 24.0, 23.5, 0.0, 0.0, 1.0]}
    },
    r"P\[3\] is 0.0 and P\[0\] is 0.0": {"right_camera_info": {"p": [0.0] * 12}},
    r"P\[3\] is 8.0 and P\[0\] is 32.0": {"right_camera_info": {"p": [32.0, 0.0, 0.0, 8.0] + [0.0] * 8}},
    r"the orientation in imu/data is \(nan, 0.0, 0.0, 1.0\)": {"imu_data": {"x": math.nan}},
    r"the orientation in imu/data is \(0.0, 0.0, 0.0, 0.0\)": {"imu_data": {"w": 0.0}},
}


@pytest.mark.parametrize("sentence", BAD_FRAMES)
def test_an_unusable_frame_is_refused_with_a_sentence(sentence):
    with pytest.raises(ValueError, match=sentence):
        StereoFrame.read(messages(1.0, [TARGET], **BAD_FRAMES[sentence]))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("mass", math.nan),
        ("gravity", -9.81),
        ("drag", math.inf),
        ("drag", -0.1),
        ("max_thrust", 0.0),
        ("max_roll_rate", math.nan),
        ("max_yaw_rate", -1.0),
    ],
)
def test_an_unflyable_drone_is_refused(field, value):
    fields = fields_of(properties(**{field: value}), DroneModel.__dataclass_fields__)
    with pytest.raises(ValueError, match=f"{field} has to be"):
        DroneModel(**fields)


def test_a_missing_attitude_is_not_invented():
    frame = messages(1.0, imu_data={"w": 0.0, "orientation_covariance": [-1.0] + [0.0] * 8})
    attitude = StereoFrame.read(frame).attitude
    assert (attitude.roll, attitude.pitch, attitude.yaw) == (None, None, None)


def test_odometry_gives_the_place_and_the_attitude_that_goes_with_it():
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
        ({"behaviour": "dance"}, f"behaviour is 'dance', and has to be one of {', '.join(BEHAVIOURS)}."),
        (
            {"hold_distance": 0.9, "reach_distance": 0.75},
            "hold_distance has to be between target_radius, 0.5, and reach_distance, 0.75, not 0.9",
        ),
        (
            {"hold_distance": 0.4, "reach_distance": 0.75},
            "hold_distance has to be between target_radius, 0.5, and reach_distance, 0.75, not 0.4",
        ),
        ({"max_speed": 1000.0}, "seek_target.max_speed"),
        ({"max_speed": ".nan"}, "seek_target.max_speed"),
        ({"max_speed": "fast"}, "seek_target.max_speed"),
        ({"target_colour": "[255, 0]"}, "target_colour has to be three numbers from 0 to 255, not [255, 0]"),
        ({"target_colour": "[255, 0, 256]"}, "target_colour has to be three numbers from 0 to 255, not [255, 0, 256]"),
    ],
)
def test_invalid_parameters_end_it_with_a_sentence(start_child, parameters, sentence):
    given = [part for name, value in of_behaviour(parameters).items() for part in ("-p", f"{name}:={value}")]
    process = start_child(executable("drone_controller"), "--ros-args", *given)
    assert process.wait() == 1
    assert sentence in process.output
    assert "Traceback" not in process.output
