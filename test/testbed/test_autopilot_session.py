# SPDX-License-Identifier: Apache-2.0
"""AutopilotSession of testbed_bridge in isolation, with a fake clock."""

import math
import struct
from types import SimpleNamespace

import pytest
from session_talk import SessionTalk, notes, published

from drone_bridge.session.arbiter import Arrival, Decision, Rank
from drone_bridge.session.clients import LOST
from drone_bridge.session.node_parameters import NodeParameters
from drone_bridge.session.session import Close, Landing, Publish, Send
from drone_bridge.testbed.codec import (
    AttitudeLayout,
    AutopilotConnection,
    Constants,
    MotionParameters,
    SensorFrame,
    TestbedConnection,
)
from drone_bridge.testbed.session import autopilot

CONSTANTS = Constants(90.0, 60.0, 4, 2, 0.25, 1.5, 9.75, 0.25, 25.0, 720.0, 360.0, 180.0)
NEUTRAL = MotionParameters(0.0, 0.0, 0.0, 15.0)
SHORT, POSE = AttitudeLayout.PITCH_YAW, AttitudeLayout.POSE


def motion(thrust):
    return MotionParameters(0.0, 0.0, 0.0, thrust)


class Flight:
    """Replies to a command, which is a number, with that thrust; records its calls."""

    neutral = NEUTRAL

    def __init__(self, calls, problem=""):
        self.calls, self.problem = calls, problem

    def measurement(self, frame):
        return frame

    def reported(self, measured, now_s):
        self.calls.append("see")

    def answer(self, command):
        self.calls.append("answer")
        return (NEUTRAL, True) if command is None else (motion(command), command <= 25.0)

    def replaced(self):
        self.calls.append("replaced")


class Commands:
    """Stand-in for an Arbiter: it sends the newest command, unless the vehicle is held."""

    def __init__(self):
        self.newest, self.holds, self.forgotten = None, False, 0

    def is_held(self, now_s):
        return self.holds

    def rank(self, now_s):
        return Rank.HOLD if self.holds else Rank.COMMAND

    def decide(self, now_s, answer=None):
        arrival = answer or self.newest
        return Decision(self.rank(now_s), None if self.holds or arrival is None else arrival.command)

    def forget(self):
        self.newest = None
        self.forgotten += 1


class Talk(SessionTalk):
    """Session of a bridge, with its commands and testbeds."""

    def __init__(self, *, layout=SHORT, speaks=None, is_lockstep=False, problem=""):
        self.commands, self.calls, self.stamp_s = Commands(), [], 50
        self.speaks = speaks or layout or SHORT
        super().__init__(
            autopilot.AutopilotSession(
                self.commands,
                lambda: AutopilotConnection(layout, reuses_images=True),
                lambda constants: Flight(self.calls, problem),
                self._stamp,
                NodeParameters(silence_warning=3.0),
                feedback=self,
                is_lockstep=is_lockstep,
                layout=layout.value if layout else "auto",
            )
        )
        self.beds = {}
        assert self.session.opened(self.now_s) == []

    def measured(self, measured, now_s):
        self.pilot.reported(measured, now_s)

    def _stamp(self, frame):
        self.stamp_s += 1
        return SimpleNamespace(sec=self.stamp_s, nanosec=7)

    @property
    def stamp(self):
        return self.stamp_s, 7

    def connect(self, peer="a"):
        self.beds[peer], self.time = TestbedConnection(self.speaks), 0.0
        return self.session.connected(peer, self.now_s)

    def say(self, data, peer="a"):
        """Read bytes like a link: into the provided memory."""
        actions, rest = [], memoryview(data)
        while rest:
            size = 0
            for buffer in self.session.memory(peer):
                part = rest[: len(buffer)]
                buffer[: len(part)] = part
                rest, size = rest[len(part) :], size + len(part)
            actions += self.session.filled(size, peer, self.now_s)
            if peer not in self.session._clients:
                break
        return self.take(actions)

    def frame(self, peer="a", **fields):
        self.time = fields.pop("time", self.time + 0.125)
        images = (bytes([1 + side]) * CONSTANTS.image_bytes for side in range(2))
        fields = {"yaw": 2.0, "roll": 1.0, "position": (1.0, 2.0, 3.0), **fields}
        return self.beds[peer].send(SensorFrame(*images, time=self.time, pitch=fields.pop("pitch", 0.0), **fields))

    def show(self, **fields):
        return self.say(self.frame(**fields))

    def command(self, value, stamp=None):
        """Let a command arrive, and notify the session."""
        self.commands.newest = arrival = Arrival(value, self.now_s, stamp=stamp)
        return self.take(self.session.commanded(arrival, self.now_s))

    def take(self, actions):
        """Let the testbeds read their data."""
        for action in actions:
            if isinstance(action, Send):
                self.beds[action.to].receive_data(action.data)
                self.beds[action.to].next_event()
        return list(actions)


