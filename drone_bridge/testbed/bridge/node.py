# SPDX-License-Identifier: Apache-2.0
"""testbed_bridge: the autopilot's side of the testbed protocol, as a ROS 2 node. See docs/testbed.md."""

import time
from typing import Any, Final

from builtin_interfaces.msg import Time

from drone_bridge.motion.velocity_control import VelocityCommand, VelocityParameters
from drone_bridge.msg import CommandRates
from drone_bridge.net.connector import LinkError, LinkTimeoutError
from drone_bridge.net.tcp import MessageDeadline, TcpStream
from drone_bridge.ros.commands import CommandIntake
from drone_bridge.ros.parameters import read
from drone_bridge.ros.program import run
from drone_bridge.ros.simulated_time import Stamps
from drone_bridge.ros.tcp_link_node import TcpLinkNode
from drone_bridge.ros.time import stamp_numbers, time_from_seconds
from drone_bridge.ros.topics import Outputs
from drone_bridge.testbed.bridge.flight import FOLLOWED_AXES, RATES_AND_THRUST_AXES, TestbedFlight
from drone_bridge.testbed.bridge.outputs import TestbedOutputs
from drone_bridge.testbed.bridge.parameters import MEBIBYTE, PARAMETERS, VELOCITY
from drone_bridge.testbed.codec import (
    NEED_DATA,
    AngleUnit,
    AttitudeLayout,
    AutopilotConnection,
    Constants,
    Limits,
    SensorFrame,
    SimulationRestarted,
)
from drone_bridge.testbed.topics import translation as translate
from drone_bridge.testbed.topics.parameters import AUTO
from drone_bridge.testbed.topics.translation import Command
from drone_bridge.wire.events import RemoteProtocolError

#: A testbed that has been silent for so long where its first frame may end is waiting for the answer.
FRAME_END_SILENCE_S: Final = 0.5
#: How long the testbed has to finish its frame and close.
LEAVE_TIMEOUT_S: Final = 0.3


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
        self._limits = Limits(get("max_width"), get("max_height"), get("max_frame_mebibytes") * MEBIBYTE)
        self._is_lockstep = get("sync") == "lockstep"
        self._silence_timeout_s = get("silence_timeout")
        self._has_warned_of_unstamped = False
        self._stamps = Stamps(self)
        has_position = self._layout in (None, AttitudeLayout.POSE)
        self._outputs = TestbedOutputs(self, self._stamps, self._unit, has_position)
        self._frame_outputs: Outputs[SensorFrame] | None = None  # from a testbed's constants to its end
        self._velocity_parameters = read(VelocityParameters, VELOCITY, self.parameters)
        self._commands: CommandIntake[Command | VelocityCommand] = CommandIntake(self, now=self._stamps.command_clock)
        if get("cmd_vel_mode") == VELOCITY:
            self._commands.take_velocities(translate.velocity_from_twist, FOLLOWED_AXES)
        else:
            self._commands.take_velocities(
                translate.command_from_twist, RATES_AND_THRUST_AXES, read_helm=translate.velocity_from_twist
            )
        self._commands.take("cmd_rates", CommandRates, translate.command_from_rates)

    def stop_waiting(self) -> None:
        """Wake the link's thread if it waits for a command."""
        self._commands.mailbox.close()

    # The conversation, on the link's thread.

    def converse(self, stream: TcpStream) -> None:
        """Read frames, publish them and answer them."""
        # A frame is published before the next one is read, and publish() has finished with an array when it returns.
        connection = AutopilotConnection(self._layout, self._unit, self._limits, reuses_images=True)
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
                    if isinstance(event, SensorFrame) and constants:
                        if self._layout is None and connection.layout and not self._is_layout_reported:
                            self._report_layout(connection.layout, constants)
                        self._serve(stream, connection, event)
                    elif isinstance(event, Constants):
                        constants = event
                        self.statistics.liveness.heard()
                        self._announce(constants)
                    elif isinstance(event, SimulationRestarted) and constants:
                        self._restart(constants, event)
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
        finally:
            self._frame_outputs = None  # its messages keep the memory of the images

    def _receive(self, stream: TcpStream, deadline: MessageDeadline, connection: AutopilotConnection) -> None:
        """Receive data. Raises LinkError, with advice if the layout may be wrong."""
        buffers = connection.get_buffers()
        pixel_bytes = connection.pixel_bytes_ahead if self.wire_log else 0
        is_undecided = connection.silence_decides
        try:
            if is_undecided:
                count = stream.receive_into(*buffers, timeout_s=FRAME_END_SILENCE_S, pixel_bytes=pixel_bytes)
            else:
                is_inside = connection.inside_message
                count = deadline.receive_into(*buffers, is_inside_message=is_inside, pixel_bytes=pixel_bytes)
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
            self._outputs.publish_static_transforms(constants, has_position=True)
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
        self._outputs.publish_properties(constants)
        self._outputs.publish_static_transforms(constants, self._layout is AttitudeLayout.POSE)
        self._frame_outputs = self._outputs.frame_outputs(constants)

    def _restart(self, constants: Constants, restart: SimulationRestarted) -> None:
        """Start over for a new simulation, discarding commands and estimates."""
        self.statistics.counts["new simulations"] += 1
        self.inform(
            f"The testbed has started a new simulation on the same connection: its time is 0 after "
            f"{restart.time_before:.3f} s."
        )
        self._commands.mailbox.clear()
        self._outputs.publish_properties(constants)  # by which controllers know that they have to begin again

    def _serve(self, stream: TcpStream, connection: AutopilotConnection, frame: SensorFrame) -> None:
        """Answer one frame and publish it, in the order that keeps the testbed waiting least."""
        received_s = time.monotonic()
        self._flight.observe(frame)
        if not self._is_lockstep:
            self._answer(stream, connection, self._commands.newest())
        stamp = self._stamps.stamp(time_from_seconds(frame.time) if self._stamps.are_wire_time else None)
        assert self._frame_outputs
        self._frame_outputs.publish(frame, stamp)
        if self._is_lockstep:
            self._flight.estimate()  # while the controller is at work
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
        if self._commands.is_held:
            return None
        waited_from_s = time.monotonic()
        timeout_s = self.parameters["command_timeout"]
        command = self._commands.mailbox.wait_for(stamp_numbers(stamp), timeout_s)
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


def main() -> int:
    """Run the node."""
    return run(TestbedBridge)
