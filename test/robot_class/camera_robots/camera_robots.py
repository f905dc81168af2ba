# SPDX-License-Identifier: Apache-2.0
"""Two made-up robots with a camera and without a watchdog.

Each datagram to them is a velocity, each one from them an image: of the one robot a raw image, with width and height
before its pixels, of the other one a JPEG.
"""

import base64
import struct

from drone_bridge.robot_class import BodyVelocity, Camera, Picture, Robot, Telemetry, Udp

VELOCITY = struct.Struct("<2d")  # forward, m/s, and turn, rad/s
SIZE = struct.Struct("<2H")  # width and height, pixels
PICTURE = Picture(4, 3, bytes(range(36)))
#: 8 x 8 pixels, all red.
JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABALDA4MChAODQ4SERATGCgaGBYWGDEjJR0oOjM9PDkzODdASFxOQERXRTc4UG1RV19i"
    "Z2hnPk1xeXBkeFxlZ2P/2wBDARESEhgVGC8aGi9jQjhCY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2Nj"
    "Y2NjY2NjY2P/wAARCAAIAAgDASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAb/xAAUEAEAAAAAAAAAAAAAAAAAAAAA/8QA"
    "FQEBAQAAAAAAAAAAAAAAAAAABQb/xAAUEQEAAAAAAAAAAAAAAAAAAAAA/9oADAMBAAIRAxEAPwCdAHq9/9k="
)


class RawCamera(Robot):
    name, summary, control = "raw_camera", "a made-up robot with a camera", Udp(7701)
    topics, camera, robot_stops_after_s = (), Camera("rgb8"), None

    def encode_command(self, velocity: BodyVelocity) -> bytes:
        return VELOCITY.pack(velocity.forward, velocity.turn)

    def decode_report(self, packet: bytes) -> Telemetry:
        return Telemetry(image=Picture(*SIZE.unpack_from(packet), packet[SIZE.size :]))

    def decode_command(self, packet: bytes) -> BodyVelocity:
        forward, turn = VELOCITY.unpack(packet)
        return BodyVelocity(forward, turn=turn)

    def encode_report(self, telemetry: Telemetry) -> bytes:
        picture = telemetry.image if isinstance(telemetry.image, Picture) else PICTURE
        return SIZE.pack(picture.width, picture.height) + picture.rgb8


class JpegCamera(RawCamera):
    name, control, camera = "jpeg_camera", Udp(7702), Camera("jpeg")

    def decode_report(self, packet: bytes) -> Telemetry:
        return Telemetry(image=packet)

    def encode_report(self, telemetry: Telemetry) -> bytes:
        return telemetry.image if isinstance(telemetry.image, bytes) else JPEG
