# SPDX-License-Identifier: Apache-2.0
"""CameraTranslation: pictures to messages; the rows of cameras in the table of topics."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from builtin_interfaces.msg import Time
from geometry_msgs.msg import TransformStamped
from sensor_msgs.msg import CameraInfo, CompressedImage, Image
from std_msgs.msg import UInt8MultiArray

from drone_bridge.ros.node.parameters import ParameterDeclaration
from drone_bridge.ros.process.environment import ros_home
from drone_bridge.ros.qos import newest
from drone_bridge.ros.topics.calibration_files import read_camera_info, write_camera_info
from drone_bridge.ros.topics.frames import DOWNWARD_OPTICAL_IN_BODY, OPTICAL_IN_BODY, DroneFrameNames
from drone_bridge.ros.topics.images import Rgb8Image, pinhole_camera_info, set_data
from drone_bridge.ros.topics.jpeg_images import RGB8_AS_JPEG
from drone_bridge.ros.topics.table import Topic
from drone_bridge.ros.topics.transforms import transform
from drone_bridge.vision.picture_camera import PictureCamera

#: Place of a camera, by whether it is the downward one.
PLACES = ("front", "downward")
#: Most cameras with messages at a time. The sizes of pictures may be the vehicle's choice.
MOST_CAMERAS = 4


def calibration_parameter(camera: PictureCamera) -> ParameterDeclaration:
    """Return the parameter with a camera's calibration file."""
    meaning = (
        f"The {PLACES[camera.is_down]} camera's calibration file in the format of camera_calibration, "
        f"for {camera.width} x {camera.height} pixels. If empty, or for pictures of another size, camera_info is "
        f"an ideal pinhole with {camera.diagonal:g} degrees from corner to corner."
    )
    return ParameterDeclaration(info_parameter(camera), "", meaning)


def info_parameter(camera: PictureCamera) -> str:
    """Return the name of the parameter with a camera's calibration file."""
    return f"{camera.name}_camera_info".lstrip("_")


@dataclass(frozen=True, slots=True)
class CameraPicture:
    """Decoded picture.

    Attributes:
        camera: its camera, by the size.
        rgb8: height x width x 3 bytes.
        jpeg: the picture as JPEG, or None.
    """

    camera: PictureCamera
    rgb8: array[int]
    jpeg: bytes | None = None


@dataclass(frozen=True, slots=True)
class VideoPacket:
    """Video packet as received."""

    data: bytes


def optical_frame(names: DroneFrameNames, camera: PictureCamera) -> str:
    """Return the camera's optical frame."""
    return f"{names.frame_prefix}{f'{camera.name}_camera'.lstrip('_')}_optical_frame"


def camera_transforms(names: DroneFrameNames, cameras: Sequence[PictureCamera]) -> list[TransformStamped]:
    """Return the transform from base_link to each camera's optical frame. Positions in the hull are ignored."""
    turns = (OPTICAL_IN_BODY, DOWNWARD_OPTICAL_IN_BODY)
    return [transform(names.base_link, optical_frame(names, each), rotation=turns[each.is_down]) for each in cameras]


class _Messages(NamedTuple):
    """Reused messages of a camera."""

    image: Rgb8Image
    compressed: CompressedImage
    info: CameraInfo


