# SPDX-License-Identifier: Apache-2.0
"""`drone-bridge picture`: save the next image of a camera."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rclpy.node import Node

from drone_bridge.tools.command_parser import CommandParser
from drone_bridge.tools.shell.node import ANSWER_S, CommandFailedError, discovered, run, spin_until
from drone_bridge.tools.shell.topic import published, subscribe
from drone_bridge.vision.jpegs import bgr_of_jpeg, opencv
from drone_bridge.vision.raw_images import rgb_of_raw

_TYPES = {"sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage"}
_SUFFIXES = ".jpg", ".jpeg", ".png"


def main(argv: Sequence[str]) -> int:
    """Run the command. Returns the exit status."""
    parser = CommandParser(prog="drone-bridge picture", description="Save the next image of a camera.")
    parser.add_argument("file", type=Path, help="such as pad.jpg or pad.png")
    parser.add_argument("topic", nargs="?", help="of the images; by default that of the only camera")
    parser.set_defaults(type=None)
    words = parser.parse_args(argv)
    if words.file.suffix.lower() not in _SUFFIXES:
        parser.error(f"the file is {words.file}, and must end with {' or '.join(_SUFFIXES)}")
    return run("picture", None, lambda node: _save(node, words))


def _save(node: Node, words: Any) -> int:
    if not words.topic:
        found = {name for name, types in discovered(node, lambda: published(node)) if _TYPES & {*types}}
        cameras = [each for each in sorted(found) if not each.endswith("/h264") and f"{each}/compressed" not in found]
        if len(cameras) != 1:
            raise CommandFailedError(f"Name the topic of a camera: there are {', '.join(cameras) or 'none'}.")
        (words.topic,) = cameras
    images: list[Any] = []
    subscribe(node, words, images.append)
    if not spin_until(node, lambda: images, ANSWER_S):
        raise CommandFailedError(f"No image came on {words.topic} in {ANSWER_S:g} s: `drone-bridge doctor` says why.")
    try:
        words.file.write_bytes(_encoded(images[0], words.file.suffix.lower()))
    except (OSError, ValueError) as error:
        raise CommandFailedError(f"The image on {words.topic} is not saved as {words.file}: {error}") from None
    print(f"{words.file}: an image on {words.topic}")
    return 0


def _encoded(image: Any, suffix: str) -> bytes:
    """Return an image as a file. A JPEG stays as it is. Raises ImageError."""
    if not hasattr(image, "format"):
        pixels = rgb_of_raw(image.data, image.encoding, image.width, image.height, image.step)[:, :, ::-1]
    elif "jpeg" in image.format and suffix != ".png":
        return bytes(image.data)
    else:
        pixels = bgr_of_jpeg(bytes(image.data))
    return bytes(opencv().imencode(suffix, pixels)[1])
