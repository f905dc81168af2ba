# SPDX-License-Identifier: Apache-2.0
"""CameraTranslation: pictures of an AR.Drone to messages; the rows of its cameras in the table of topics."""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass

from builtin_interfaces.msg import Time
from geometry_msgs.msg import TransformStamped
from sensor_msgs.msg import CameraInfo, CompressedImage, Image
from std_msgs.msg import UInt8MultiArray

from drone_bridge.ros.calibration_files import read_camera_info
from drone_bridge.ros.frames import DOWNWARD_OPTICAL_IN_BODY, OPTICAL_IN_BODY, DroneFrameNames
from drone_bridge.ros.images import Rgb8Image, pinhole_camera_info, set_data
from drone_bridge.ros.jpeg_images import RGB8_AS_JPEG
from drone_bridge.ros.parameters import ParameterDeclaration
from drone_bridge.ros.qos import newest
from drone_bridge.ros.topics import Topic
from drone_bridge.ros.transforms import transform
from drone_bridge.vision.ar_drone_cameras import CAMERAS, DOWN, FRONT, Camera

#: Parameter with the calibration file, by camera.
CALIBRATION_PARAMETERS = {
    camera: ParameterDeclaration(
        f"{camera.name}_camera_info",
        "",
        f"{place}'s calibration file in the format of camera_calibration, for {camera.width} x {camera.height} pixels. "
        f"If empty, camera_info is an ideal pinhole with {camera.diagonal:g} degrees from corner to corner.",
    )
    for camera, place in ((FRONT, "The front camera"), (DOWN, "The downward camera"))
}


@dataclass(frozen=True, slots=True)
class CameraPicture:
    """Decoded picture.

    Attributes:
        camera: its camera, by the size.
        rgb8: height x width x 3 bytes.
        jpeg: the picture as JPEG, or None.
    """

    camera: Camera
    rgb8: "array[int]"
    jpeg: bytes | None = None


@dataclass(frozen=True, slots=True)
class VideoPacket:
    """Video packet as received."""

    data: bytes


def optical_frame(names: DroneFrameNames, camera: Camera) -> str:
    """Return the camera's optical frame."""
    return f"{names.prefix}{camera.name}_camera_optical_frame"


def camera_transforms(names: DroneFrameNames) -> list[TransformStamped]:
    """Return the transform from base_link to each camera's optical frame. Positions in the hull are ignored."""
    turns = {FRONT: OPTICAL_IN_BODY, DOWN: DOWNWARD_OPTICAL_IN_BODY}
    return [transform(names.base_link, optical_frame(names, each), rotation=turns[each]) for each in CAMERAS]


class CameraTranslation:
    """Converts pictures to messages, which are created once per camera, and valid until the next call."""

    def __init__(self, names: DroneFrameNames, calibrations: Mapping[Camera, str]) -> None:
        """`calibrations` has the paths of calibration files, empty for none. Raises ValueError for an invalid file."""
        frames = {camera: optical_frame(names, camera) for camera in CAMERAS}
        self._images = {camera: Rgb8Image(camera.width, camera.height, frame) for camera, frame in frames.items()}
        self._compressed = {camera: CompressedImage(format=RGB8_AS_JPEG) for camera in CAMERAS}
        self._infos = {
            camera: camera_info(camera, frame, calibrations.get(camera, "")) for camera, frame in frames.items()
        }
        for camera, message in self._compressed.items():
            message.header.frame_id = frames[camera]

    def image(self, picture: CameraPicture, stamp: Time) -> Image:
        return self._images[picture.camera].filled(picture.rgb8, stamp)

    def compressed_image(self, picture: CameraPicture, stamp: Time) -> CompressedImage | None:
        """Return the JPEG, if there is one."""
        if picture.jpeg is None:
            return None
        message = self._compressed[picture.camera]
        message.header.stamp = stamp
        set_data(message, picture.jpeg)
        return message

    def camera_info(self, picture: CameraPicture, stamp: Time) -> CameraInfo:
        info = self._infos[picture.camera]
        info.header.stamp = stamp
        return info

    def packet(self, packet: VideoPacket, _: Time) -> UInt8MultiArray:
        message = UInt8MultiArray()
        # Bypasses the property, which checks each element on some distributions.
        message._data = array("B", packet.data)
        return message


def camera_info(camera: Camera, frame_id: str, calibration: str) -> CameraInfo:
    """Return the CameraInfo of a calibration file, or of the data sheet for an empty path. Raises ValueError."""
    if not calibration:
        focal = camera.focal_length
        return pinhole_camera_info(camera.width, camera.height, focal_x=focal, focal_y=focal, frame_id=frame_id)
    info = read_camera_info(calibration)
    if (info.width, info.height) != (camera.width, camera.height):
        raise ValueError(
            f"{calibration} is of {info.width} x {info.height} pixels; the {camera.name} camera has {camera.width} x "
            f"{camera.height}."
        )
    info.header.frame_id = frame_id
    return info


CAMERA_INFO, COMPRESSED, RAW = "camera_info", "image_raw/compressed", "image_raw"

#: In order of publication: the small message first.
PICTURE_ROWS = (
    Topic(
        CAMERA_INFO,
        CameraInfo,
        of=CameraPicture,
        to_ros=CameraTranslation.camera_info,
        qos=newest,
        meaning="calibration file, or an ideal pinhole with the data sheet's field of view",
    ),
    Topic(
        COMPRESSED,
        CompressedImage,
        of=CameraPicture,
        to_ros=CameraTranslation.compressed_image,
        qos=newest,
        meaning="image as JPEG, only for subscribers",
    ),
    Topic(
        RAW,
        Image,
        of=CameraPicture,
        to_ros=CameraTranslation.image,
        qos=newest,
        meaning="decoded video, rgb8, only for subscribers: 320 x 240 pixels of the front camera, "
        "176 x 144 of the downward one",
    ),
)
