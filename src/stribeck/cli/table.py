"""Plain tables for terminals, and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Format a table whose first ``left`` columns are left-aligned, the others right-aligned."""
    widths = [max(len(row[k]) for row in (header, *rows)) for k in range(len(header))]
    lines = []
    under = ["-" * width if name else "" for name, width in zip(header, widths, strict=True)]
    for row in (header, under, *rows):
        cells = [
            cell.ljust(width) if k < left else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def csv_text(header: Iterable[str], rows: Iterable[Iterable[str | float]]) -> str:
    """A table as CSV; numbers with nine digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([x if isinstance(x, str) else f"{x:.9g}" for x in row] for row in rows)
    return text.getvalue()


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> None:
    """Print a table formatted by :func:`format_table`."""
    print(format_table(header, rows, left))
