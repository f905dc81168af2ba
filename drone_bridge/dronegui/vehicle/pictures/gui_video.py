# SPDX-License-Identifier: Apache-2.0
"""GuiVideo: sends images of a ROS vehicle as the video that a GUI forwards to its controllers.

Packets of a bridge are checked and forwarded unchanged; other images are encoded. A child process does both, and a
thread waits for it. The executor subscribes to one topic at a time, while the vehicle has a controller, and hands the
newest message to the thread.
"""

import threading
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from sensor_msgs.msg import CompressedImage, Image
from std_msgs.msg import UInt8MultiArray

from drone_bridge.ar_drone.cameras import UVLC_WORK
from drone_bridge.dronegui.codec import DEFAULT_VIDEO_PORT, DEFAULT_VIDEO_SOURCE_PORT
from drone_bridge.dronegui.pictures.packets import VIDEO_TOPIC
from drone_bridge.dronegui.ports import open_outlet
from drone_bridge.net.clock import elapsed_s
from drone_bridge.net.connector import Cancellation, LinkError, wait_readable
from drone_bridge.net.datagram_link import DatagramPort
from drone_bridge.net.thread_end import STOP_TIMEOUT_S, ends_within
from drone_bridge.pictures.codec_process import LATE, LATE_ADVICE, MAX_DATA_BYTES, CodecProcess, CodecProcessError
from drone_bridge.pictures.topics import COMPRESSED, RAW
from drone_bridge.pictures.video_port import video_log
from drone_bridge.ros.node.parameters import ParameterDeclaration
from drone_bridge.ros.process.log_pipe import original_output
from drone_bridge.ros.qos import newest
from drone_bridge.wire.counters import RateCounter, problems
from drone_bridge.wire.rate_limit import RateLimit

if TYPE_CHECKING:
    from drone_bridge.ros.node.protocol_node import ProtocolNode

GUI_VIDEO_PARAMETERS = (
    ParameterDeclaration(
        "video_port", DEFAULT_VIDEO_PORT, "Port of the operators for video. 0 disables video.", range=(0, 65535)
    ),
    ParameterDeclaration("video_rate", 30.0, "Maximum rate of pictures, Hz.", range=(0.1, 60.0), live=True),
)

#: Topics of images, in order of preference. The first one with a publisher is used.
SOURCES = {VIDEO_TOPIC: UInt8MultiArray, RAW: Image, COMPRESSED: CompressedImage}
CHOICE_PERIOD_S = 1.0
_LOOK_S = 1.0
# Counters.
SENT = RateCounter("video_packets")
REFUSED, ENDS, UNSENT = problems("refused_images", "ended_codec_processes", "unsent_video")


class _Arrival(NamedTuple):
    """Message, and its time of arrival."""

    topic: str
    message: Any
    received_s: float


