# SPDX-License-Identifier: Apache-2.0
"""TestbedDroneSession of testbed_server in isolation, with a fake clock."""

import math

import pytest
from session_talk import notes
from testbed_drone_talk import (
    ANSWER,
    ATTITUDE,
    CONSTANTS,
    MOTION,
    NEUTRAL,
    OTHER,
    TOPICS,
    Talk,
    closed,
    commands,
    talking,
)
from verbs import by_session, verbs

from drone_bridge.session.clients import LOST
from drone_bridge.session.session import AFTER_STALLS, SETTLING_S, Send
from drone_bridge.testbed.codec import Constants, MotionParameters, SensorFrame, pack_reply
from drone_bridge.testbed.vehicle.device.modelled_flight import LevelVelocity
from drone_bridge.testbed.vehicle.session import drone
from drone_bridge.testbed.vehicle.session.framed_drone import RatesAnswer
from drone_bridge.testbed.vehicle.session.frames import ATTITUDE_TIMEOUT_S
from drone_bridge.testbed.vehicle.session.output_choice import RATES, VELOCITY


@pytest.fixture
def talk():
    """Return a talk with an autopilot that has answered its first frame."""
    talk = talking()
    talk.answer()
    return talk


def rates(talk, motion=MOTION):
    return RatesAnswer(motion, round(talk.stamp_s * 1e9))


# The beginning.


def test_the_constants_and_the_first_frame_are_sent_as_soon_as_complete():
    talk = Talk()
    assert (talk.session.state, talk.session.is_open, talk.session.has_link) == (drone.WAITING, False, True)
    assert notes(talk.connect(), "connections") == ["Connected to a."]
    assert (talk.session.state, talk.session.peer, talk.session.is_open) == (drone.CONNECTED, "a", True)
    talk.show()
    assert talk.frames() == []
    talk.drone.set_constants(CONSTANTS)
    talk.take(talk.session.step(talk.now_s))
    constants, frame = talk.frames()
    assert constants == CONSTANTS
    assert (frame.time, frame.pitch, frame.yaw) == (0.0, -3.0, 30.0)
    assert (bytes(frame.left), bytes(frame.right)) == (bytes([1] * 6), bytes([2] * 6))


def test_missing_data_are_reported_after_source_timeout():
    talk = Talk()
    talk.connect()
    talk.run(0.9)
    assert talk.session.waits_for == ""
    assert talk.run(60.0) == []
    for topic in ("/left/image_raw", "/right/image_raw", "/imu/data"):
        assert topic in talk.session.waits_for
    assert "Set the mass." in talk.session.waits_for
    talk.drone.set_constants(CONSTANTS)
    talk.add("attitude", 1, ATTITUDE)
    assert "/right/image_raw" in talk.session.waits_for
    assert "/imu/data" not in talk.session.waits_for
    talk.show()
    assert talk.session.waits_for == ""
    assert len(talk.frames()) == 2


def test_a_drone_without_cameras_shows_black_with_each_attitude():
    talk = talking(topics={"attitude": "/imu/data"})
    talk.answer()
    talk.show()
    (frame,) = talk.frames()
    assert bytes(frame.left) == bytes(frame.right) == bytes(CONSTANTS.image_bytes)


def test_a_fresh_frame_from_before_the_connection_is_sent():
    """A drone in lockstep sends no other frame before it has its command."""
    talk = Talk(is_lockstep=True)
    talk.drone.set_constants(CONSTANTS)
    talk.session.lost(talk.now_s)
    talk.show(marker=7)
    talk.run(0.9)
    talk.session.opened(talk.now_s)
    talk.connect()
    _, frame = talk.frames()
    assert frame.left[0] == 7
    talk.session.disconnected("a", "It was reset.", talk.now_s)
    talk.show(marker=8)
    talk.run(1.1)
    talk.connect("b")
    assert talk.frames("b") == []


# Frames and replies in turns.


