# SPDX-License-Identifier: Apache-2.0
"""The two cameras of an AR.Drone. The wire does not name them.

Those of an AR.Drone 1 are distinguished by picture size. An AR.Drone 2 sends both in one size, so that the setting of
the camera tells.
"""

from dataclasses import replace

from drone_bridge.vision.picture_camera import PictureCamera

#: Decodes, checks and encodes pictures of an AR.Drone 1, in the pictures' child process.
UVLC_WORK = "drone_bridge.ar_drone.uvlc_work"
#: Forward camera in the nose.
FRONT = PictureCamera("front", 320, 240, 93.0)
#: Downward camera in the belly.
DOWN = PictureCamera("down", 176, 144, 64.0, is_down=True)
CAMERAS = (FRONT, DOWN)
#: The same of an AR.Drone 2, as it sends them by default.
FRONT_2 = PictureCamera("front", 640, 360, 92.0)
DOWN_2 = PictureCamera("down", 640, 360, 64.0, is_down=True)


def camera_of(name: str, width: int, height: int) -> PictureCamera:
    """Return the camera of a picture in any size; without a name that of an AR.Drone 1, by its size."""
    if not name:
        return next(each for each in CAMERAS if each.width == width)
    return replace(FRONT_2 if name == FRONT_2.name else DOWN_2, width=width, height=height)