def talking(**options):
    """Talk with a testbed that has announced its constants."""
    talk = Talk(**options)
    talk.connect()
    actions = talk.say(talk.beds["a"].send(CONSTANTS))
    assert published(actions)[-1:] == [CONSTANTS]
    return talk


@pytest.fixture
def talk():
    return talking()


@pytest.fixture
def commanded(talk):
    """Return a talk whose testbed has sent a frame, and got a command."""
    talk.command(9.0)
    talk.show()
    return talk


@pytest.fixture
def lockstep():
    return talking(is_lockstep=True)


def answers(actions):
    """Thrusts of the replies."""
    return [struct.unpack(">4f", action.data)[3] for action in actions if isinstance(action, Send)]


def kinds(actions):
    """Order of actions, without counters and measurements."""
    events = [action for action in actions if isinstance(action, Send | Publish | Close)]
    return [type(action.message if isinstance(action, Publish) else action).__name__ for action in events]


def closed(actions):
    return [action.peer for action in actions if isinstance(action, Close)]


# A conversation.


def test_constants_are_announced_and_frames_answered_before_publishing():
    talk = Talk()
    assert (talk.session.state, talk.session.is_open) == (autopilot.WAITING, False)
    assert notes(talk.connect(), "connections") == ["Connected to a."]
    assert (talk.session.state, talk.session.peer, talk.session.since_s) == (autopilot.CONNECTED, "a", talk.now_s)
    assert not talk.session.is_proven
    opening = talk.beds["a"].send(CONSTANTS)
    assert talk.say(opening[:20]) == []
    assert published(talk.say(opening[20:])) == [CONSTANTS]
    talk.command(9.0)
    data = talk.frame(pitch=-3.0, yaw=30.0)
    assert talk.say(data[:50]) == []
    assert talk.session.received_s == 100.0
    talk.now_s += 1.0
    actions = talk.say(data[50:])
    assert kinds(actions) == ["Send", "SensorFrame"]
    assert answers(actions) == [9.0]
    (frame,) = published(actions)
    assert (frame.time, frame.pitch, frame.yaw) == (0.125, -3.0, 30.0)
    assert (talk.stamp[0], bytes(frame.left), frame.right[0]) == (51, bytes([1] * 24), 2)
    assert talk.session.received_s == 101.0
    assert talk.session.is_proven


def test_who_gets_no_command_hovers_and_that_is_counted(talk):
    actions = talk.show()
    assert answers(actions) == [NEUTRAL.thrust]
    assert (len(notes(actions, "neutral_answers")), len(notes(actions, "clamped_answers"))) == (1, 0)
    talk.command(30.0)
    actions = talk.show()
    assert (len(notes(actions, "neutral_answers")), len(notes(actions, "clamped_answers"))) == (0, 1)


def test_a_reply_that_a_stall_has_made_stale_becomes_the_neutral_one(talk):
    talk.command(20.0)
    (reply,) = (action for action in talk.show() if isinstance(action, Send))
    assert answers([reply]) == [20.0]
    replaced = talk.session.outdated(reply)
    assert (answers([replaced]), replaced.to) == ([NEUTRAL.thrust], "a")
    assert talk.calls[-1] == "replaced"


def test_the_last_reply_is_not_replaced(talk):
    actions = talk.session.end(talk.now_s)
    (last,) = (action for action in actions if isinstance(action, Send))
    assert talk.session.outdated(last) == last


def test_unencodable_command_is_answered_by_neutral(talk):
    talk.command(math.nan)
    actions = talk.show()
    assert answers(actions) == [NEUTRAL.thrust]
    assert len(notes(actions, "unencodable_messages")) == 1


def test_velocities_that_can_not_be_flown_are_warned_of():
    talk = Talk(problem="it is too heavy")
    talk.connect()
    actions = talk.say(talk.beds["a"].send(CONSTANTS))
    assert notes(actions, "") != []


def test_commands_of_before_are_not_for_this_drone():
    talk = Talk()
    talk.command(9.0)
    talk.connect()
    talk.say(talk.beds["a"].send(CONSTANTS))
    assert answers(talk.show()) == [NEUTRAL.thrust]


def test_time_0_starts_a_new_simulation_and_discards_earlier_commands(commanded):
    actions = commanded.show(time=0.0)
    assert kinds(actions) == ["SimulationRestart", "Send", "SensorFrame"]
    assert published(actions)[0] == autopilot.SimulationRestart(CONSTANTS)
    assert answers(actions) == [NEUTRAL.thrust]
    assert len(notes(actions, "new_simulations")) == 1
    assert commanded.session.peer == "a"


# The layout, detected from the first frame.


