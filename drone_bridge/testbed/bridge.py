# SPDX-License-Identifier: Apache-2.0
"""testbed_bridge: the autopilot's side of the testbed protocol, as a ROS 2 node. See docs/testbed.md."""

import time
from functools import partial
from typing import Any

from builtin_interfaces.msg import Time
from geometry_msgs.msg import Twist
from tf2_msgs.msg import TFMessage

from drone_bridge.motion.flight_control import Command as FlownCommand
from drone_bridge.motion.flight_control import DroneModel
from drone_bridge.motion.velocity_control import HOVER, VelocityCommand, VelocityControl, VelocityParameters
from drone_bridge.msg import CommandRates
from drone_bridge.net.clock import elapsed_s
from drone_bridge.net.connector import LinkError, LinkTimeoutError
from drone_bridge.net.tcp import MessageDeadline, TcpStream
from drone_bridge.ros.command_topics import CommandTopics
from drone_bridge.ros.common_parameters import (
    common_parameters,
    frame_names,
    frame_parameters,
)
from drone_bridge.ros.images import load_opencv
from drone_bridge.ros.limits import limit_parameters
from drone_bridge.ros.lockstep import Lockstep
from drone_bridge.ros.parameters import ParameterDeclaration, declarations, read
from drone_bridge.ros.program import run
from drone_bridge.ros.tcp_link_node import TcpLinkNode
from drone_bridge.ros.time import Stamps, stamp_numbers, time_from_seconds, time_parameters
from drone_bridge.ros.topics import Output, TopicPublishers, latched
from drone_bridge.session.arbiter import Arrival
from drone_bridge.testbed import topics as translate
from drone_bridge.testbed.codec import (
    NEED_DATA,
    AngleUnit,
    AttitudeLayout,
    AutopilotConnection,
    ConnectionClosed,
    Constants,
    MotionParameters,
    SensorFrame,
    SimulationRestarted,
)
from drone_bridge.testbed.topics import (
    ANGLE_UNIT,
    AUTO,
    TOPICS,
    BodyRates,
    Command,
    Pose,
    StereoFrameNames,
    attitude_layout,
)
from drone_bridge.wire.events import RemoteProtocolError

# Parameters.

#: The values of cmd_vel_mode.
VELOCITY = "velocity"
RATES_AND_THRUST = "rates_and_thrust"

PARAMETERS = (
    *common_parameters(8000, "The testbed's port; when listening, 0 picks a free one."),
    attitude_layout(is_detectable=True),
    ANGLE_UNIT,
    ParameterDeclaration(
        "sync",
        "latest",
        "latest answers a frame at once with the newest command; lockstep waits for the command with its stamp.",
        choices=("latest", "lockstep"),
    ),
    *time_parameters("the testbed's simulated"),
    *frame_parameters(),
    ParameterDeclaration(
        "silence_timeout",
        5.0,
        "Seconds within which a testbed must send its constants, or all of a frame; it may pause between frames.",
        range=(0.1, 3600.0),
    ),
    ParameterDeclaration(
        "cmd_vel_mode",
        VELOCITY,
        "How a Twist on cmd_vel is interpreted: velocity, where zero hovers; or rates_and_thrust, with body rates in "
        "angular and thrust in linear.z, where zero makes the drone fall.",
        choices=(VELOCITY, RATES_AND_THRUST),
    ),
    *declarations(VelocityParameters, VELOCITY),
    *limit_parameters(is_drone=True),
)

# How commands become answers.

#: What cmd_vel moves, of a Twist.
FOLLOWED_AXES = ("linear.x", "linear.y", "linear.z", "angular.z")
#: And where a Twist is rates and thrust.
RATES_AND_THRUST_AXES = ("linear.z", "angular.x", "angular.y", "angular.z")


def velocity_from_twist(twist: Twist) -> tuple[VelocityCommand, bool]:
    """Read a cmd_vel of velocities: m/s in the level frame of the body, and rad/s about the vertical.

    Also returns that it is followed as it is: what the drone can do of it shows only in flight.
    """
    return VelocityCommand(twist.linear.x, twist.linear.y, twist.linear.z, twist.angular.z), True


