# SPDX-License-Identifier: Apache-2.0
"""Talk: the session of testbed_server, its drone and its autopilots, with a fake clock."""

from array import array

from session_talk import SessionTalk, published

from drone_bridge.session.node_parameters import ServerParameters
from drone_bridge.session.session import Close, Send
from drone_bridge.testbed.codec import (
    NEED_DATA,
    AngleUnit,
    AttitudeLayout,
    AutopilotConnection,
    Constants,
    MotionParameters,
    SensorFrame,
    pack_reply,
)
from drone_bridge.testbed.vehicle.session import drone
from drone_bridge.testbed.vehicle.session.framed_drone import BLACK, FramedDrone
from drone_bridge.testbed.vehicle.session.frames import FrameSynchronizer
from drone_bridge.testbed.vehicle.session.output_choice import RATES, VELOCITY, OutputChoice

CONSTANTS = Constants(120.0, 90.0, 2, 1, 0.25, 1.0, 9.8125, 0.25, 25.0, 720.0, 720.0, 720.0)
OTHER = Constants(120.0, 90.0, 2, 1, 0.25, 2.0, 9.8125, 0.25, 25.0, 720.0, 720.0, 720.0)
ATTITUDE = SensorFrame(b"", b"", 0.0, pitch=-3.0, roll=None, yaw=30.0)
MOTION = MotionParameters(10.0, -20.0, 30.0, 12.5)
ANSWER = pack_reply(MOTION)
MAX_SPEED = 5.0
TOPICS = {"left": "/left/image_raw", "right": "/right/image_raw", "attitude": "/imu/data"}
NEUTRAL = drone.NeutralCommand(RATES)


class Talk(SessionTalk):
    """Session of a server, with its parameters, drone and autopilots."""

    def __init__(self, *, is_lockstep=False, topics=TOPICS, layout=AttitudeLayout.PITCH_YAW, allowed=(RATES, VELOCITY)):
        self.parameters = ServerParameters(silence_warning=3.0)
        self.refusal = ""
        self.unsent = []  # unsent data of the link
        self.reads = True  # whether the autopilot reads
        is_mono = "right" not in topics
        self.drone = FramedDrone(
            FrameSynchronizer(16, keeps_order=is_lockstep, is_mono=is_mono),
            read_attitude=lambda attitude: attitude,
            read_pixels=self._read,
            stamps_are_simulated=False,
        )
        self.output = OutputChoice(allowed)
        session = drone.TestbedDroneSession(
            self.drone,
            self.output,
            drone.ServerSetup(layout, AngleUnit.DEGREES, False, MAX_SPEED, is_lockstep, topics),
            self.parameters,
            neutral_meaning=lambda: "stop",
            missing_properties=lambda: "Set the mass.",
            has_unsent=lambda peer: bool(self.unsent),
        )
        super().__init__(session)
        self.has_cameras, self.stamp_s, self.layout = "left" in topics, 50.0, layout
        self.autopilots = {}
        assert session.opened(self.now_s) == []

    def _read(self, image, constants):
        if self.refusal:
            raise ValueError(self.refusal)
        return image

    def connect(self, peer="a"):
        self.autopilots[peer] = AutopilotConnection(self.layout)
        return self.take(self.session.connected(peer, self.now_s))

    def show(self, marker=1, *, attitude=ATTITUDE, has_attitude=True):
        """Let the drone send an image pair and an attitude."""
        self.stamp_s += 0.5
        stamp_ns, actions = round(self.stamp_s * 1e9), []
        if self.has_cameras:
            self.images = [array("B", bytes([marker + index]) * CONSTANTS.image_bytes) for index in range(2)]
            for side, image in zip(("left", "right"), self.images, strict=True):
                actions += self.add(side, stamp_ns, image)
        if has_attitude:
            actions += self.add("attitude", stamp_ns, attitude)
            if not self.has_cameras:
                actions += self.add("left", stamp_ns, BLACK)
        return actions

    def add(self, kind, stamp_ns, message):
        self.drone.frames.add(kind, stamp_ns, message, self.now_s)
        return self.take(self.session.step(self.now_s))

    def answer(self, data=ANSWER, peer="a"):
        return self.take(self.session.receive(data, peer, self.now_s))

    def take(self, actions):
        """Let the autopilots read their data."""
        for action in actions:
            if isinstance(action, Send) and self.reads:
                self.autopilots[action.to].receive_data(action.data)
            elif isinstance(action, Send):
                self.unsent.append(action)
        return list(actions)

    def read(self):
        """Let the autopilot read its pending data, and everything that follows."""
        unsent, self.unsent, self.reads = self.unsent, [], True
        self.take(unsent)

    def frames(self, peer="a"):
        """Frames that an autopilot has received since the last call."""
        events = []
        while (event := self.autopilots[peer].next_event()) is not NEED_DATA:
            events.append(event)
        return events


def talking(**options):
    """Talk with an autopilot that has answered a frame."""
    talk = Talk(**options)
    talk.drone.set_constants(CONSTANTS)
    talk.connect()
    talk.show()
    assert [type(event) for event in talk.frames()] == [Constants, SensorFrame]
    return talk


commands = published  # there are no other publications


def closed(actions):
    return [action.peer for action in actions if isinstance(action, Close)]
