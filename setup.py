# SPDX-License-Identifier: Apache-2.0
"""Install drone_bridge with pip: protocols, links and emulators anywhere, and with [ros] the nodes as well.

package.xml is the one place for name, version, licence and keywords, setup.cfg for executables and extras,
env/requirements.txt for the versions that were tried together. The nodes need drone_bridge.msg too: drone_bridge_msgs,
or colcon's build.
"""

import runpy
from configparser import ConfigParser
from pathlib import Path
from xml.etree import ElementTree

from setuptools import find_packages, setup

package = ElementTree.parse(Path(__file__).with_name("package.xml")).getroot()


def text(tag: str) -> str:
    """Return the text of a child of <package>, which must be there."""
    value = package.findtext(tag)
    if not value:
        raise ValueError(f"package.xml has no <{tag}>.")
    return value


def pinned(*sections: str) -> list[str]:
    """Return the requirements below these headings of env/requirements.txt."""
    parts = Path("env/requirements.txt").read_text().split("\n\n")
    return [line for part in parts if part.startswith(sections) for line in part.splitlines()[1:]]


def extras() -> dict[str, list[str]]:
    """Return the extras of setup.cfg, which setuptools ignores beside those that are given here."""
    config = ConfigParser()
    config.read("setup.cfg")
    return {name: value.split() for name, value in config["options.extras_require"].items()}


def data_files() -> list[tuple[str, list[str]]]:
    """Return what belongs into the environment beside the modules, each folder with its files, as ament has it."""
    name = text("name")
    written = Path("build", "executables")  # from setup.cfg: pip's own scripts would all be on the PATH
    runpy.run_path("cmake/write_executables.py")["main"](Path("setup.cfg"), written, is_relative=True)
    marker = Path("build", name)
    marker.touch()
    files = {
        f"lib/{name}": sorted(written.iterdir()),
        f"share/{name}": [Path("package.xml")],
        f"share/{name}/web": sorted(Path("web/dist").glob("*")),
        "share/ament_index/resource_index/packages": [marker],
    }
    for top in ("config", "launch", "rviz", "urdf"):
        for path in sorted(Path(top).rglob("*.*")):
            files.setdefault(f"share/{name}/{path.parent}", []).append(path)
    for path in sorted(Path("test/conformance").rglob("*.[cp]*")):  # the tests of `drone-bridge check`
        if path.suffix != ".pyc":
            files.setdefault(f"share/{name}/{path.parent.relative_to('test')}", []).append(path)
    return [(folder, [str(path) for path in paths]) for folder, paths in files.items()]


setup(
    name=text("name"),
    version=text("version"),
    description=text("description"),
    license=text("license"),
    keywords=[tag.text or "" for tag in package.iter("tag")],
    packages=find_packages(include=["drone_bridge", "drone_bridge.*"]),
    package_data={"drone_bridge": ["py.typed"]},
    python_requires=">=3.10",
    install_requires=["numpy"],
    extras_require={
        **extras(),
        "ros": [
            *(f"{name}=={text('version')}" for name in ("drone_bridge_msgs", "drone_bridge_tf2_msgs")),
            *pinned("# ROS 2 Jazzy", "# what the nodes use"),
        ],
    },
    data_files=data_files(),
)
