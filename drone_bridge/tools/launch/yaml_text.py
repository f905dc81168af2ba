# SPDX-License-Identifier: Apache-2.0
"""YAML in launch files. Like rcl, it refuses aliases."""

from pathlib import Path
from typing import Any

import yaml

_DEEPEST = 20  # lists and maps inside one another


class RefusedYamlError(yaml.YAMLError):  # type: ignore[misc]  # PyYAML has no stubs
    """This is YAML, but not of a kind that is read here."""


def read(text: str) -> Any:
    """Return what YAML takes `text` for. Raises yaml.YAMLError, whatever is wrong with the text."""
    loader = _Loader(text)
    try:
        return loader.get_single_data()
    except ValueError as error:  # of the constructors: 2026-02-30 is not a date
        raise yaml.YAMLError(str(error)) from error
    finally:
        loader.dispose()


def refusal(path: Path | str, error: yaml.YAMLError) -> str:
    """Return the sentence about a file that is not YAML, with its line where that is known."""
    mark = getattr(error, "problem_mark", None)
    where = f"{path}:{mark.line + 1}" if mark else str(path)
    return f"{where}: this is not YAML: {getattr(error, 'problem', None) or error}"


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Refuses what a short text can make large or deep."""

    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise RefusedYamlError("aliases (*) are not supported")
        self._depth += 1
        if self._depth > _DEEPEST:
            raise RefusedYamlError(f"more than {_DEEPEST} lists and maps inside one another")
        node: yaml.Node | None = super().compose_node(parent, index)
        self._depth -= 1
        return node