def test_pose_layout_is_found_by_silence_and_reported_before_the_frame():
    talk = talking(layout=None, speaks=POSE)
    actions = talk.show() + talk.run(autopilot.FRAME_END_SILENCE_S + 0.001)
    assert kinds(actions) in (["LayoutFound", "Send", "SensorFrame"], ["Send", "LayoutFound", "SensorFrame"])
    assert autopilot.LayoutFound(POSE, CONSTANTS) in published(actions)
    assert kinds(talk.show()) == ["Send", "SensorFrame"]


def test_a_short_frame_ends_where_silence_begins():
    talk = talking(layout=None, speaks=SHORT)
    assert talk.show() == []
    assert talk.run(autopilot.FRAME_END_SILENCE_S - 0.001) == []
    assert talk.session.tick(talk.now_s) == []
    actions = talk.run(0.002)
    assert published(actions)[0] == autopilot.LayoutFound(SHORT, CONSTANTS)
    assert answers(actions) == [NEUTRAL.thrust]


def test_it_does_so_however_many_pieces_it_comes_in():
    talk = talking(layout=None, speaks=SHORT)
    data = talk.frame()
    for start in range(0, len(data), 20):
        assert talk.say(data[start : start + 20]) == []
    assert len(answers(talk.run(autopilot.FRAME_END_SILENCE_S + 0.001))) == 1


def test_our_own_stall_is_no_silence_of_the_testbed():
    talk = talking(layout=None, speaks=SHORT)
    talk.show()
    talk.stall(10.0)
    assert talk.run(autopilot.FRAME_END_SILENCE_S - 0.001) == []
    assert len(answers(talk.run(0.002))) == 1


def test_a_layout_that_may_be_wrong_is_named():
    talk = talking(layout=SHORT, speaks=POSE)
    (sentence,) = notes(talk.show() + talk.show(), autopilot.REJECTED)
    assert "attitude_layout (pitch_yaw)" in sentence
    talk = talking(layout=POSE, speaks=SHORT)
    talk.show()
    (sentence,) = notes(talk.run(5.1), LOST)
    assert "within 5 s" in sentence
    assert "attitude_layout (pose)" in sentence
    talk = talking(layout=SHORT)
    talk.say(talk.frame()[:20])
    (sentence,) = notes(talk.run(5.1), LOST)  # inside an image
    assert "within 5 s" in sentence
    assert "attitude_layout" not in sentence


# Lockstep.


def test_lockstep_frame_waits_for_the_command_with_its_stamp(lockstep):
    assert kinds(lockstep.show()) == ["SensorFrame"]
    assert lockstep.command(5.0) == lockstep.command(6.0, stamp=(1, 2)) == []
    lockstep.now_s += 0.2
    actions = lockstep.command(7.0, stamp=lockstep.stamp)
    assert answers(actions) == [7.0]
    assert lockstep.command(8.0, stamp=lockstep.stamp) == lockstep.run(60.0) == []
    assert lockstep.calls == ["see", "answer"]


def test_a_frame_whose_command_does_not_come_is_answered_by_the_newest_one(lockstep):
    lockstep.show()
    lockstep.command(6.0, stamp=(1, 2))
    assert lockstep.run(0.499) == []
    actions = lockstep.run(0.002)
    assert answers(actions) == [6.0]
    assert notes(actions, autopilot.MISSED) == [""]
    assert lockstep.run(60.0) == []


def test_awaited_command_answers_its_frame_though_its_note_was_dropped(lockstep):
    lockstep.show()
    lockstep.commands.newest = Arrival(7.0, lockstep.now_s, stamp=lockstep.stamp)
    actions = lockstep.run(0.5)
    assert answers(actions) == [7.0]
    assert notes(actions, autopilot.MISSED) == []
    lockstep.show()
    lockstep.commands.newest = Arrival(8.0, lockstep.now_s, stamp=lockstep.stamp)
    assert answers(lockstep.stall(5.0)) == [8.0]
    assert notes(lockstep.run(10.0), autopilot.MISSED) == []


def test_commands_without_stamps_are_warned_of(lockstep):
    lockstep.show()
    lockstep.command(6.0)
    (sentence,) = notes(lockstep.run(0.51), autopilot.MISSED)
    assert "lockstep" in sentence
    assert "cmd_vel_stamped" in sentence


def test_a_vehicle_that_is_held_is_not_waited_for(lockstep):
    lockstep.commands.holds = True
    assert kinds(lockstep.show()) == ["SensorFrame", "Send"]
    assert lockstep.run(10.0) == []
    lockstep.commands.holds = False
    lockstep.show()
    assert lockstep.session.commanded(None, lockstep.now_s) == []
    lockstep.commands.holds = True
    assert answers(lockstep.take(lockstep.session.commanded(None, lockstep.now_s))) == [NEUTRAL.thrust]
    assert lockstep.run(10.0) == []
    assert lockstep.session.commanded(None, lockstep.now_s) == []


