# SPDX-License-Identifier: Apache-2.0
"""bloom creates Debian packages for each distribution, like the build farm. See test/rosdistro.yaml."""

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from repository import ROOT

KNOWN = yaml.safe_load((ROOT / "test" / "rosdistro.yaml").read_text())
SOURCES = ("package.xml", "CHANGELOG.rst", "LICENSE")  # which bloom reads
BLOOM = Path(sys.prefix, "bin", "bloom-generate")
pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.skipif(not BLOOM.exists(), reason="bloom is installed by make setup, and not by rosdep"),
]


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content))


@pytest.fixture(scope="module")
def farm(tmp_path_factory):
    """Environment of a machine that uses our table as the database of rosdep and rosdistro."""
    folder = tmp_path_factory.mktemp("farm")
    write(
        folder / "index-v4.yaml",
        {
            "type": "index",
            "version": 4,
            "distributions": {
                name: {
                    "distribution": [f"{name}.yaml"],
                    "distribution_status": "active",
                    "distribution_type": "ros2",
                    "python_version": 3,
                }
                for name in KNOWN["distributions"]
            },
        },
    )
    release = {"tags": {"release": "release/{package}/{version}"}, "url": "https://none.example/x.git"}
    for name, ubuntu in KNOWN["distributions"].items():
        released = {package: {"release": {**release, "version": "1.0.0-1"}} for package in KNOWN["released"]}
        platforms = {"ubuntu": [ubuntu]}
        content = {"release_platforms": platforms, "repositories": released, "type": "distribution", "version": 2}
        write(folder / f"{name}.yaml", content)
    write(folder / "keys.yaml", {key: {"ubuntu": [key]} for key in KNOWN["of_ubuntu"]})
    (folder / "lists").mkdir()
    (folder / "lists" / "20-ours.list").write_text(f"yaml file://{folder}/keys.yaml\n")
    environment = os.environ | {
        "HOME": str(folder),
        "ROS_HOME": str(folder / "ros"),
        "ROSDEP_SOURCE_PATH": str(folder / "lists"),
        "ROSDISTRO_INDEX_URL": f"file://{folder}/index-v4.yaml",
        "PATH": os.pathsep.join([str(BLOOM.parent), os.environ["PATH"]]),
    }
    subprocess.run([BLOOM.parent / "rosdep", "update"], env=environment, check=True, capture_output=True, timeout=120)
    return environment


def generate(farm, folder, distribution):
    command = [BLOOM, "rosdebian", "--ros-distro", distribution, "--os-name", "ubuntu"]
    command += ["--os-version", KNOWN["distributions"][distribution]]
    return subprocess.run(
        command,
        cwd=folder,
        env=farm,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def sources(tmp_path):
    for name in SOURCES:
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    return tmp_path


@pytest.mark.parametrize("distribution", KNOWN["distributions"])
def test_a_debian_package_depends_on_what_package_xml_names(farm, sources, distribution):
    done = generate(farm, sources, distribution)
    assert done.returncode == 0, done.stdout + done.stderr
    control = (sources / "debian" / "control").read_text()
    needed = set(re.search(r"^Depends: (.*)$", control, re.M)[1].split(", "))
    package = ElementTree.parse(sources / "package.xml").getroot()
    keys = {each.text for tag in ("depend", "exec_depend") for each in package.iter(tag)}
    named = {key if key in KNOWN["of_ubuntu"] else f"ros-{distribution}-{key.replace('_', '-')}" for key in keys}
    assert needed == named | {"${shlibs:Depends}", "${misc:Depends}"}


def test_an_unknown_key_is_refused(farm, sources):
    package = sources / "package.xml"
    package.write_text(package.read_text().replace("<exec_depend>rclpy<", "<exec_depend>foxglove-sdk<"))
    assert generate(farm, sources, "jazzy").returncode != 0