class CameraTranslation:
    """Converts pictures to messages, which are created once per camera, and valid until the next call."""

    def __init__(
        self, names: DroneFrameNames, calibrations: Mapping[str, str], cameras: Sequence[PictureCamera]
    ) -> None:
        """Read calibration files.

        Args:
            names: names of frames.
            calibrations: paths of the files, by the camera's name; empty for none.
            cameras: cameras that they may be of.

        Raises ValueError for an invalid file.
        """
        self._names, self._paths = names, calibrations
        self._newest: PictureCamera | None = None  # camera of the newest picture
        self._calibrations = {
            name: _read_calibration(path, [each for each in cameras if each.name == name])
            for name, path in calibrations.items()
            if path
        }
        self._messages: dict[PictureCamera, _Messages] = {}

    def image(self, picture: CameraPicture, stamp: Time) -> Image:
        return self._of(picture.camera).image.filled(picture.rgb8, stamp)

    def compressed_image(self, picture: CameraPicture, stamp: Time) -> CompressedImage | None:
        """Return the JPEG, if there is one."""
        if picture.jpeg is None:
            return None
        message = self._of(picture.camera).compressed
        message.header.stamp = stamp
        set_data(message, picture.jpeg)
        return message

    def camera_info(self, picture: CameraPicture, stamp: Time) -> CameraInfo:
        info = self._of(picture.camera).info
        info.header.stamp = stamp
        return info

    def packet(self, packet: VideoPacket, _: Time) -> UInt8MultiArray:
        message = UInt8MultiArray()
        # Bypasses the property, which checks each element on some distributions.
        message._data = array("B", packet.data)
        return message

    def h264(self, packet: VideoPacket, stamp: Time) -> CompressedImage:
        """Return a picture of a robot's only camera, as sent."""
        message = CompressedImage(format="h264")
        message.header.stamp, message.header.frame_id = stamp, self._names.optical
        set_data(message, packet.data)
        return message

    def calibrate(self, info: CameraInfo) -> str:
        """Store a calibration of the camera of the newest picture, and use it. Return where, a sentence.

        For any thread. Raises ValueError with a sentence.
        """
        camera = self._newest
        if camera is None or (info.width, info.height) != (camera.width, camera.height):
            sent = f"the newest picture has {camera.width} x {camera.height}" if camera else "no picture was published"
            raise ValueError(f"The calibration is for {info.width} x {info.height} pixels, and {sent}.")
        default = ros_home() / "camera_info" / f"{optical_frame(self._names, camera).replace('/', '.')}.yaml"
        path = self._paths.get(camera.name) or str(default)
        self._calibrations[camera.name] = write_camera_info(path, camera.name or "camera", info)
        self._messages = {}
        again = "" if self._paths.get(camera.name) else f" At the next start, set {info_parameter(camera)} to it."
        return f"The calibration is used, and stored in {path}.{again}"

    def _of(self, camera: PictureCamera) -> _Messages:
        self._newest, messages = camera, self._messages  # which `calibrate` may replace
        if camera not in messages:
            if len(messages) >= MOST_CAMERAS:
                messages.clear()
            frame = optical_frame(self._names, camera)
            compressed = CompressedImage(format=RGB8_AS_JPEG)
            compressed.header.frame_id = frame
            image = Rgb8Image(camera.width, camera.height, frame)
            messages[camera] = _Messages(image, compressed, self._info(camera, frame))
        return messages[camera]

    def _info(self, camera: PictureCamera, frame_id: str) -> CameraInfo:
        """Return the CameraInfo of the calibration file, or of the data sheet."""
        info = self._calibrations.get(camera.name)
        if info is None or (info.width, info.height) != (camera.width, camera.height):
            (x, y), center = camera.lens or ((camera.focal_length,) * 2, None)
            size = camera.width, camera.height
            return pinhole_camera_info(*size, focal_x=x, focal_y=y, center=center, frame_id=frame_id)
        info.header.frame_id = frame_id
        return info


def _read_calibration(path: str, cameras: Sequence[PictureCamera]) -> CameraInfo:
    """Return the CameraInfo of a file for one of these cameras of the same name. Raises ValueError."""
    info = read_camera_info(path)
    if all((info.width, info.height) != (each.width, each.height) for each in cameras):
        sizes = " or ".join(f"{each.width} x {each.height}" for each in cameras)
        sentence = f"{path} is of {info.width} x {info.height} pixels; the {cameras[0].name} camera has {sizes}."
        raise ValueError(sentence)
    return info


CAMERA_INFO, COMPRESSED, RAW = "camera_info", "image_raw/compressed", "image_raw"

#: Row of a stream for those who decode it themselves.
H264_ROW = Topic(
    "image_raw/h264", CompressedImage, VideoPacket, CameraTranslation.h264, meaning="H.264 as sent, by picture"
)

_picture = partial(Topic, of=CameraPicture, qos=newest)

#: Rows in their order of publication: the small message first.
PICTURE_ROWS = (
    _picture(
        CAMERA_INFO,
        CameraInfo,
        to_ros=CameraTranslation.camera_info,
        meaning="calibration file, or an ideal pinhole with the data sheet's field of view",
    ),
    _picture(
        COMPRESSED,
        CompressedImage,
        to_ros=CameraTranslation.compressed_image,
        meaning="image as JPEG, only for subscribers",
    ),
    _picture(RAW, Image, to_ros=CameraTranslation.image, meaning="decoded video, rgb8, only for subscribers"),
)
