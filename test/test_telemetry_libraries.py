# SPDX-License-Identifier: Apache-2.0
"""Telemetry without orjson and pybase64: the same is taken and refused, and the same is sent."""

import json

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from drone_bridge.telemetry import codec

pytest.importorskip("pybase64", reason="rosdep has no key for it")

DOCUMENTS = [
    b"{}", b'{"a": 1, "b": [1.5, -0.0, 1e-400, null, true]}', b' \t{"a":"\\u00e4\\n"} ', '{"a": "ä"}',
    b'{"a": "\xc3\xa4"}',
    b"", b"{", b'{"a": NaN}', b'{"a": Infinity}', b'{"a": -Infinity}', b'{"a": 1e999}', b'{"a": ' + b"9" * 400 + b"}",
    b'{"a": 18446744073709551615}', b'{"a": 18446744073709551616}', b'{"a": -9223372036854775809}', b'{"a": 01}',
    b'{"a": "\\ud800"}', b'{"a": "\\ud83d\\ude00"}', b'{"a": "\xff"}', b"\xef\xbb\xbf{}", '\ufeff{}',
    "{}".encode("utf-16"),
    b'{"a": "\x01"}', b"[" * 100000, b'{"a":' * 5000 + b"1" + b"}" * 5000, b"{} {}", b"{'a': 1}", b'{"a": 1,}', b"nul",
    bytearray(b'{"a": 1}'), memoryview(b'{"a": [2]}'), b'{"a": 1, "a": 2}', b'{"a": "\x7f"}', b"1", b'"a"',
]  # fmt: skip


@pytest.fixture
def without(monkeypatch):
    monkeypatch.setattr(codec, "HAS_ORJSON", False)
    monkeypatch.setattr(codec, "HAS_PYBASE64", False)


def read(document, read_json):
    try:
        return repr(read_json(document))
    except json.JSONDecodeError:
        return "refused"


def test_the_fast_libraries_are_used_where_installed():
    assert codec.HAS_ORJSON
    assert codec.HAS_PYBASE64


@pytest.mark.parametrize("document", DOCUMENTS, ids=range(len(DOCUMENTS)))
def test_the_same_is_read(document):
    assert read(document, codec._from_json) == read(document, codec.from_json)


@given(st.binary(max_size=40) | st.text(max_size=40))
def test_any_text_is_read_or_refused_alike(document):
    assert read(document, codec._from_json) == read(document, codec.from_json)


@given(st.text(alphabet="Aa0+/=-_ \n", max_size=12))
@example("AAAA=")
@example("AAAA====")
@example("AA\n==\n")
def test_the_same_base64_is_read(text):
    def decoded(has_pybase64):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(codec, "HAS_PYBASE64", has_pybase64)
            try:
                return codec.from_base64(text)
            except ValueError:
                return None

    assert decoded(True) == decoded(False)


def test_the_same_is_sent(without):
    value = {"a": [1, 2.5, np.float64(0.1), np.int64(3), np.bool_(True)], "b": "ä", "c": None}
    assert codec.to_json(value) == codec.orjson.dumps(value, option=codec.orjson.OPT_SERIALIZE_NUMPY)
    assert codec.to_base64(b"\x00\xff") == codec.pybase64.b64encode_as_string(b"\x00\xff")
    with pytest.raises(ValueError, match="not JSON compliant"):
        codec.to_json({"a": float("nan")})
    with pytest.raises(TypeError, match="object is not a JSON type"):
        codec.to_json({"a": object()})
