# SPDX-License-Identifier: Apache-2.0
"""Calibration files of cameras: output of camera_calibration, and invalid files."""

import pytest
import yaml

from drone_bridge.ros.topics.calibration_files import read_camera_info

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
