# SPDX-License-Identifier: Apache-2.0
"""Calibration files of cameras: output of camera_calibration, invalid files, and the service set_camera_info."""

from types import SimpleNamespace

import pytest
import yaml
from builtin_interfaces.msg import Time
from sensor_msgs.msg import CameraInfo
from sensor_msgs.srv import SetCameraInfo

from drone_bridge.pictures.camera import CameraTopics
from drone_bridge.pictures.topics import CameraPicture, CameraTranslation
from drone_bridge.ros.topics.calibration_files import read_camera_info
from drone_bridge.ros.topics.frames import DroneFrameNames
from drone_bridge.vision.picture_camera import PictureCamera

CONTENT = {
    "image_width": 320,
    "image_height": 240,
    "camera_name": "front",
    "camera_matrix": {"rows": 3, "cols": 3, "data": [190.5, 0, 160.25, 0, 191.5, 119.75, 0, 0, 1]},
    "distortion_model": "plumb_bob",
    "distortion_coefficients": {"rows": 1, "cols": 5, "data": [-0.5, 0.3, 0.001, -0.002, 0]},
    "rectification_matrix": {"rows": 3, "cols": 3, "data": [1, 0, 0, 0, 1, 0, 0, 0, 1]},
    "projection_matrix": {"rows": 3, "cols": 4, "data": [165, 0, 161, 0, 0, 180, 119, 0, 0, 0, 1, 0]},
}


def written(path, content):
    path.write_text(yaml.safe_dump(content))
    return str(path)


def test_all_of_a_file_is_read(tmp_path):
    info = read_camera_info("file://" + written(tmp_path / "camera.yaml", CONTENT))
    assert info == read_camera_info(str(tmp_path / "camera.yaml"))
    assert (info.width, info.height, info.distortion_model) == (320, 240, "plumb_bob")
    assert list(info.k) == CONTENT["camera_matrix"]["data"]
    assert list(info.d) == CONTENT["distortion_coefficients"]["data"]
    assert list(info.r) == CONTENT["rectification_matrix"]["data"]
    assert list(info.p) == CONTENT["projection_matrix"]["data"]


@pytest.mark.parametrize(
    "change",
    [
        {"image_width": "wide"},
        {"image_width": -1},
        {"camera_matrix": {"data": [1, 2, 3]}},
        {"camera_matrix": {"data": ["a"] * 9}},
        {"camera_matrix": [1] * 9},
        {"projection_matrix": {"data": [1.0] * 10_000}},
        {"distortion_model": 3},
    ],
    ids=str,
)
def test_other_content_is_refused(tmp_path, change):
    with pytest.raises(ValueError, match=r"camera\.yaml"):
        read_camera_info(written(tmp_path / "camera.yaml", CONTENT | change))


@pytest.mark.parametrize("name", CONTENT.keys() - {"camera_name"})
def test_a_file_that_lacks_something_is_refused_by_its_name(tmp_path, name):
    content = {key: value for key, value in CONTENT.items() if key != name}
    with pytest.raises(ValueError, match=name):
        read_camera_info(written(tmp_path / "camera.yaml", content))


@pytest.mark.parametrize("text", ["", "- 1", "{", "\x00", "a: !!python/object:os.system {}"])
def test_a_file_of_something_else_is_refused(tmp_path, text):
    path = tmp_path / "camera.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"camera\.yaml"):
        read_camera_info(str(path))


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ValueError, match="can't be read"):
        read_camera_info(str(tmp_path / "none.yaml"))


FRONT = PictureCamera("front", 320, 240, 90.0)


def calibrated(translation, **changes):
    """Call the service as camera_calibration does: with what its calibrator returns by `as_message`."""
    matrices = {name: CONTENT[f"{name}_matrix"]["data"] for name in ("camera", "rectification", "projection")}
    k, r, p = (list(map(float, each)) for each in matrices.values())
    fields = {"width": 320, "height": 240, "distortion_model": "plumb_bob", "k": k, "r": r, "p": p}
    info = CameraInfo(**fields | {"d": list(map(float, CONTENT["distortion_coefficients"]["data"]))} | changes)
    camera = SimpleNamespace(_translation=translation)
    return CameraTopics._calibrate(camera, SetCameraInfo.Request(camera_info=info), SetCameraInfo.Response())


@pytest.mark.parametrize("is_named", [True, False])
def test_a_calibration_is_stored_in_the_yaml_of_camera_calibration_and_used(tmp_path, monkeypatch, is_named):
    monkeypatch.setenv("ROS_HOME", str(tmp_path))
    path = written(tmp_path / "mine.yaml", CONTENT | {"camera_name": "old"}) if is_named else ""
    translation = CameraTranslation(DroneFrameNames("d1/"), {"front": path}, [FRONT])
    shown = lambda: translation.camera_info(CameraPicture(FRONT, None), Time())  # noqa: E731
    shown()
    response = calibrated(translation, d=[-0.25, 0.0, 0.0, 0.0, 0.0])
    assert response.success, response.status_message
    stored = path or str(tmp_path / "camera_info" / "d1.front_camera_optical_frame.yaml")
    assert stored in response.status_message
    content = {**CONTENT, "distortion_coefficients": {"rows": 1, "cols": 5, "data": [-0.25, 0, 0, 0, 0]}}
    with open(stored) as file:
        assert yaml.safe_load(file) == content
    assert (shown().d[0], shown().header.frame_id) == (-0.25, "d1/front_camera_optical_frame")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [({"width": 640}, "640 x 240"), ({"k": [0.0] * 9}, "empty"), ({"d": [float("nan")]}, "finite"), ({}, "written")],
)
def test_a_calibration_that_can_t_be_stored_changes_nothing(tmp_path, changes, sentence):
    path = written(tmp_path / "mine.yaml", CONTENT)
    translation = CameraTranslation(DroneFrameNames(), {"front": path}, [FRONT])
    assert "no picture" in calibrated(translation).status_message
    before = translation.camera_info(CameraPicture(FRONT, None), Time())
    if not changes:
        (tmp_path / ".mine.yaml.new").mkdir()
    response = calibrated(translation, **changes)
    assert (response.success, sentence in response.status_message) == (False, True), response.status_message
    assert translation.camera_info(CameraPicture(FRONT, None), Time()) is before
    assert read_camera_info(path).k[0] == 190.5
