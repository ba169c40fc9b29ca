"""The message alone names the right node and cause, for nearly all of two hundred planted faults."""

import pyc
from planted_faults import RELU, faults

# What is not named, or not refused, yet. At most 5 of 200.
KNOWN: dict[str, str] = {}


def said(provoke):
    try:
        provoke()
    except pyc.Error as error:
        return str(error)
    except (TypeError, ValueError, AttributeError) as error:
        return f"{type(error).__name__}: {error}"
    return None


def lacks(text, words):
    """The first word that is not there."""
    for word in words:
        if not any(one in text for one in (word if isinstance(word, tuple) else (word,))):
            return word
    return None


def misses():
    found = {}
    for name, (provoke, words) in faults().items():
        text = said(provoke)
        if text is None:
            found[name] = "no error"
        elif lacks(text, words) is not None:
            found[name] = f"no {lacks(text, words)!r} in: {text}"
    return found


def test_messages_name_node_and_cause():
    assert len(faults()) >= 200
    found = misses()
    assert found.keys() - KNOWN == set(), found
    assert KNOWN.keys() - found == set(), "mended: take it from the list"
    assert len(KNOWN) <= 5


def test_every_message_can_be_printed():
    """No control character of a file or an argument reaches the terminal."""
    hostile = "bad\x1b[31m\x07name"
    for provoke in (
        lambda: pyc.compile(f"no/{hostile}.onnx"),
        lambda: pyc.compile(b"graph @g(%x: f32[2]) -> (%y) { \x1b[2J }"),
        lambda: pyc.compile(RELU, **{hostile: 1}),
        lambda: pyc.compile(RELU).run({hostile: 1}),
    ):
        text = said(provoke)
        assert text and all(one.isprintable() or one == "\n" for one in text), repr(text)
