# SPDX-License-Identifier: Apache-2.0
"""Install drone_bridge with pip: protocols, links and emulators, where ROS may be absent.

package.xml is the one place for name, version and licence; executables are in setup.cfg.
The nodes need drone_bridge.msg as well, which colcon builds.
"""

from pathlib import Path
from xml.etree import ElementTree

from setuptools import find_packages, setup

package = ElementTree.parse(Path(__file__).with_name("package.xml")).getroot()


def text(tag: str) -> str:
    """Return the text of a child of <package>, which has to be there."""
    value = package.findtext(tag)
    if not value:
        raise ValueError(f"package.xml has no <{tag}>.")
    return value


def shared(folder: str) -> tuple[str, list[str]]:
    """Return the data_files entry for one folder, below share/ as ament has it."""
    return f"share/{text('name')}/{folder}", [str(path) for path in sorted(Path(folder).glob("*.*"))]


setup(
    name=text("name"),
    version=text("version"),
    description=text("description"),
    license=text("license"),
    packages=find_packages(include=["drone_bridge", "drone_bridge.*"]),
    package_data={"drone_bridge": ["py.typed"]},
    python_requires=">=3.10",
    install_requires=["numpy"],
    extras_require={
        "landing": ["opencv-python-headless"],  # for the emulator, which draws what a camera sees
        "fast": ["orjson>=3.9.15", "pybase64"],  # without them, telemetry is read by Python's own modules
        "wire-log": ["mcap>=1.5", "lz4", "dpkt"],  # to write wire logs, and to read captures of tcpdump
        "bags": ["rosbags", "mcap>=1.5", "rich", "plotly"],  # for the recorder, `drone-bridge info` and `report`
    },
    data_files=[
        shared(folder)
        for folder in (
            "config",
            "config/fleets",
            "config/foxglove",
            "config/sros2",
            "config/systemd",
            "launch",
            "launch/parts",
            "rviz",
            "urdf",
        )
    ],
)