def test_an_answer_is_followed_and_the_next_frame_waits_for_it():
    talk = talking()
    before = rates(talk)
    talk.show(marker=10)
    talk.show(marker=20)
    assert talk.frames() == []
    assert not talk.session.is_proven
    actions = talk.answer()
    assert commands(actions) == [before]
    assert talk.session.is_proven
    assert notes(actions, "commands") == notes(actions, "frames") == [""]
    (frame,) = talk.frames()
    assert frame.left[0] == 20
    assert talk.drone.frames.dropped == 1


def test_an_answer_may_precede_its_frame_and_arrive_in_pieces():
    talk = talking()
    assert commands(talk.answer(ANSWER + ANSWER[:4])) == [rates(talk)]
    talk.answer(ANSWER[4:])
    assert commands([*talk.show(), *talk.run(0.0)]) == [rates(talk)]
    assert len(talk.frames()) == 1
    talk.show()
    assert len(talk.frames()) == 1


def test_waiting_for_a_missing_attitude_times_out(talk):
    talk.show(has_attitude=False)
    talk.run(ATTITUDE_TIMEOUT_S - 0.001)
    assert talk.frames() == []
    talk.run(2 * drone.LOOK_PERIOD_S)
    assert len(talk.frames()) == 1


def test_only_an_unencodable_frame_is_refused(talk):
    talk.refusal = "is not one."
    actions = talk.show()
    assert "the left image is not one" in notes(actions, drone.REFUSED_FRAMES)[0]
    talk.refusal = ""
    actions = talk.show(attitude=SensorFrame(b"", b"", 0.0, pitch=1000.0, yaw=0.0))
    (sentence,) = notes(actions, drone.REFUSED_FRAMES)
    assert "pitch is 1000" in sentence
    assert talk.frames() == []
    talk.show()
    assert len(talk.frames()) == 1


#: An answer is the only verb of the document.
VERBS = {
    ANSWER: MOTION, pack_reply(MotionParameters(0.0, 0.0, 0.0, 0.0)): MotionParameters(0.0, 0.0, 0.0, 0.0),
    pack_reply(MotionParameters(0.0, 0.0, 0.0, 1000.0)): ["limited_commands", MotionParameters(0.0, 0.0, 0.0, 25.0)],
    ANSWER[:12] + b"\x7f\xc0\0\0": drone.REJECTED, ANSWER[:12] + b"\x7f\x80\0\0": drone.REJECTED,
}  # fmt: skip


@verbs(VERBS)
def test_each_answer_is_executed_or_refused(sent, meaning):
    done = by_session(talking().answer(sent), "limited_commands", drone.REJECTED)
    assert [getattr(each, "motion", each) for each in done] == meaning


# Silences.


def test_a_silent_autopilot_causes_one_neutral_command(talk):
    talk.run(0.3)
    talk.show()
    assert commands(talk.run(0.19)) == []
    actions = talk.run(0.02)
    assert commands(actions) == [NEUTRAL]
    (sentence,) = notes(actions, drone.NEUTRAL_COMMANDS)
    assert "autopilot" in sentence
    assert "command_timeout" in sentence
    assert talk.run(600.0) == []
    assert talk.session.is_open


def test_a_silent_drone_does_not_count_as_silence_of_the_autopilot(talk):
    (sentence,) = notes(talk.run(0.6), drone.NEUTRAL_COMMANDS)
    assert sentence.startswith("The drone ")
    assert "command_timeout" in sentence
    assert talk.session.silent_s(talk.now_s) < drone.LOOK_PERIOD_S + 0.001
    talk.show()
    talk.run(2.0)
    assert talk.session.silent_s(talk.now_s) == pytest.approx(2.0, abs=0.001 + drone.LOOK_PERIOD_S)