# Ends.


def test_testbed_that_leaves_between_frames_has_ended_the_conversation(talk):
    talk.show()
    actions = talk.session.left("a", "a has closed the connection.", talk.now_s)
    assert len(notes(actions, "")) == 1
    assert [type(message) for message in published(actions)] == [autopilot.ConversationEnd]
    assert (talk.session.state, talk.session.is_open, talk.session.due_s) == (autopilot.WAITING, False, math.inf)
    assert talk.session.lost(talk.now_s) == talk.session.end(talk.now_s) == []


@pytest.mark.parametrize(("begin", "size", "inside"), [(Talk, 48, "its constants"), (talking, 60, "frame 0")])
def test_one_that_leaves_inside_a_message_is_not_trusted_and_not_answered(begin, size, inside):
    talk = begin()
    if begin is Talk:
        talk.connect()
    talk.say(b"\0\0")
    actions = talk.session.left("a", "a has closed the connection.", talk.now_s)
    (sentence,) = notes(actions, autopilot.REJECTED)
    assert f"inside {inside}, after 2 of {size} bytes" in sentence
    assert answers(actions) == []


def test_a_connection_that_is_lost_is_another_conversation(commanded):
    actions = commanded.session.disconnected("a", "It was reset.", commanded.now_s)
    assert notes(actions, LOST) == ["It was reset."]
    assert [type(message) for message in published(actions)] == [autopilot.ConversationEnd]
    commanded.connect("b")
    commanded.say(commanded.beds["b"].send(CONSTANTS), "b")
    assert answers(commanded.say(commanded.frame("b"), "b")) == [NEUTRAL.thrust]


def test_bytes_that_no_testbed_sends_end_the_conversation_with_neutral(commanded):
    data = bytearray(commanded.frame())
    data[-4:] = b"\x7f\xc0\0\0"  # an invalid time
    actions = commanded.say(bytes(data))
    assert kinds(actions) == ["Send", "ConversationEnd", "Close"]
    assert answers(actions) == [NEUTRAL.thrust]
    (sentence,) = notes(actions, autopilot.REJECTED)
    assert "can't be trusted" in sentence
    assert commanded.run(60.0) == []


def test_nothing_is_left_behind_before_the_drone_is_known():
    talk = Talk()
    talk.connect()
    assert answers(talk.session.end(talk.now_s)) == []


# Time.


def test_a_message_has_to_come_in_time_however_it_trickles():
    for begin in (b"", b"\0"):
        talk = Talk()
        talk.connect()
        talk.say(begin)
        actions = []
        for _ in range(30):
            actions += talk.run(0.2)
            if not talk.session.is_open:
                break
            talk.say(b"\0") if begin else None
        assert closed(actions) == ["a"]
        assert talk.now_s == pytest.approx(105.0)
        assert answers(actions) == []


def test_rest_of_a_frame_times_out_and_the_next_frame_does_not(talk):
    talk.show()
    assert talk.run(600.0) == []
    talk.say(talk.frame()[:10])
    assert talk.run(4.9) == []
    actions = talk.run(0.2)
    assert notes(actions, LOST) != []
    assert kinds(actions) == ["Send", "ConversationEnd", "Close"]


def test_a_stall_of_ours_gives_a_testbed_its_time_anew(talk):
    talk.say(talk.frame()[:10])
    talk.stall(20.0)
    assert talk.session.silent_s(talk.now_s) == 0.0
    assert talk.run(4.9) == []
    assert closed(talk.run(0.2)) == ["a"]


# A second testbed.


def test_a_landing_needs_frames():
    talk = Talk()
    assert talk.session.landing(talk.now_s) is Landing.DISCONNECTED
    talk = talking()
    talk.show()
    talk.run(0.3)
    assert talk.session.landing(talk.now_s) is Landing.LANDS
    talk.run(0.3)
    assert talk.session.landing(talk.now_s) is Landing.SILENT
    talk.show()
    assert talk.session.landing(talk.now_s) is Landing.LANDS


def test_one_that_was_silent_for_too_long_is_left_neutral_and_replaced(commanded):
    commanded.run(2.9)
    actions = commanded.connect("b")
    assert closed(actions) == ["b"]
    assert len(notes(actions, "refused_peers")) == 1
    commanded.run(0.2)
    actions = commanded.take(commanded.connect("c"))
    assert kinds(actions) == ["Send", "ConversationEnd", "Close"]
    assert answers(actions) == [NEUTRAL.thrust]
    assert closed(actions) == ["a"]
    assert len(notes(actions, LOST)) == 1
    assert commanded.session.peer == "c"
