# SPDX-License-Identifier: Apache-2.0
"""Environment variables of ROS and Fast DDS: range of discovery, profiles, checks of the installation. No ROS.

`env/activate` sets them for a shell. Executables that are started without such a shell set them themselves.
"""

import os
import pwd
import re
import stat
import sys
import tempfile
from collections.abc import Mapping, MutableMapping
from importlib.util import find_spec
from pathlib import Path

from drone_bridge.session.obstacles import Obstacle

PROFILE = "FASTDDS_DEFAULT_PROFILES_FILE"
#: Name of the variable in Fast DDS 2 (Humble, Jazzy), which ignores the other name. Fast DDS 3 warns about this one.
PROFILE_OF_2 = "FASTRTPS_DEFAULT_PROFILES_FILE"
RANGE = "ROS_AUTOMATIC_DISCOVERY_RANGE"
#: Largest domain whose ports exist.
MAX_DOMAIN = 232

#: Set by the bootstrapper of the ROS wheels once the library path is complete.
_BOOTSTRAPPED = "_ROS_WHEELS_BOOTSTRAP_COMPLETE"


def complete_environment(*, may_start_again: bool = True) -> None:
    """Set the variables of `env/activate` unless they are set. Call this before rclpy is imported.

    A program of ours re-executes itself if the order of its libraries is unsafe. A user's script or notebook must not,
    and uses them as they are.

    Without these variables, Fast DDS would open its sockets to the whole network. An existing ROS environment, of an
    activated shell or an installation, is left unchanged. Raises SystemExit, with a sentence, if it belongs to another
    ROS than the one for which the messages were compiled, or names a middleware that is not installed or no domain.
    """
    if problem := foreign_ros() or missing_middleware() or domain_problem():
        raise SystemExit(f"drone_bridge: {problem}")
    name_home()
    if may_start_again:
        _put_libraries_first()
    name_profile_for_fast_dds_2(os.environ)
    config = Path(sys.prefix, "share", "drone_bridge", "config")
    if "AMENT_PREFIX_PATH" not in os.environ and config.is_dir():
        os.environ["AMENT_PREFIX_PATH"] = sys.prefix
        reach = os.environ.get(RANGE)
        if os.environ.get(PROFILE):
            os.environ.setdefault(RANGE, "LOCALHOST")
        else:
            os.environ[PROFILE] = str(config / ("fastdds.xml" if reach == "SUBNET" else "fastdds_loopback.xml"))
            if reach not in ("SUBNET", "OFF"):
                os.environ[RANGE] = "SYSTEM_DEFAULT"  # LOCALHOST would add sockets on all interfaces
            name_profile_for_fast_dds_2(os.environ)


def ask_for_all_topics() -> None:
    """Make this process a super client of the discovery server, if there is one. Call this before rclpy.init.

    A server announces only a client's own topics to the client, but all topics to a super client. A value of
    ROS_SUPER_CLIENT takes precedence.
    """
    if os.environ.get("ROS_DISCOVERY_SERVER"):
        os.environ.setdefault("ROS_SUPER_CLIENT", "TRUE")


def name_home() -> None:
    """Set HOME to a temporary folder of the user's own, if the user has no entry in passwd and HOME can't be written.

    This is so in containers that run as an arbitrary user, for whom Docker sets HOME to /. Without a home folder,
    Python finds no place for recordings and persistent files.
    """
    if os.access(os.environ.get("HOME", ""), os.W_OK) or _is_in_passwd():
        return
    folder = Path(tempfile.gettempdir(), f"drone_bridge_{os.getuid()}")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()  # a link may be somebody else's
        is_ours = status.st_uid == os.getuid() and stat.S_ISDIR(status.st_mode)
    except OSError:
        is_ours = False
    os.environ["HOME"] = home = str(folder) if is_ours else tempfile.mkdtemp(prefix="drone_bridge_")
    print(
        f"drone_bridge: This user has no home folder. Its files are in {home}, unless HOME is another folder.",
        file=sys.stderr,
    )


def ros_home() -> Path:
    """Return ROS's folder for logs and holds: $ROS_HOME, by default ~/.ros.

    `~` is the home folder, and a relative path is below it: all programs of a user find the same folder.
    """
    return Path(os.path.expanduser("~"), os.path.expanduser(os.environ.get("ROS_HOME") or ".ros"))


def _is_in_passwd() -> bool:
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        return False
    return True


def domain_of(variables: Mapping[str, str]) -> int:
    """Return the ROS domain of an environment; 0 also if its number is malformed, with which no node starts."""
    domain = variables.get("ROS_DOMAIN_ID", "").strip()
    return int(domain) if domain.isascii() and domain.isdigit() else 0


def domain_problem() -> str | None:
    """Return why ROS_DOMAIN_ID is refused, or None."""
    domain = os.environ.get("ROS_DOMAIN_ID", "").strip() or "0"
    if domain.isascii() and domain.isdigit() and int(domain) <= MAX_DOMAIN:
        return None
    return f"ROS_DOMAIN_ID is '{domain}' but must be a whole number from 0 to {MAX_DOMAIN}."


def discovery_problem() -> str:
    """Return why nodes find no others, as a sentence, or "". It is the reason only if none was found."""
    server = "others only through that server, which is not reached"
    for variable, found, values in (("ROS_DISCOVERY_SERVER", server, None), (RANGE, "no others", ("OFF",))):
        if (value := os.environ.get(variable)) and (not values or value in values):
            return Obstacle.DISCOVERY.sentence(variable=variable, value=value, found=found)
    return ""