class TestbedFlight:
    """The flight of one conversation. For every frame, call `observe`, `answer` and `answered`, in this order."""

    __test__ = False  # not a test, whatever its name tells pytest

    def __init__(self, constants: Constants, unit: AngleUnit, parameters: VelocityParameters) -> None:
        self._constants = constants
        self._unit = unit
        #: What is safe without knowing how the drone moves: no rotation, and thrust against its weight.
        self.neutral, _ = translate.motion_parameters(translate.hover(constants), constants, unit)
        #: Why velocities can't be flown, if so.
        self.problem = ""
        self._control: VelocityControl | None = None
        self._unseen: tuple[float, Pose] | None = None
        self._flown: tuple[FlownCommand, bool] | None = None  # until the next frame
        self._next: tuple[FlownCommand, bool] | None = None  # from then on
        try:
            drone = DroneModel.of(translate.drone_properties(constants, unit))
            self._control = VelocityControl(drone, parameters)
        except ValueError as error:
            self.problem = str(error)

    def observe(self, time_s: float, pose: Pose) -> None:
        """Take what the frame says of the drone, and its time."""
        self._unseen = time_s, pose

    def estimate(self) -> None:
        """Update the estimate, unless it was updated for this frame: where the caller has time to spare."""
        seen, self._unseen = self._unseen, None
        if seen is None or self._control is None:
            return
        if self._flown:
            self._control.flown(*self._flown)
        time_s, pose = seen
        self._control.measured(time_s, pose.attitude, pose.position)

    def answer(self, command: Command | VelocityCommand | None) -> tuple[MotionParameters, bool]:
        """Return the answer to the frame, and whether the command was within the drone's limits.

        None hovers: the drone levels out and stops.
        """
        if isinstance(command, Command):
            motion, was_within = translate.motion_parameters(command, self._constants, self._unit)
            rates, thrust = translate.command_from_motion_parameters(motion, self._unit)
            self._next = FlownCommand(*rates, thrust), False
        elif self._control is None:
            return self.neutral, command is None
        else:
            self.estimate()
            wanted = command or HOVER
            flown = self._control.command(wanted)
            rates = BodyRates(flown.roll_rate, flown.pitch_rate, flown.yaw_rate)
            motion, _ = translate.motion_parameters(Command(rates, flown.thrust), self._constants, self._unit)
            was_within = self._control.limited(wanted) == wanted
            self._next = flown, True  # which is within the drone's limits, but for rounding
        return motion, was_within

    def answered(self) -> None:
        """Note that the answer was sent."""
        self.estimate()
        self._flown = self._next


# The node.

#: What a testbed that sends no positions has nothing for.
POSE_TOPICS = ("odom", "/tf")
#: For how long the first frame waits for those who subscribed to these topics before they were offered.
MATCHING_TIMEOUT_S = 0.3
#: Rarer than in other bridges: frames of 30 Hz find the caches cold, and each count delays one of them.
SUBSCRIBER_CHECK_PERIOD_S = 0.5
#: A testbed that has been silent for so long where its first frame may end is waiting for the answer.
FRAME_END_SILENCE_S = 0.5
#: How long the testbed has to finish its frame and close.
LEAVE_TIMEOUT_S = 0.3


