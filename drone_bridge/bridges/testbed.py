# SPDX-License-Identifier: Apache-2.0
"""testbed_bridge: the autopilot's side of the testbed protocol, as a ROS 2 node. See docs/testbed.md."""

import time
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from builtin_interfaces.msg import Time
from nav_msgs.msg import Odometry
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CameraInfo, CompressedImage, Image, Imu
from tf2_msgs.msg import TFMessage

from drone_bridge.bridges.testbed_flight import FOLLOWED_AXES, RATES_AND_THRUST_AXES, TestbedFlight
from drone_bridge.flight.velocity_control import VelocityCommand, VelocityParameters
from drone_bridge.link_node.commands import CommandIntake
from drone_bridge.link_node.common_parameters import (
    common_parameters,
    covariance_parameters,
    frame_names,
    frame_parameters,
    odometry_covariances,
)
from drone_bridge.link_node.link_node import LinkNode
from drone_bridge.link_node.outputs import Output, Outputs
from drone_bridge.link_node.simulated_time import Stamps, time_parameters
from drone_bridge.link_node.testbed_parameters import ANGLE_UNIT, AUTO, attitude_layout
from drone_bridge.links.errors import LinkError, LinkTimeoutError
from drone_bridge.links.message_deadline import MessageDeadline
from drone_bridge.links.tcp import TcpStream
from drone_bridge.msg import CommandRates, DroneProperties
from drone_bridge.node.described_parameters import declarations, read
from drone_bridge.node.parameters import ParameterDeclaration
from drone_bridge.node.program import run
from drone_bridge.protocols.errors import RemoteProtocolError
from drone_bridge.protocols.testbed import (
    NEED_DATA,
    AngleUnit,
    AttitudeLayout,
    AutopilotConnection,
    Constants,
    Limits,
    SensorFrame,
    SimulationRestarted,
)
from drone_bridge.translate import testbed as translate
from drone_bridge.translate.covariances import AXES, EXACT_VARIANCE, UNKNOWN_VARIANCE
from drone_bridge.translate.images import ImageMemory, rgb8_image, set_pixels
from drone_bridge.translate.jpeg_encoder import JpegEncoder
from drone_bridge.translate.testbed import SIDES, Command, StereoFrameNames
from drone_bridge.translate.time import time_from_seconds
from drone_bridge.translate.transforms import odometry_transform

#: A testbed that has been silent for so long where its first frame may end is waiting for the answer.
FRAME_END_SILENCE_S: Final = 0.5
VELOCITY: Final = "velocity"
RATES_AND_THRUST: Final = "rates_and_thrust"
#: How long the testbed has to finish its frame and close.
LEAVE_TIMEOUT_S: Final = 0.3
#: How often subscribers are counted.
SUBSCRIBER_CHECK_PERIOD_S: Final = 0.2
_MEBIBYTE: Final = 1024 * 1024
_LIMITS: Final = Limits()

PARAMETERS: Final = (
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
    *covariance_parameters([EXACT_VARIANCE] * AXES, [UNKNOWN_VARIANCE] * AXES, "odom"),
    ParameterDeclaration(
        "attitude_standard_deviation",
        0.001,
        "Standard deviation of the attitude, rad, for the covariance on imu/data.",
        range=(0.0, 3.2),
    ),
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
    ParameterDeclaration(
        "jpeg_quality",
        80,
        "JPEG quality of image_raw/compressed, which is encoded only while it has subscribers.",
        range=(1, 100),
    ),
    ParameterDeclaration("max_width", _LIMITS.width, "Maximum width of an accepted image, pixels.", range=(1, 65536)),
    ParameterDeclaration(
        "max_height", _LIMITS.height, "Maximum height of an accepted image, pixels.", range=(1, 65536)
    ),
    ParameterDeclaration(
        "max_frame_mebibytes",
        _LIMITS.frame_bytes // _MEBIBYTE,
        "Maximum size of an accepted frame (two images and their floats), MiB.",
        range=(1, 4096),
    ),
)