def test_an_answer_is_ignored_until_its_frame_is_read(talk):
    talk.reads = False
    talk.show()
    assert commands(talk.answer()) == commands(talk.run(0.1)) == []
    stamp = rates(talk)
    talk.show()
    assert len(talk.unsent) == 3
    assert talk.frames() == []
    talk.read()
    assert commands(talk.run(drone.LOOK_PERIOD_S)) == [stamp]
    assert [type(event) for event in talk.frames()] == 2 * [SensorFrame]


@pytest.mark.parametrize("answers", [True, False])
def test_stalled_autopilot_gets_one_frame_and_is_replaced_by_the_next(talk, answers):
    talk.reads, actions = False, []
    for _ in range(29):
        actions += talk.show()
        if answers:
            actions += talk.answer()
        actions += talk.run(0.1)
    assert commands(actions) == [NEUTRAL]
    assert len(talk.unsent) == 3
    talk.run(3.1)
    assert closed(talk.connect("b")) == ["a"]


def test_no_stop_is_published_before_a_command():
    talk = talking()
    assert talk.run(600.0) == []
    assert commands(talk.session.end(talk.now_s)) == []


def test_only_late_answers_are_ignored(talk):
    talk.show()
    talk.show(marker=30)
    talk.run(0.6)
    actions = talk.answer()
    assert commands(actions) == []
    assert len(notes(actions, drone.LATE_ANSWERS)) == 1
    assert len(talk.frames()) == 2
    assert commands(talk.answer()) == [rates(talk)]


def test_a_silent_drone_ends_the_session(talk):
    talk.run(0.6)
    actions = talk.run(0.5)
    (sentence,) = notes(actions, LOST)
    for words in ("source_timeout", "/left/image_raw", "/right/image_raw", "/imu/data"):
        assert words in sentence
    assert closed(actions) == ["a"]
    assert (talk.session.state, talk.session.is_open, talk.session.due_s) == (drone.WAITING, False, math.inf)


def test_unmatched_stamps_are_reported(talk):
    actions = []
    for number in range(15):
        for side, after_ns in (("left", 0), ("right", 1)):
            actions += talk.add(side, 10**12 + 1000 * number + after_ns, talk.images[0])
        talk.add("attitude", 10**12, ATTITUDE)
        actions += talk.run(0.1)
    (sentence,) = notes(actions, LOST)
    assert "image_tolerance" in sentence


# Lockstep.


def test_lockstep_time_runs_from_each_frame_with_neutral_as_its_command():
    talk = talking(is_lockstep=True)
    assert commands(talk.answer()) == [rates(talk)]
    talk.parameters.source_timeout = 60.0
    assert commands(talk.run(10.0)) == []
    talk.show()
    assert commands(talk.run(0.49)) == []
    assert commands(talk.run(0.02)) == [NEUTRAL]
    talk.parameters.command_timeout = 60.0  # so that the reply is in time
    actions = talk.answer()
    assert commands(actions) == []
    assert len(notes(actions, drone.LATE_ANSWERS)) == 1
    talk.show()
    assert commands(talk.answer()) == [rates(talk)]


# Ends.


def test_a_regular_disconnection_is_not_a_lost_connection(talk):
    actions = talk.session.left("a", "a has closed the connection.", talk.now_s)
    assert commands(actions) == [NEUTRAL]
    assert len(notes(actions, "")) == 1
    assert (talk.session.state, talk.session.is_open) == (drone.WAITING, False)
    assert talk.show() == []


def test_the_last_answer_before_a_disconnection_is_followed():
    talk = talking()
    talk.show()
    talk.session._clients["a"].handler.receive_data(ANSWER)  # both together
    actions = talk.session.left("a", "a has closed the connection.", talk.now_s)
    assert [type(command) for command in commands(actions)] == [RatesAnswer, drone.NeutralCommand]
    assert not any(isinstance(action, Send) for action in actions)