class TestbedBridge(TcpLinkNode):
    """Publishes the testbed drone's sensor data, and answers every frame with a command."""

    __test__ = False  # not a test, whatever its name tells pytest
    rates = ("frames", "images")
    problems = (*TcpLinkNode.problems, "dropped messages", "refused commands", "missed lockstep commands")

    def __init__(self, **options: Any) -> None:
        super().__init__("testbed_bridge", PARAMETERS, **options)

    def set_up(self) -> None:
        """Read the parameters and create publishers and subscriptions."""
        get = self.parameters.__getitem__
        self._unit = AngleUnit(get("angle_unit"))
        self._layout = None if get("attitude_layout") == AUTO else AttitudeLayout(get("attitude_layout"))
        self._is_lockstep = get("sync") == "lockstep"
        self._silence_timeout_s = get("silence_timeout")
        self._has_warned_of_unstamped = False
        self._stamps = Stamps(self)
        self._names = frame_names(self.parameters, StereoFrameNames)
        load_opencv()
        self._translation = translate.Translation(
            self._unit,
            self._names,
            refuse_image=partial(self.count_and_warn, "images not compressed"),
        )
        clock = self._stamps.clock_publisher
        self._topics = TopicPublishers(
            self,
            [row for row in TOPICS if row.name not in POSE_TOPICS],
            self._translation,
            more=[(SensorFrame, Output(clock, self._translation.clock))] if clock else [],
            period_s=SUBSCRIBER_CHECK_PERIOD_S,
        )
        self._pose_topics: TopicPublishers | None = None  # until the testbed is known to send positions
        if self._layout is AttitudeLayout.POSE:
            self._offer_pose()
        self._static_tf = self.make_publisher(TFMessage, "/tf_static", latched())
        self._velocity_parameters = read(VelocityParameters, VELOCITY, self.parameters)
        self._commands: CommandTopics[Command | VelocityCommand] = CommandTopics(self, now=self._stamps.command_clock)
        self._lockstep: Lockstep[Command | VelocityCommand] = Lockstep(self._commands.arbiter)
        if self._is_lockstep:
            self._commands.on_command = self._lockstep.look
        if get("cmd_vel_mode") == VELOCITY:
            self._commands.take_velocities(velocity_from_twist, FOLLOWED_AXES)
        else:
            self._commands.take_velocities(
                lambda twist: (translate.command_from_twist(twist), True),
                RATES_AND_THRUST_AXES,
                read_helm=velocity_from_twist,
            )
        self._commands.take("cmd_rates", CommandRates, translate.command_from_rates)

    def _offer_pose(self) -> None:
        if self._pose_topics is None:
            rows = [row for row in TOPICS if row.name in POSE_TOPICS]
            self._pose_topics = TopicPublishers(self, rows, self._translation, period_s=SUBSCRIBER_CHECK_PERIOD_S)

    def stop_waiting(self) -> None:
        """Wake the link's thread if it waits for a command."""
        self._lockstep.close()

    # The conversation, on the link's thread.

    def converse(self, stream: TcpStream) -> None:
        """Read frames, publish them and answer them."""
        # A frame is published before the next one is read, and publish() has finished with an array when it returns.
        connection = AutopilotConnection(self._layout, self._unit, reuses_images=True)
        deadline = MessageDeadline(stream, self._silence_timeout_s)
        self._constants: Constants | None = None  # of this conversation
        self._is_layout_reported = self._has_served = False
        self._sends_position = self._layout is AttitudeLayout.POSE
        stream.expect_acknowledgements()  # or one that vanishes with an answer on its way would be waited for
        stream.acknowledge_at_once()  # many testbeds send a frame in pieces, with Nagle's algorithm on
        self.statistics.facts["attitude layout"] = self._layout.value if self._layout else "to be decided"
        try:
            while True:
                self._receive(stream, deadline, connection)
                while (event := connection.next_event()) is not NEED_DATA:
                    if isinstance(event, ConnectionClosed):
                        self.inform("The testbed ended the conversation.")
                        return
                    self._handle(stream, connection, event)
        except Exception as error:
            # In any case, the drone must not be left with the last command.
            if self._constants:
                stream.leave(connection.finish(self._flight.neutral), LEAVE_TIMEOUT_S)
            if isinstance(error, RemoteProtocolError) and (hint := connection.layout_hint):
                raise RemoteProtocolError(f"{error} {self._layout_advice(hint)}") from error
            raise
        finally:
            self._translation.forget()

    def _handle(
        self, stream: TcpStream, connection: AutopilotConnection, event: Constants | SimulationRestarted | SensorFrame
    ) -> None:
        if isinstance(event, Constants):
            self._constants = event
            self.statistics.liveness.heard()
            self._announce(event)
            return
        assert self._constants  # which come first
        if isinstance(event, SimulationRestarted):
            self._restart(self._constants, event)
            return
        if self._layout is None and connection.layout and not self._is_layout_reported:
            self._report_layout(connection.layout, self._constants)
        self._serve(stream, connection, event)

    def _receive(self, stream: TcpStream, deadline: MessageDeadline, connection: AutopilotConnection) -> None:
        """Receive data. Raises LinkError, with advice if the layout may be wrong."""
        buffers = connection.get_buffers()
        is_undecided = connection.silence_decides
        try:
            if is_undecided:
                count = stream.receive_into(*buffers, timeout_s=FRAME_END_SILENCE_S)
            else:
                count = deadline.receive_into(*buffers, is_inside_message=connection.inside_message)
        except LinkTimeoutError as error:
            if is_undecided:
                connection.peer_waits()
            elif hint := connection.layout_hint:
                raise LinkError(f"{error} {self._layout_advice(hint)}") from error
            else:
                raise
        else:
            connection.buffer_updated(count) if count else connection.receive_eof()

    def _report_layout(self, layout: AttitudeLayout, constants: Constants) -> None:
        """Log the detected layout."""
        self._is_layout_reported = True
        self.statistics.facts["attitude layout"] = f"{layout.value} ({AUTO})"
        floats = f"{len(layout.floats)} floats after the images"
        if layout is AttitudeLayout.POSE:
            self._sends_position = True
            self._offer_pose()
            assert self._pose_topics
            self._pose_topics.wait_for_subscribers(MATCHING_TIMEOUT_S)
            self.inform(f"The testbed sends {floats}: attitude_layout is pose.")
            self._publish_static_transforms(constants)
        else:
            self.inform(
                f"The testbed sends {floats}: attitude_layout is taken to be {layout.value}, as documented. Where the "
                f"second float is roll, and many testbeds send that, set it to {AttitudeLayout.PITCH_ROLL.value}."
            )

    def _layout_advice(self, hint: str) -> str:
        named = self.parameters["attitude_layout"]
        return (
            f"Perhaps attitude_layout, which is {named}, is not what this testbed sends; after the images came {hint}."
        )

    def _announce(self, constants: Constants) -> None:
        """Publish the constants, and prepare the outputs of every frame."""
        self._flight = TestbedFlight(constants, self._unit, self._velocity_parameters)
        if self._flight.problem:
            self.warn(f"Velocities can't be flown with the announced constants: {self._flight.problem}.")
        self._commands.arbiter.forget()
        self._lockstep.restart()
        self._topics.restart()
        self._topics.publish(constants, self.now())
        self._publish_static_transforms(constants)

    def _publish_static_transforms(self, constants: Constants) -> None:
        """Publish where the cameras are and, once the testbed is known to send positions, the map."""
        transforms = translate.camera_transforms(constants, self._names)
        if self._sends_position and self.parameters["publish_map_to_odom"]:
            transforms.append(translate.map_transform(self._names))
        now = self.now()
        for each in transforms:
            each.header.stamp = now
        self.publish(self._static_tf, TFMessage(transforms=transforms))

    def _restart(self, constants: Constants, restart: SimulationRestarted) -> None:
        """Start over for a new simulation, discarding commands and estimates."""
        self.statistics.counts["new simulations"] += 1
        self.inform(
            f"The testbed has started a new simulation on the same connection: its time is 0 after "
            f"{restart.time_before:.3f} s."
        )
        self._commands.arbiter.forget()
        self._lockstep.restart()
        self._topics.publish(constants, self.now())  # by which controllers know that they have to begin again

    def _serve(self, stream: TcpStream, connection: AutopilotConnection, frame: SensorFrame) -> None:
        """Answer one frame and publish it, in the order that keeps the testbed waiting least."""
        received_s = time.monotonic()
        pose = self._translation.pose(frame)
        self._flight.observe(frame.time, pose)
        self.observed.measured(pose.attitude.yaw, pose.position)
        if not self._is_lockstep:
            self._answer(stream, connection, self._commands.arbiter.decide(elapsed_s()).command)
        stamp = self._stamps.stamp(time_from_seconds(frame.time) if self._stamps.are_wire_time else None)
        self._topics.publish(frame, stamp)
        if self._pose_topics:
            self._pose_topics.publish(frame, stamp)
        if self._is_lockstep:
            self._flight.estimate()  # while the controller is at work
            arrival = self._wait_for_command(stamp)
            self._answer(stream, connection, self._commands.arbiter.decide(elapsed_s(), arrival).command)
        self._flight.answered()
        statistics = self.statistics
        if not self._has_served:
            self._has_served = True
            self.opened()
        statistics.liveness.heard()
        statistics.counts["frames"] += 1
        statistics.took("frame received to published and answered", time.monotonic() - received_s)

    def _wait_for_command(self, stamp: Time) -> Arrival[Command | VelocityCommand] | None:
        """Wait for the command that answers the frame of this stamp, with a timeout."""
        if self.hold.is_held:
            return None
        waited_from_s = time.monotonic()
        timeout_s = self.parameters["command_timeout"]
        arrival = self._lockstep.wait_for(stamp_numbers(stamp), timeout_s)
        self.statistics.took("waiting for the lockstep command", time.monotonic() - waited_from_s)
        self.statistics.counts["missed lockstep commands"] += arrival is None
        newest = self._commands.arbiter.newest
        is_unstamped = newest is not None and newest.stamp is None and elapsed_s() - newest.arrived_s <= timeout_s
        if arrival is None and not self._has_warned_of_unstamped and is_unstamped:
            self._has_warned_of_unstamped = True
            self.warn(
                f"sync is lockstep, and commands on cmd_vel have no stamp that says which frame they answer, so each "
                f"frame waits {timeout_s:g} s (command_timeout) in vain: publish cmd_vel_stamped or cmd_rates with the "
                f"stamp of the frame's images, or set sync to latest."
            )
        return arrival

    def _answer(
        self, stream: TcpStream, connection: AutopilotConnection, command: Command | VelocityCommand | None
    ) -> None:
        answer, was_within = self._flight.answer(command)
        counts = self.statistics.counts
        counts["neutral answers"] += command is None
        counts["clamped answers"] += not was_within
        if data := self.encode(connection.send, answer, self._flight.neutral):
            stream.send_all(data, self._silence_timeout_s)


def main() -> int:
    """Run the node."""
    return run(TestbedBridge)


# The node testbed_bridge.
