# SPDX-License-Identifier: Apache-2.0
"""Files of the built page."""

from pathlib import Path
from urllib.parse import urlsplit

from ament_index_python.packages import get_package_share_directory

TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
MAX_FILE_BYTES = 16 * 2**20
BUILD_COMMAND = "cd web && npm ci && npm run build"
NOT_BUILT = f"""<!doctype html>
<meta charset="utf-8"><title>drone_bridge</title>
<p>The page is not built. In the sources of drone_bridge, run <code>{BUILD_COMMAND}</code>, then build the package again
(without ROS, <code>make setup</code> does both). Until then, you can connect Foxglove and Lichtblick to this address,
with <code>ws://</code> instead of <code>http://</code>.
"""


def folder() -> Path:
    """Return the folder of the installed page, if it was built."""
    return Path(get_package_share_directory("drone_bridge"), "web")


def is_built() -> bool:
    """Return whether the page was built."""
    return (folder() / "index.html").is_file()


def find(path: str) -> tuple[str, bytes] | None:
    """Return content type and content of a requested file, or None.

    Only known files are served. A path is never interpreted by the file system.
    """
    try:
        name = urlsplit(path).path.lstrip("/") or "index.html"
    except ValueError:  # "//[" is an invalid address
        return None
    if name == "index.html" and not is_built():
        return TYPES[".html"], NOT_BUILT.encode()
    files = {file.relative_to(folder()).as_posix(): file for file in folder().rglob("*") if file.is_file()}
    file = files.get(name)
    if file is None or file.suffix not in TYPES or file.stat().st_size > MAX_FILE_BYTES:
        return None
    return TYPES[file.suffix], file.read_bytes()
