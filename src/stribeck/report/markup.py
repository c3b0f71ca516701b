"""Creates HTML elements; ElementTree escapes their texts."""

from __future__ import annotations

from xml.etree.ElementTree import Element, SubElement, tostring

Child = Element | str | None


def element(tag: str, *children: Child, **attributes: str | float | int) -> Element:
    """An element with its children; a text child is escaped.

    :param attributes: ``class_`` stands for ``class``, underscores for hyphens; numbers are written with six digits.
    """
    texts = {
        name.rstrip("_").replace("_", "-"): value if isinstance(value, str) else f"{value:.6g}"
        for name, value in attributes.items()
    }
    made = Element(tag, texts)
    add(made, *children)
    return made


def add(parent: Element, *children: Child) -> None:
    """Append children to an element."""
    for child in children:
        if isinstance(child, str):
            if len(parent):
                parent[-1].tail = (parent[-1].tail or "") + child
            else:
                parent.text = (parent.text or "") + child
        elif child is not None:
            parent.append(child)


def table(header: list[Child], rows: list[list[Child]], **attributes: str) -> Element:
    """A table that scrolls on narrow screens; the first cell of a row is its header."""
    made = element("table", **attributes)
    head = SubElement(SubElement(made, "thead"), "tr")
    for cell in header:
        add(head, element("th", cell, scope="col"))
    body = SubElement(made, "tbody")
    for row in rows:
        line = element("tr", element("th", row[0], scope="row"), *(element("td", cell) for cell in row[1:]))
        body.append(line)
    return element("div", made, class_="scroll", tabindex="0")


def page(root: Element) -> bytes:
    """Serialise a document; characters that UTF-8 cannot encode (surrogates in file names) become question marks."""
    text = tostring(root, encoding="unicode", method="html")
    return ("<!DOCTYPE html>\n" + text + "\n").encode("utf-8", "replace")