class TestbedBridge(LinkNode):
    """Publishes the testbed drone's sensor data, and answers every frame with a command."""

    __test__ = False  # not a test, whatever its name tells pytest
    rates = ("frames", "images")
    problems = (*LinkNode.problems, "dropped messages", "refused commands", "missed lockstep commands")

    def __init__(self, **options: Any) -> None:
        super().__init__("testbed_bridge", PARAMETERS, **options)

    def set_up(self) -> None:
        """Read the parameters and create publishers and subscriptions."""
        get = self.parameters.__getitem__
        self._unit = AngleUnit(get("angle_unit"))
        self._layout = None if get("attitude_layout") == AUTO else AttitudeLayout(get("attitude_layout"))
        self._limits = Limits(get("max_width"), get("max_height"), get("max_frame_mebibytes") * _MEBIBYTE)
        self._is_lockstep = get("sync") == "lockstep"
        self._standard_deviation = get("attitude_standard_deviation")
        self._silence_timeout_s = get("silence_timeout")
        self._names = frame_names(self.parameters, StereoFrameNames)
        self._covariances = odometry_covariances(self.parameters)
        self._memory = ImageMemory(turns=len(SIDES))  # a frame is published before the next one is read
        self._outputs: Outputs[SensorFrame] | None = None  # from a testbed's constants to its end
        self._has_warned_of_unstamped = False

        newest = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._image_publishers = [self.make_publisher(Image, f"{side}/image_raw", newest) for side in SIDES]
        self._info_publishers = [self.make_publisher(CameraInfo, f"{side}/camera_info", newest) for side in SIDES]
        self._jpeg_publishers = [
            self.make_publisher(CompressedImage, f"{side}/image_raw/compressed", newest) for side in SIDES
        ]
        self._imu_publisher = self.make_publisher(Imu, "imu/data", 10)
        self._properties_publisher = self.make_publisher(DroneProperties, "drone_properties", latched)
        self._static_tf_publisher = self.make_publisher(TFMessage, "/tf_static", latched)
        has_position = self._layout in (None, AttitudeLayout.POSE)
        self._odometry_publisher = self.make_publisher(Odometry, "odom", 10) if has_position else None
        self._tf_publisher = self.make_publisher(TFMessage, "/tf", 100) if has_position and get("publish_tf") else None
        self._has_map_to_odom = has_position and get("publish_map_to_odom")
        self._stamps = Stamps(self)
        self._velocity_parameters = read(VelocityParameters, VELOCITY, self.parameters)
        self._commands: CommandIntake[Command | VelocityCommand] = CommandIntake(self, now=self._stamps.command_clock)
        if get("cmd_vel_mode") == VELOCITY:
            self._commands.take_velocities(translate.velocity_from_twist, FOLLOWED_AXES)
        else:
            self._commands.take_velocities(translate.command_from_twist, RATES_AND_THRUST_AXES)
        self._commands.take("cmd_rates", CommandRates, translate.command_from_rates)

    def stop_waiting(self) -> None:
        """Wake the link's thread if it waits for a command."""
        self._commands.mailbox.close()

    # The conversation, on the link's thread.

    def converse(self, stream: TcpStream) -> None:
        """Read frames, publish them and answer them."""
        connection = AutopilotConnection(self._layout, self._unit, self._limits, self._memory.lend)
        deadline = MessageDeadline(stream, self._silence_timeout_s)
        constants = None
        self._is_layout_reported = self._has_served = False
        stream.expect_acknowledgements()  # or one that vanishes with an answer on its way would be waited for
        stream.acknowledge_at_once()  # many testbeds send a frame in pieces, with Nagle's algorithm on
        self.statistics.facts["attitude layout"] = self._layout.value if self._layout else "to be decided"
        try:
            while True:
                self._receive(stream, deadline, connection)
                while (event := connection.next_event()) is not NEED_DATA:
                    if isinstance(event, Constants):
                        constants = event
                        self.statistics.liveness.heard()
                        self._announce(constants)
                    elif isinstance(event, SimulationRestarted) and constants:
                        self._restart(constants, event)
                    elif isinstance(event, SensorFrame) and constants:
                        if self._layout is None and connection.layout and not self._is_layout_reported:
                            self._report_layout(connection.layout, constants)
                        self._serve(stream, connection, event)
                    else:
                        self.inform("The testbed ended the conversation.")
                        return
        except Exception as error:
            # In any case, the drone must not be left with the last command.
            if constants:
                stream.leave(connection.finish(self._flight.neutral), LEAVE_TIMEOUT_S)
            if isinstance(error, RemoteProtocolError) and (hint := connection.layout_hint):
                raise RemoteProtocolError(f"{error} {self._layout_advice(hint)}") from error
            raise
        finally:  # free the image memory
            self._memory.give_back()
            self._outputs = None

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
            self.inform(f"The testbed sends {floats}: attitude_layout is pose.")
            self._publish_static_transforms(constants, has_position=True)
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
        self._commands.mailbox.clear()
        self._publish_properties(constants)
        self._publish_static_transforms(constants, self._layout is AttitudeLayout.POSE)
        self._outputs = Outputs(self, self._make_outputs(constants), SUBSCRIBER_CHECK_PERIOD_S)

    def _publish_properties(self, constants: Constants) -> None:
        properties = translate.drone_properties(constants, self._unit)
        properties.header.stamp = self.now()
        properties.header.frame_id = self._names.base_link
        self.publish(self._properties_publisher, properties)

    def _publish_static_transforms(self, constants: Constants, has_position: bool) -> None:
        transforms = translate.camera_transforms(constants, self._names)
        if has_position and self._has_map_to_odom:
            transforms.append(translate.map_transform(self._names))
        now = self.now()
        for transform in transforms:
            transform.header.stamp = now
        self.publish(self._static_tf_publisher, TFMessage(transforms=transforms))

    def _restart(self, constants: Constants, restart: SimulationRestarted) -> None:
        """Start over for a new simulation, discarding commands and estimates."""
        self.statistics.counts["new simulations"] += 1
        self.inform(
            f"The testbed has started a new simulation on the same connection: its time is 0 after "
            f"{restart.time_before:.3f} s."
        )
        self._commands.mailbox.clear()
        self._publish_properties(constants)  # by which controllers know that they have to begin again

    def _serve(self, stream: TcpStream, connection: AutopilotConnection, frame: SensorFrame) -> None:
        """Answer one frame and publish it, in the order that keeps the testbed waiting least."""
        received_s = time.monotonic()
        self._flight.observe(frame)
        if not self._is_lockstep:
            self._answer(stream, connection, self._commands.newest())
        stamp = self._stamps.stamp(time_from_seconds(frame.time) if self._stamps.are_wire_time else None)
        assert self._outputs
        self._outputs.publish(frame, stamp)
        if self._is_lockstep:
            self._answer(stream, connection, self._command_for(stamp) or self._commands.newest())
        self._flight.answered()
        statistics = self.statistics
        if not self._has_served:
            self._has_served = True
            self.opened()
        statistics.liveness.heard()
        statistics.counts["frames"] += 1
        statistics.took("frame received to published and answered", time.monotonic() - received_s)

    def _command_for(self, stamp: Time) -> Command | VelocityCommand | None:
        """Wait for the command that answers the frame of this stamp, with a timeout."""
        waited_from_s = time.monotonic()
        timeout_s = self.parameters["command_timeout"]
        command = self._commands.mailbox.wait_for((stamp.sec, stamp.nanosec), timeout_s)
        self.statistics.took("waiting for the lockstep command", time.monotonic() - waited_from_s)
        self.statistics.counts["missed lockstep commands"] += command is None
        if command is None and not self._has_warned_of_unstamped and self._commands.mailbox.has_unstamped(timeout_s):
            self._has_warned_of_unstamped = True
            self.warn(
                f"sync is lockstep, and commands on cmd_vel have no stamp that says which frame they answer, so each "
                f"frame waits {timeout_s:g} s (command_timeout) in vain: publish cmd_vel_stamped or cmd_rates with the "
                f"stamp of the frame's images, or set sync to latest."
            )
        return command

    def _answer(
        self, stream: TcpStream, connection: AutopilotConnection, command: Command | VelocityCommand | None
    ) -> None:
        answer, was_within = self._flight.answer(command)
        counts = self.statistics.counts
        counts["neutral answers"] += command is None
        counts["clamped answers"] += not was_within
        stream.send_all(connection.send(answer), self._silence_timeout_s)

    def _make_outputs(self, constants: Constants) -> Iterator[Output]:
        """Yield every topic with the function that makes its message; constant parts are made here."""
        if self._stamps.clock_publisher:
            yield Output(self._stamps.clock_publisher, lambda frame, _: Clock(clock=time_from_seconds(frame.time)))
        for side, publisher in zip(SIDES, self._info_publishers, strict=True):
            info = translate.camera_info(constants, self._unit, self._names, side)
            yield Output(publisher, partial(self._stamp_info, info))
        for side, publisher in zip(SIDES, self._image_publishers, strict=True):
            image = rgb8_image(constants.width, constants.height, self._names.optical(side))
            yield Output(publisher, partial(self._fill_image, image, side))
        for side, publisher in zip(SIDES, self._jpeg_publishers, strict=True):
            size = constants.width, constants.height
            encoder = JpegEncoder(*size, self._names.optical(side), self.parameters["jpeg_quality"])
            yield Output(publisher, partial(self._compress_image, encoder, side))
        yield Output(self._imu_publisher, self._imu)
        if self._odometry_publisher:
            yield Output(self._odometry_publisher, self._odometry)
        if self._tf_publisher:
            yield Output(self._tf_publisher, self._transform)

    def _stamp_info(self, info: CameraInfo, _: SensorFrame, stamp: Time) -> CameraInfo:
        info.header.stamp = stamp
        return info

    def _fill_image(self, image: Image, side: str, frame: SensorFrame, stamp: Time) -> Image:
        image.header.stamp = stamp
        set_pixels(image, frame.left if side == "left" else frame.right)
        self.statistics.counts["images"] += 1
        return image

    def _compress_image(
        self, encoder: JpegEncoder, side: str, frame: SensorFrame, stamp: Time
    ) -> CompressedImage | None:
        try:
            message = encoder.image(frame.left if side == "left" else frame.right, stamp)
        except ValueError as error:
            self.count_and_warn("images not compressed", f"{side}/image_raw/compressed {error}.")
            return None
        self.statistics.counts["images compressed"] += 1
        return message

    def _imu(self, frame: SensorFrame, stamp: Time) -> Imu:
        return translate.imu(frame, self._unit, self._standard_deviation, stamp, self._names)

    def _odometry(self, frame: SensorFrame, stamp: Time) -> Odometry | None:
        odometry = translate.odometry(frame, self._unit, stamp, self._names)
        if odometry:
            self._covariances.fill(odometry)
        return odometry

    def _transform(self, frame: SensorFrame, stamp: Time) -> TFMessage | None:
        odometry = self._odometry(frame, stamp)
        return TFMessage(transforms=[odometry_transform(odometry)]) if odometry else None


def main() -> int:
    """Run the node."""
    return run(TestbedBridge)
