"""Changes of single elements in the text of an XML file; comments, order and layout of everything else stay."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

from stribeck.errors import ConfigError
from stribeck.strict import read_bytes


@dataclass
class XmlNode:
    """An element and its place in the text.

    :param start, opened: first byte of the start tag, and the byte behind it.
    :param closing, end: first byte of the end tag, and the byte behind it; both equal ``opened`` for ``<a/>``.
    """

    tag: str
    attributes: Mapping[str, str]
    start: int
    opened: int = 0
    closing: int = 0
    end: int = 0
    children: list[XmlNode] = field(default_factory=list)

    def child(self, tag: str) -> XmlNode | None:
        """The first child with this tag."""
        return next((child for child in self.children if child.tag == tag), None)

    def all(self, tag: str) -> list[XmlNode]:
        """All elements below with this tag."""
        found = [child for child in self.children if child.tag == tag]
        return found + [node for child in self.children for node in child.all(tag)]


class XmlText:
    """An XML file and the changes to it.

    :raises ConfigError: for files that cannot be read, are not XML, or declare a DOCTYPE.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data = read_bytes(path, ConfigError)
        self._changes: list[tuple[int, int, bytes]] = []
        self.root = self._parsed()

    def set_attributes(self, node: XmlNode, values: Mapping[str, str]) -> None:
        """Set attributes of an element."""
        tag = self.data[node.start : node.opened].decode()
        for name, value in values.items():
            pattern = re.compile(rf"(?<![\w:]){re.escape(name)}\s*=\s*(\"[^\"]*\"|'[^']*')")
            given = f"{name}={quoteattr(value)}"
            if pattern.search(tag):
                tag = pattern.sub(lambda _, given=given: given, tag, count=1)  # type: ignore[misc]
            else:
                tag = re.sub(r"\s*(/?>)$", rf" {given}\1", tag)
        self._changes.append((node.start, node.opened, tag.encode()))

    def set_text(self, node: XmlNode, text: str) -> None:
        """Set the text of an element."""
        if node.opened == node.end:
            self._changes.append((node.start, node.end, f"<{node.tag}>{text}</{node.tag}>".encode()))
        else:
            self._changes.append((node.opened, node.closing, text.encode()))

    def add_child(self, node: XmlNode, xml: str) -> None:
        """Add an element as the last child."""
        if node.opened == node.end:
            tag = self.data[node.start : node.opened].decode().removesuffix("/>").rstrip()
            self._changes.append((node.start, node.end, f"{tag}>{xml}</{node.tag}>".encode()))
            return
        last = node.children[-1].end if node.children else node.opened
        before = self.data[: node.children[0].start if node.children else node.closing]
        indentation = before[before.rfind(b"\n") + 1 :] if b"\n" in before else b"x"
        margin = b"" if indentation.strip() else b"\n" + indentation
        self._changes.append((last, last, margin + xml.encode()))

    def text(self) -> bytes:
        """The file with all changes."""
        data = self.data
        for start, end, new in sorted(self._changes, key=lambda change: change[:2], reverse=True):
            data = data[:start] + new + data[end:]
        return data

    def _parsed(self) -> XmlNode:
        parser = expat.ParserCreate()
        stack = [XmlNode("", {}, 0)]

        def begin(tag: str, attributes: dict[str, str]) -> None:
            start = parser.CurrentByteIndex
            node = XmlNode(tag, attributes, start, self._tag_end(start))
            stack[-1].children.append(node)
            stack.append(node)

        def finish(_: str) -> None:
            node = stack.pop()
            node.closing = node.end = node.opened
            if self.data[node.opened - 2 : node.opened] != b"/>":
                node.closing = parser.CurrentByteIndex
                node.end = self._tag_end(node.closing)

        def refuse(*_: object) -> None:
            raise ValueError("the file contains a DOCTYPE: remove it")

        parser.StartElementHandler, parser.EndElementHandler = begin, finish
        parser.StartDoctypeDeclHandler = refuse
        try:
            parser.Parse(self.data, True)
        except (expat.ExpatError, ValueError) as problem:
            raise ConfigError(f"{self.path} is not XML: {problem}") from None
        return stack[0].children[0]

    def _tag_end(self, start: int) -> int:
        found = re.compile(rb"<(?:[^\"'>]|\"[^\"]*\"|'[^']*')*>").match(self.data, start)
        if found is None:
            raise ValueError(f"the tag at byte {start} is not closed")
        return found.end()
