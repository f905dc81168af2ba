# SPDX-License-Identifier: Apache-2.0
"""CameraTopics: publishes a camera's video on image topics.

While the bridge is active, a thread reads the source of packets, passes them to a child process if a picture topic
has subscribers, and publishes the result. The executor is not involved. The diagnostics thread reads
attributes that are replaced as a whole.
"""

import math
import threading
import traceback
from array import array
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from rclpy.publisher import Publisher
from sensor_msgs.srv import SetCameraInfo
from tf2_msgs.msg import TFMessage

from drone_bridge.net.clock import elapsed_s
from drone_bridge.net.connector import Cancellation, Selectable, wait_readable
from drone_bridge.net.link_loop import DROPPED_BY_STALL
from drone_bridge.net.thread_end import STOP_TIMEOUT_S, ends_within
from drone_bridge.pictures.codec_process import LATE, LATE_ADVICE, CodecProcess, CodecProcessError
from drone_bridge.pictures.packet_queue import PacketQueue, QueuedFrame
from drone_bridge.pictures.source import PictureSource
from drone_bridge.pictures.topics import (
    COMPRESSED,
    PICTURE_ROWS,
    CameraPicture,
    CameraTranslation,
    VideoPacket,
    calibration_parameter,
    camera_transforms,
    info_parameter,
)
from drone_bridge.ros.node.parameters import ParameterDeclaration
from drone_bridge.ros.process.log_pipe import original_output
from drone_bridge.ros.qos import latched
from drone_bridge.ros.topics.frames import DroneFrameNames
from drone_bridge.ros.topics.table import Topic
from drone_bridge.session.obstacles import Obstacle
from drone_bridge.session.stall_detector import StallDetector
from drone_bridge.vision.jpegs import OPENCV_PACKAGES
from drone_bridge.vision.picture_camera import PictureCamera
from drone_bridge.wire.counters import problems, rates
from drone_bridge.wire.rate_limit import RateLimit

if TYPE_CHECKING:
    from drone_bridge.ros.node.protocol_node import ProtocolNode


def camera_parameters(*cameras: PictureCamera, most_rate: float = 30.0) -> tuple[ParameterDeclaration, ...]:
    """Return the parameters of the topics of these cameras, front and downward."""
    meaning = "Maximum rate of pictures, Hz."
    rate = ParameterDeclaration("video_rate", most_rate, meaning, range=(0.1, 60.0), live=True)
    return rate, *map(calibration_parameter, cameras)


JPEG_QUALITY = 80  # of 100
SUBSCRIBER_CHECK_PERIOD_S = 0.2
#: Time without a packet after which there is no video, s.
SILENCE_S = 3.0
# Counters.
PACKETS, PICTURES = rates("video_packets", "pictures")
REFUSED, FOREIGN, DROPPED = problems("refused_video", "foreign_video", "dropped_video")
ENDS, UNCOMPRESSED = problems("ended_codec_processes", "uncompressed_pictures")
# Conditions.
PORT_TAKEN, UNDECODED = "video_port", "video_format"
PICTURE_TOPICS = frozenset(row.name for row in PICTURE_ROWS)