class GuiVideo:
    """Video for a GUI's controllers."""

    def __init__(self, node: "ProtocolNode") -> None:
        """Start looking for a source of images."""
        self._node = node
        self._names = {topic: node.resolve_topic_name(topic) for topic in SOURCES}
        self._source = ""  # the subscribed topic
        self._rate_limit = RateLimit()
        self._controllers: Callable[[float], Sequence[Any]] = lambda now_s: ()
        self._thread: threading.Thread | None = None
        self._child: CodecProcess | None = None
        # Handed over to the thread.
        self._newest: _Arrival | None = None
        self._wakeup = threading.Event()
        node.make_timer(CHOICE_PERIOD_S, self._choose_source)
        node.each_second(self._report)

    def start(self, host: str, controllers: Callable[[float], Sequence[Any]]) -> None:
        """Open the port that sends video, and start the thread.

        Args:
            host: our address.
            controllers: takes the time, s, and returns the addresses of the vehicle's controllers, with any port.
                Thread-safe.

        Raises LinkError.
        """
        log = video_log(self._node.wire_log)
        outlet, problem = open_outlet(host, DEFAULT_VIDEO_SOURCE_PORT, "Video", log)
        self._cancellation = Cancellation()
        if problem:
            self._node.get_logger().info(problem)
        self._controllers = controllers
        self._newest = None
        self._wakeup.clear()
        self._child = CodecProcess(original_output())
        name = f"{self._node.get_name()} video"
        self._thread = threading.Thread(target=self._run, args=(outlet, self._child), name=name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop sending, and stop thread and child."""
        thread, self._thread, self._child, self._controllers = self._thread, None, None, lambda now_s: ()
        if thread is None:
            return
        self._cancellation.cancel()
        self._wakeup.set()
        if ends_within(thread, STOP_TIMEOUT_S):
            self._cancellation.close()

    # For the executor.

    def _choose_source(self) -> None:
        """Subscribe to the best topic with a publisher while the vehicle has a controller, else to none."""
        chosen = ""
        if self._controllers(elapsed_s()):
            chosen = next((topic for topic, name in self._names.items() if self._node.count_publishers(name)), "")
        if chosen == self._source:
            return
        if self._source:
            self._node.end_subscriptions(self._source)
        self._source = chosen
        if chosen:
            self._node.make_subscription(SOURCES[chosen], chosen, partial(self._take, chosen), newest())

    def _take(self, topic: str, message: Any) -> None:
        """Hand a message to the thread, in place of one that it has not started."""
        now_s = elapsed_s()
        if topic == self._source and self._rate_limit.is_due(now_s, self._node.parameters["video_rate"]):
            self._newest = _Arrival(topic, message, now_s)
            self._wakeup.set()

    # On the thread.

    def _run(self, outlet: DatagramPort, child: CodecProcess) -> None:
        number = 0
        try:
            while not self._cancellation.is_set:
                self._wakeup.wait()
                self._wakeup.clear()
                arrival, self._newest = self._newest, None
                if arrival:
                    number += 1
                    packet = self._packet_of(arrival, number, child)
                    if packet and elapsed_s() <= arrival.received_s + self._node.parameters["source_timeout"]:
                        self._send(packet, outlet)
        except Exception:
            self._node.report.count_and_warn("internal_errors", traceback.format_exc())
        finally:
            outlet.close()
            child.end()

    def _packet_of(self, arrival: _Arrival, number: int, child: CodecProcess) -> bytes | None:
        """Check or encode a message in the child; return the packet, or None if it can't be sent."""
        message = arrival.message
        size = len(message.data)
        if size > MAX_DATA_BYTES:
            self._refuse(arrival.topic, f"It has {size} bytes (limit {MAX_DATA_BYTES}).")
            return None
        facts = {"number": number}
        if arrival.topic == RAW:
            facts |= {name: getattr(message, name) for name in ("encoding", "width", "height", "step")}
        work = {VIDEO_TOPIC: "check", RAW: "encode", COMPRESSED: "encode_jpeg"}[arrival.topic]
        try:
            while not child.can_take:  # it has exited shortly after its start
                if self._cancellation.wait(_LOOK_S / 4):
                    return None
            child.ask(f"{UVLC_WORK}:{work}", memoryview(message.data).cast("B"), **facts)
            while (reply := child.reply()) is None:
                wait_readable([self._cancellation, child], _LOOK_S)
                if self._cancellation.is_set:
                    return None
        except CodecProcessError as error:
            self._node.report.count_and_warn(ENDS, str(error))
            return None
        if reply.refusal:
            self._refuse(arrival.topic, reply.refusal)
            return None
        return reply.data[0] if reply.data else bytes(message.data)

    def _refuse(self, topic: str, sentence: str) -> None:
        self._node.report.count_and_warn(REFUSED, f"A message on {topic} was not sent as video: {sentence}")

    def _send(self, packet: bytes, outlet: DatagramPort) -> None:
        for host, _, *rest in self._controllers(elapsed_s()):
            try:
                outlet.send(packet, (host, self._node.parameters["video_port"], *rest))
            except LinkError as error:
                self._node.report.count_and_warn(UNSENT, str(error))
            else:
                self._node.report.counts[SENT] += 1

    # On the diagnostics thread.

    def _report(self) -> None:
        child = self._child
        self._node.report.update_condition(LATE, child.problem if child else "", LATE_ADVICE)