def test_a_disconnection_inside_an_answer_is_an_error(talk):
    talk.answer(ANSWER[:5])
    actions = talk.session.left("a", "a has closed the connection.", talk.now_s)
    assert commands(actions) == [NEUTRAL]
    (sentence,) = notes(actions, drone.REJECTED)
    assert "can't be trusted" in sentence


def test_a_lost_connection_ends_with_neutral(talk):
    actions = talk.session.disconnected("a", "It was reset.", talk.now_s)
    assert commands(actions) == [NEUTRAL]
    assert notes(actions, LOST) == ["It was reset."]
    assert talk.session.lost(talk.now_s) == []
    talk.session.opened(talk.now_s)
    talk.connect("b")
    talk.show()
    (_, frame) = talk.frames("b")
    assert frame.time == 0.0


@pytest.mark.parametrize("said", [3 * ANSWER, pack_reply(MOTION)[:12] + b"\x7f\xc0\0\0"])
def test_invalid_answers_end_the_session(talk, said):
    talk.show()
    actions = talk.answer(said)
    assert commands(actions)[-1] == NEUTRAL
    assert len(notes(actions, drone.REJECTED)) == 1
    assert closed(actions) == ["a"]
    assert talk.run(60.0) == talk.show() == []


def test_new_properties_are_announced_on_a_new_connection(talk):
    talk.show()
    talk.answer()
    assert [frame.time for frame in talk.frames()] == [0.5]
    talk.drone.set_constants(CONSTANTS)
    assert talk.session.step(talk.now_s) == []
    talk.show()
    assert [frame.time for frame in talk.frames()[-1:]] == [0.0]
    talk.drone.set_constants(OTHER)  # while a reply is due
    actions = talk.session.step(talk.now_s)
    (sentence,) = notes(actions, LOST)
    assert "properties" in sentence
    assert (commands(actions), closed(actions)) == ([NEUTRAL], ["a"])
    talk.connect("b")
    assert talk.frames("b") == [OTHER]


def test_the_model_of_another_drone_ends_with_the_conversation():
    talk = talking(allowed=(VELOCITY,))
    hover = {constants: MotionParameters(0.0, 0.0, 0.0, 9.8125 * constants.weight) for constants in (CONSTANTS, OTHER)}
    talk.answer(pack_reply(hover[CONSTANTS]))
    talk.drone.set_constants(OTHER)
    talk.session.step(talk.now_s)
    talk.connect("b")
    talk.show()
    talk.answer(pack_reply(hover[OTHER]), "b")
    talk.show()
    (velocity,) = commands(talk.answer(pack_reply(hover[OTHER]), "b"))
    assert velocity.up == pytest.approx(0.0, abs=1e-6)


def test_properties_may_change_before_they_are_announced():
    talk = Talk()
    talk.drone.set_constants(CONSTANTS)
    talk.connect()
    talk.drone.set_constants(OTHER)
    assert talk.session.step(talk.now_s) == []
    talk.show()
    assert talk.frames()[0] == OTHER


# A second autopilot.


def test_a_silent_autopilot_is_replaced_by_the_next_one(talk):
    talk.show()
    talk.run(2.9)
    actions = talk.connect("b")
    assert closed(actions) == ["b"]
    assert len(notes(actions, "refused_peers")) == 1
    talk.run(0.2)
    actions = talk.connect("c")
    assert closed(actions) == ["a"]
    assert talk.session.since_s == talk.now_s
    assert len(notes(actions, LOST)) == 1
    assert talk.session.peer == "c"
    talk.show()
    assert [type(event) for event in talk.frames("c")] == [Constants, SensorFrame]


def test_a_silent_autopilot_in_control_is_replaced_after_neutral():
    talk = talking(is_lockstep=True)
    talk.parameters.source_timeout = 60.0
    talk.answer()
    talk.run(3.1)
    actions = talk.connect("b")
    assert commands(actions) == [NEUTRAL]
    assert closed(actions) == ["a"]


