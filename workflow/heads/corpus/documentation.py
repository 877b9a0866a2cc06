"""English sentences found on every machine: the docstrings of the installed Python packages.

Docstrings are read from the source files without importing them. Only their prose is kept: sentences of plain words
that begin with a capital letter and end with a full stop, exclamation mark or question mark.
"""

import ast
import re
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path

PROSE = re.compile(r"[A-Z][A-Za-z0-9 ,;:'()%-]*[a-z0-9)][.!?]")
"""A sentence of plain words: no code, no markup, no paths."""
WORD = re.compile(r"[A-Za-z][a-z'-]*[,;:.!?)]?|\(?[A-Za-z][a-z'-]*|[0-9]+[,.]?")
BREAK = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
CODE = (">>>", "::", ":param", ":return", "@", "----", "====", "```")
"""A paragraph with one of these is not prose."""
WORDS = (5, 40)
"""Minimum and maximum number of words in a sentence."""


def documentation(folder: Path | None = None) -> Iterator[str]:
    """The distinct sentences of all packages in a folder (default: this Python's packages), in a fixed order."""
    seen: set[str] = set()
    for path in sorted((folder or Path(sysconfig.get_path("purelib"))).rglob("*.py")):
        for text in docstrings(path):
            for sentence in sentences(text):
                if sentence not in seen:
                    seen.add(sentence)
                    yield sentence


def docstrings(path: Path) -> Iterator[str]:
    """The docstrings of a source file; none if Python cannot parse it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield text


def sentences(text: str) -> Iterator[str]:
    """The prose sentences of a docstring."""
    for paragraph in re.split(r"\n\s*\n", text):
        if any(mark in paragraph for mark in CODE):
            continue
        for sentence in BREAK.split(" ".join(paragraph.split())):
            words = sentence.split(" ")
            plain = sum(WORD.fullmatch(word) is not None for word in words)
            if WORDS[0] <= len(words) <= WORDS[1] and plain >= 0.9 * len(words) and PROSE.fullmatch(sentence):
                yield sentence
