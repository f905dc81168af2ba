# SPDX-License-Identifier: Apache-2.0
"""Values as YAML on a command line, with the numbers of YAML 1.2: 1e-1 is a number, for PyYAML it is a text."""

import re
from typing import Any

import yaml

from drone_bridge.tools.shell.node import CommandFailedError


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Loader of plain values that also parses an exponent without a point or a sign."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)[eE][-+]?[0-9]+$"),
    list("-+.0123456789"),
)


def parse(text: str) -> Any:
    """Return the value of a YAML text. Raises CommandFailedError."""
    try:
        return yaml.load(text, _Loader)
    except (yaml.YAMLError, ValueError) as error:
        raise CommandFailedError(f"'{text}' is not YAML: {' '.join(str(error).split())}.") from None
