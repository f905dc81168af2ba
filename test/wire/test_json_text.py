# SPDX-License-Identifier: Apache-2.0
"""JSON and base64 without orjson and pybase64: equal results for all input and output."""

import base64
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from drone_bridge.wire import json_text

pybase64 = pytest.importorskip("pybase64", reason="rosdep has no key for it")

DOCUMENTS = [
    b"{}", b'{"a": 1, "b": [1.5, -0.0, 1e-400, null, true]}', b' \t{"a":"\\u00e4\\n"} ', '{"a": "ä"}',
    b'{"a": "\xc3\xa4"}',
    b"", b"{", b'{"a": NaN}', b'{"a": Infinity}', b'{"a": -Infinity}', b'{"a": 1e999}', b'{"a": ' + b"9" * 5000 + b"}",
    b'{"a": 01}', b'{"a": "\\ud83d\\ude00"}', b'{"a": "\xff"}', b"\xef\xbb\xbf{}", '\ufeff{}', "{}".encode("utf-16"),
    b'{"a": "\x01"}', b"[" * 100000, b'{"a":' * 5000 + b"1" + b"}" * 5000, b"{} {}", b"{'a': 1}", b'{"a": 1,}', b"nul",
    bytearray(b'{"a": 1}'), memoryview(b'{"a": [2]}'), b'{"a": 1, "a": 2}', b'{"a": "\x7f"}', b"1", b'"a"',
]  # fmt: skip


def read_with(is_fast, document):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_text, "HAS_ORJSON", is_fast)
        try:
            return json_text.from_json(document)
        except json.JSONDecodeError:
            return "refused"


def test_the_fast_libraries_are_used_where_installed():
    assert json_text.HAS_ORJSON
    assert json_text.base64.__name__ == "pybase64"


@pytest.mark.parametrize("document", DOCUMENTS, ids=range(len(DOCUMENTS)))
def test_equal_documents_are_decoded(document):
    assert read_with(False, document) == read_with(True, document)


@given(st.binary(max_size=40) | st.text(max_size=40))
def test_any_text_is_accepted_or_refused_equally(document):
    assert read_with(False, document) == read_with(True, document)


@given(st.text(alphabet="Aa0+/=-_ \n", max_size=12))
@example("AAAA=")
@example("AAAA====")
@example("AA\n==\n")
def test_the_same_base64_is_read(text):
    def decoded(module):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(json_text, "base64", module)
            try:
                return json_text.from_base64(text)
            except ValueError:
                return None

    assert decoded(pybase64) == decoded(base64)


def test_equal_documents_are_encoded(monkeypatch):
    value = {"a": [1, 2.5, True], "b": "ä", "c": None}
    fast = json_text.to_json(value), json_text.to_base64(b"\x00\xff")
    monkeypatch.setattr(json_text, "HAS_ORJSON", False)
    monkeypatch.setattr(json_text, "base64", base64)
    assert (json_text.to_json(value), json_text.to_base64(b"\x00\xff")) == fast