class CameraTopics:
    """Topics of the drone's cameras."""

    def __init__(
        self,
        node: "ProtocolNode",
        names: DroneFrameNames,
        cameras: Sequence[PictureCamera],
        camera_of: Callable[[str, int, int], PictureCamera],
        packets: Topic | None = None,
        *,
        prefix: str = "",
    ) -> None:
        """Create the publishers.

        Args:
            node: the bridge.
            names: names of its frames.
            cameras: cameras that calibration files may be of.
            camera_of: returns the camera of a picture, by the frame's name of it and the picture's size.
            packets: topic of unchanged packets, if there is one.
            prefix: of the topics' names.

        Raises ValueError for an invalid calibration file.
        """
        self._node, self._packets, self._camera_of = node, packets, camera_of
        parameter = node.parameters.__getitem__
        calibrations = {each.name: parameter(info_parameter(each)) for each in cameras}
        self._translation = CameraTranslation(names, calibrations, cameras)
        self._transforms = camera_transforms(names, [*{each.name: each for each in cameras}.values()])
        has_opencv = find_spec("cv2") is not None
        if not has_opencv:
            node.get_logger().info(f"{COMPRESSED} is not offered without OpenCV: install {OPENCV_PACKAGES}.")
        self._publishers: dict[str, Publisher[Any]] = {
            row.name: node.make_publisher(row.message, f"{prefix}{row.name}", row.qos())
            for row in ((packets, *PICTURE_ROWS) if packets else PICTURE_ROWS)
            if row.name != COMPRESSED or has_opencv
        }
        self._static = node.make_publisher(TFMessage, "/tf_static", latched())
        service = node.create_service(SetCameraInfo, f"{prefix}set_camera_info", self._calibrate)
        node.cleanup.callback(node.destroy_service, service)
        self._thread: threading.Thread | None = None
        # Written by the thread, read by the diagnostics thread.
        self._source: PictureSource | None = None
        self._child: CodecProcess | None = None
        self._wanted: frozenset[str] = frozenset()  # topics with subscribers
        self._received_s = self._linked_s = -math.inf  # times of the last packet, and of the last look without a link
        self._refusal = ""  # of the newest packet that was sent to the child
        # Used only by the thread.
        self._checked_s = -math.inf  # time of the last count of subscribers
        self._queue, self._rate_limit = PacketQueue(), RateLimit()
        self._is_placed = False  # whether the transforms of this activation were published
        node.each_second(self._report)

    def start(self, source: PictureSource) -> None:
        """Start the thread, which closes the source."""
        self._source = source
        self._received_s, self._refusal, self._is_placed = elapsed_s(), "", False
        self._queue.restart()
        self._child = CodecProcess(original_output())
        self._cancellation = Cancellation()
        name = f"{self._node.get_name()} video"
        self._thread = threading.Thread(target=self._run, args=(source, self._child), name=name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Close the source, and stop thread and child."""
        thread, self._thread, self._source, self._child = self._thread, None, None, None
        if thread is None:
            return
        self._cancellation.cancel()
        if ends_within(thread, STOP_TIMEOUT_S):
            self._cancellation.close()

    def _calibrate(self, request: SetCameraInfo.Request, response: SetCameraInfo.Response) -> SetCameraInfo.Response:
        try:
            response.status_message, response.success = self._translation.calibrate(request.camera_info), True
        except ValueError as error:
            response.status_message = str(error)
        return response

    # On the thread.

    def _run(self, source: PictureSource, child: CodecProcess) -> None:
        stalls = StallDetector()
        try:
            while not self._cancellation.is_set:
                source.keep_open(bool(self._wanted))
                self._wait(source, child)
                if stalls.has_stalled(elapsed_s()):
                    self._node.report.counts[DROPPED_BY_STALL] += source.drop()
                    self._queue.restart()
                self._count_subscribers()
                self._take_packets(source)
                self._publish_reply(child)
                self._ask(child)
        except Exception:
            self._node.report.count_and_warn("internal_errors", traceback.format_exc())
        finally:
            source.close()
            child.end()

    def _wait(self, source: PictureSource, child: CodecProcess) -> None:
        """Wait for the next packet, once the source may be read, and for the child's reply."""
        files: list[Selectable] = [self._cancellation]
        left_s = source.left_s
        if source.is_open and left_s <= 0:
            files.append(source)
        if child.is_busy:
            files.append(child)
        wait_readable(files, min(StallDetector.PERIOD_S, left_s) if left_s > 0 else StallDetector.PERIOD_S)

    def _count_subscribers(self) -> None:
        now_s = elapsed_s()
        if now_s > self._checked_s + SUBSCRIBER_CHECK_PERIOD_S:
            self._checked_s = now_s
            wanted = (name for name, publisher in self._publishers.items() if self._node.is_wanted(publisher))
            was_wanted, self._wanted = self._wanted, frozenset(wanted)
            if not was_wanted:
                self._received_s = now_s  # some sources begin only now

    def _take_packets(self, source: PictureSource) -> None:
        """Read the source if it is due. Packets are published unchanged, and wait for the child."""
        read, counts = source.take(self._node.parameters["video_rate"]), self._node.report.counts
        if read.refused:
            counts[FOREIGN] += read.refused
            sentence = f"Video from {read.refused_host} was refused: {source.peer} is at another address."
            self._node.report.warn(sentence, FOREIGN)
        if not self._wanted & PICTURE_TOPICS:
            self._queue.restart()
        if not read.frames:
            return
        self._received_s = elapsed_s()
        counts[PACKETS] += read.received
        self._node.report.facts["video_packet_bytes"] = str(len(read.frames[-1].data))
        stamp = self._node.now()
        for frame in read.frames:
            if self._packets and self._packets.name in self._wanted:
                assert self._packets.to_ros
                message = self._packets.to_ros(self._translation, VideoPacket(frame.data), stamp)
                self._node.publish(self._publishers[self._packets.name], message)
            if self._wanted & PICTURE_TOPICS:
                counts[DROPPED] += self._queue.put(QueuedFrame(frame, stamp, self._received_s))

    def _ask(self, child: CodecProcess) -> None:
        """Pass the oldest packet to the child when it is idle."""
        if not self._queue or not child.can_take:
            return
        self._asked = self._queue.next()
        frame, received_s = self._asked.frame, self._asked.received_s
        more = {"jpeg": JPEG_QUALITY if COMPRESSED in self._wanted else 0}
        if frame.stream is not None:  # others need this one, also if it is not shown
            is_shown = self._rate_limit.is_due(received_s, self._node.parameters["video_rate"])
            more |= {"stream": frame.stream, "is_shown": is_shown}
        try:
            child.ask(frame.work, frame.data, **more)
        except CodecProcessError as error:
            self._lose_child(error)

    def _lose_child(self, error: CodecProcessError) -> None:
        self._queue.restart()
        self._node.report.count_and_warn(ENDS, str(error))

    def _publish_reply(self, child: CodecProcess) -> None:
        """Publish the picture that the child has decoded, if it is ready."""
        try:
            reply = child.reply() if child.is_busy else None
        except CodecProcessError as error:
            self._lose_child(error)
            return
        if reply is None:
            return
        self._refusal = reply.refusal
        if reply.refusal:
            if self._asked.frame.stream is not None:  # pictures after it need it
                self._queue.restart()
            self._node.report.counts[REFUSED] += 1
            self._node.report.warn_ongoing(UNDECODED, reply.refusal)
            return
        if not reply.data:
            return
        if problem := reply.facts.get("jpeg_problem"):
            self._node.report.count_and_warn(UNCOMPRESSED, f"{COMPRESSED} {problem}.")
        if not self._is_placed:
            self._is_placed = True
            for each in self._transforms:
                each.header.stamp = self._asked.stamp
            self._node.publish(self._static, TFMessage(transforms=self._transforms))
        camera = self._camera_of(self._asked.frame.camera, reply.facts["width"], reply.facts["height"])
        (pixels := array("B")).frombytes(reply.data[0])
        picture = CameraPicture(camera, pixels, reply.data[1] if len(reply.data) > 1 else None)
        made = (
            (row.name, row.to_ros(self._translation, picture, self._asked.stamp))
            for row in PICTURE_ROWS
            if row.to_ros and row.name in self._wanted
        )
        self._node.publish_all((self._publishers[name], message) for name, message in made if message is not None)
        report = self._node.report
        report.counts[PICTURES] += 1
        report.facts["video_size"] = f"{picture.camera.width} x {picture.camera.height}"
        report.record_duration("video_read_to_published", elapsed_s() - self._asked.received_s)

    # On the diagnostics thread.

    def _report(self) -> None:
        source, child, is_wanted = self._source, self._child, bool(self._wanted & PICTURE_TOPICS)
        report = self._node.report  # without a link, advice about the video would mislead
        is_linked = source is not None and not source.problem and report.is_open and not report.is_silent
        self._linked_s = self._linked_s if is_linked else elapsed_s()  # a robot that returns has to be asked again
        is_silent = elapsed_s() > max(self._received_s, self._linked_s) + SILENCE_S + report.silence_s
        refusal = self._refusal if source and is_wanted and not is_silent else ""
        facts = {"peer": source.peer, "advice": source.advice} if source and is_wanted and is_silent else None
        report.update_obstacle(Obstacle.NO_VIDEO, facts)
        for condition, problem, advice in (
            (PORT_TAKEN, source.problem if source else "", "there is no video until it is free"),
            (UNDECODED, refusal, "no picture is published"),
            (LATE, child.problem if child else "", LATE_ADVICE),
        ):
            report.update_condition(condition, problem.rstrip("."), advice)
