# SPDX-License-Identifier: Apache-2.0
"""Create dist/: the wheels of the package and of its messages, and the source distribution: make wheels [TRY=1].

With --try, install them into a separate virtual environment, and fly and land there, like a user with pip only: without
an activated shell, compiler, Node or clone on the paths.
"""

import shutil
import subprocess
import sys

import make_environment as environment
from make_environment import PIP, PROGRESS, ROOT, VENV, run, say

DIST = ROOT / "dist"
#: Oldest C library that the messages support. auditwheel refuses libraries that need a newer one.
PLATFORM = "manylinux_2_28_x86_64"
TRIED = ROOT / "build" / "tried_wheels"
PYTHON = str(VENV / "bin" / "python")


def repair_messages() -> None:
    """Empty dist/, and write the wheels of the messages into it."""
    shutil.rmtree(DIST, ignore_errors=True)
    # They need only libraries of the system, of the ROS wheels and of the message wheels themselves.
    command = [PYTHON, "-m", "auditwheel", "repair", "--plat", PLATFORM, "--exclude", "lib*", "--wheel-dir", str(DIST)]
    wheels = environment.install_messages()
    with PROGRESS.step("checking the wheels of the messages"):
        for wheel in wheels:
            run([*command, str(wheel)], f"Its libraries must run on {PLATFORM}.")


def build_package() -> None:
    """Build the source distribution, and from it the wheel, which shows that it is complete."""
    with PROGRESS.step("building the package's wheel"):
        run([PYTHON, "-m", "build", "--no-isolation", "--outdir", str(DIST), str(ROOT)], "Check that setup.py runs.")


def try_wheels() -> None:
    """Install the wheels of dist/, and fly."""
    shutil.rmtree(TRIED, ignore_errors=True)
    subprocess.run([environment.base_python(), "-m", "venv", str(TRIED)], check=True)
    python = TRIED / "bin" / "python"
    say("installing drone_bridge[ros] from dist/ (about a minute)")
    run(
        [str(python), *PIP[1:], "install", "--find-links", str(DIST), "drone_bridge[ros]"],
        "Check that a package index is reachable.",
    )
    bare = {"PATH": "/usr/bin:/bin", "HOME": str(TRIED), "LANG": "C.UTF-8"}
    for words in (["doctor"], ["demo", "landing"]):
        say(f"drone-bridge {' '.join(words)}")
        subprocess.run([str(TRIED / "bin" / "drone-bridge"), *words], cwd=TRIED, env=bare, check=True, timeout=600)


def main() -> int:
    """Create the wheels, and with --try test them."""
    try:
        if environment.DISTRIBUTION != "jazzy":
            raise environment.StepError("The extra [ros] pins packages of Jazzy: build the wheels without ROS=kilted.")
        PROGRESS.total = 2
        PROGRESS.wait_for(repair_messages)
        PROGRESS.wait_for(build_package)
        for path in sorted(DIST.iterdir()):
            say(f"{path.relative_to(ROOT)}, {path.stat().st_size / 1e6:.2f} MB")
        if sys.argv[1:] == ["--try"]:
            try_wheels()
        else:
            say(f"to install them: pip install --find-links {DIST} 'drone_bridge[ros]'")
    except (environment.StepError, subprocess.SubprocessError, OSError) as error:
        print(f"wheels: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