def is_on_this_machine_only() -> bool:
    """Return whether the profile of Fast DDS keeps topics on this machine."""
    profile = Path(os.environ.get(PROFILE) or os.devnull)
    return profile.is_file() and "127.0.0.1" in profile.read_text(errors="replace")


def security_problem() -> str | None:
    """Return a sentence if security is requested but not enforced, so that nodes may be unsecured; else None."""
    if os.environ.get("ROS_SECURITY_ENABLE") != "true" or os.environ.get("ROS_SECURITY_STRATEGY") == "Enforce":
        return None
    return (
        "ROS_SECURITY_ENABLE is true without ROS_SECURITY_STRATEGY=Enforce: nodes without keys start unsecured, and "
        "accept commands from anyone."
    )


def check_message_fields() -> None:
    """Make messages refuse values of a wrong type, by AssertionError. Call this before any message is imported.

    Without it, since Jazzy, such a value is sent as the memory of its Python object, or ends the process.
    """
    os.environ["ROS_PYTHON_CHECK_FIELDS"] = "1"


def foreign_ros() -> str | None:
    """Return why this Python would not find the ROS for which its messages were compiled, or None."""
    prefix = Path(sys.prefix)
    if not (prefix / "share/ament_index/resource_index/rosidl_interfaces/drone_bridge").exists():
        return _misplaced(prefix)
    remedy = "Use a shell in which no other ROS 2 was set up."
    rclpy = find_spec("rclpy")
    if rclpy is not None and rclpy.origin and not Path(rclpy.origin).is_relative_to(prefix):
        return f"its messages are compiled for the ROS 2 in {prefix}, and Python finds {rclpy.origin} first. {remedy}"
    listed = os.environ.get("AMENT_PREFIX_PATH", str(prefix)).split(os.pathsep)
    markers = (Path(each, "share/ament_index/resource_index/packages/rclpy") for each in listed)
    others = [each for each in markers if each.exists() and not each.resolve().is_relative_to(prefix.resolve())]
    if others and str(prefix) not in listed:
        other = others[0].parents[4]
        return f"its messages are compiled for the ROS 2 in {prefix}, and AMENT_PREFIX_PATH has {other}. {remedy}"
    return None


def missing_middleware() -> str | None:
    """Return an error if RMW_IMPLEMENTATION is not installed, for which rclpy would end the process; else None."""
    name = os.environ.get("RMW_IMPLEMENTATION")
    prefixes = [*os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep), sys.prefix]
    libraries = (
        file.name[3:-3] for prefix in prefixes if prefix for file in Path(prefix, "lib").glob("librmw_*_cpp.so")
    )
    # Shared libraries and type supports have similar names.
    installed = {each for each in libraries if "__" not in each and "_shared_" not in each}
    if not name or not installed or name in installed:
        return None
    return (
        f"RMW_IMPLEMENTATION is {name}, which is not installed here; there is {' and '.join(sorted(installed))}. "
        "Unset the variable, or install that middleware."
    )


def _misplaced(prefix: Path) -> str | None:
    """Return why a package outside of this Python's prefix would not find ROS, or None."""
    here = Path(__file__)
    if here.is_relative_to(prefix) or "AMENT_PREFIX_PATH" in os.environ or find_spec("rclpy") is None:
        return None  # no ROS, or a ROS installation with its own environment
    return (
        f"it is installed in {here.parents[1]}, outside of the environment of this Python ({prefix}), where the ROS 2 "
        "wheels are not found. Install it in a virtual environment: python3 -m venv, without --user or --target."
    )


def _put_libraries_first() -> None:
    """Re-execute the process with the ROS wheels' libraries first. Their bootstrapper leaves the order to chance.

    This works only before any of them is loaded. Importing cv2 also prepends a folder of its own.
    """
    if not os.environ.get(_BOOTSTRAPPED) or "rclpy" in sys.modules:
        return
    prefix = Path(sys.prefix)
    ours = [str(prefix / "lib"), *sorted(map(str, prefix.glob("lib/python3.*/site-packages/ros_*.libs")))]
    present = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    if set(ours) <= set(present) and set(present[: len(ours)]) != set(ours):
        others = [folder for folder in present if folder not in ours]
        os.environ["LD_LIBRARY_PATH"] = os.pathsep.join([*ours, *others])
        os.execv(sys.executable, sys.orig_argv)


def has_fast_dds_2() -> bool:
    """Return whether this environment has Fast DDS 2, by its library."""
    prefixes = os.environ.get("AMENT_PREFIX_PATH", sys.prefix).split(os.pathsep)
    return any(Path(prefix, "lib", "libfastrtps.so").exists() for prefix in prefixes)


def name_profile_for_fast_dds_2(variables: MutableMapping[str, str]) -> None:
    """Set both variables to the same profile if Fast DDS 2 is used. A user's own profile takes precedence.

    With ROS_LOCALHOST_ONLY the profile is not set, since Humble would add its transports, which reach other machines.
    Without the profile, large images arrive slowly or get lost.
    """
    if not has_fast_dds_2():
        return
    its = variables.get(PROFILE_OF_2, "")
    if its and not re.search(r"/config/fastdds(_loopback)?\.xml$", its):
        variables[PROFILE] = its
    elif variables.get(PROFILE) and variables.get("ROS_LOCALHOST_ONLY") != "1":
        variables[PROFILE_OF_2] = variables[PROFILE]
    else:
        variables.pop(PROFILE_OF_2, None)


def profile_number(tag: str) -> int | None:
    """Return a number from the Fast DDS profile in use, or None without a profile or number."""
    try:
        text = Path(os.environ.get(PROFILE, "")).read_text()
    except OSError:
        return None
    found = re.search(rf"<{tag}>\s*(\d+)\s*</{tag}>", text)
    return int(found[1]) if found else None