def test_an_autopilot_that_never_sent_data_is_replaced_soon():
    talk = Talk()
    talk.connect()
    talk.run(drone.MUTE_KEEPS_PLACE_S - 0.1)
    assert closed(talk.connect("b")) == ["b"]
    talk.run(0.2)
    assert closed(talk.connect("b")) == ["a"]


# Command topic.


def test_the_topic_changes_between_frames_and_the_former_one_gets_neutral():
    talk = talking()
    talk.show()
    talk.output.wanted = VELOCITY
    last = RatesAnswer(MOTION, round((talk.stamp_s - 0.5) * 1e9))
    assert commands(talk.answer()) == [last, NEUTRAL, drone.OutputSwitched(VELOCITY)]
    assert talk.output.chosen == VELOCITY
    (velocity,) = commands(talk.answer())
    assert isinstance(velocity, LevelVelocity)
    talk.show()
    assert commands(talk.run(0.6)) == [drone.NeutralCommand(VELOCITY)]
    talk.output.wanted = RATES
    assert commands(talk.answer()) == [drone.OutputSwitched(RATES)]
    assert talk.drone.flight is None


def test_velocity_vehicle_gets_model_velocity_and_autopilot_model_tilt():
    talk = talking(allowed=(VELOCITY,))
    dive = pack_reply(MotionParameters(20.0, 0.0, 0.0, 9.8125))
    velocities = commands(talk.answer(dive))
    for _ in range(4):
        talk.show()
        velocities += commands(talk.answer(dive))
    frames = talk.frames()
    assert [frame.pitch for frame in frames] == pytest.approx([10.0, 20.0, 30.0, 40.0])
    assert [velocity.ahead for velocity in velocities] == sorted(velocity.ahead for velocity in velocities)
    assert velocities[-1].ahead > 1.0
    # After a stop, it starts level and at rest.
    assert commands(talk.run(0.6)) == [drone.NeutralCommand(VELOCITY)]
    talk.show()
    assert talk.frames()[0].pitch == 0.0


@pytest.mark.parametrize(("topics", "warnings"), [(TOPICS, 1), ({"attitude": "/odom"}, 0)])
def test_autopilot_with_images_is_warned_about_the_models_tilt(topics, warnings):
    talk = Talk(allowed=(VELOCITY,), topics=topics)
    talk.drone.set_constants(CONSTANTS)
    talk.connect()
    actions = [*talk.show(), *talk.answer(), *talk.show()]
    warned = [sentence for sentence in notes(actions, "") if "tilt of a modelled drone" in sentence]
    assert len(warned) == warnings


# Stalls of this process.


def test_possibly_stale_answers_are_ignored(talk):
    talk.show()
    talk.stall(0.4)
    actions = talk.answer()
    assert commands(actions) == []
    assert len(notes(actions, AFTER_STALLS)) == 1
    talk.run(SETTLING_S + 0.001)
    talk.show()
    assert commands(talk.answer()) == [rates(talk)]


def test_in_lockstep_it_is_followed_since_no_time_passes_for_the_vehicle():
    talk = talking(is_lockstep=True)
    talk.answer()
    talk.show()
    talk.stall(0.4)
    assert commands(talk.answer()) == [rates(talk)]


def test_commands_before_a_long_stall_end_at_once_without_silence(talk):
    talk.stall(5.0)
    actions = talk.run(0.0)
    assert commands(actions) == [NEUTRAL]
    (sentence,) = notes(actions, drone.NEUTRAL_COMMANDS)
    assert "stalled" in sentence
    assert notes(talk.run(0.9), LOST) == []  # its source_timeout starts again
    assert len(notes(talk.run(0.2), LOST)) == 1


def test_an_autopilot_keeps_its_place_over_a_stall(talk):
    talk.show()
    talk.stall(5.0)
    assert talk.session.silent_s(talk.now_s) == 0.0
    assert closed(talk.connect("b")) == ["b"]
