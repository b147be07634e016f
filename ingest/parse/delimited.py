"""CSV and TSV: one table; each row keeps its line and knows its header."""

from __future__ import annotations

import csv
import io

from ingest.parse.charset import decode
from ingest.parse.model import Block, BlockKind, Fragment, ParsedDocument, ParseOptions
from ingest.parse.within import check_length

_DELIMITERS = ",;\t|，"
_SAMPLE_LINES = 20


def parse_delimited(content: bytes, options: ParseOptions, media_type: str) -> ParsedDocument:
    """Read delimited values of any encoding; the delimiter is the one that cuts lines most evenly."""
    decoded = decode(content)
    check_length(len(decoded.text), options.limits)
    csv.field_size_limit(options.limits.max_chars)
    reader = csv.reader(io.StringIO(decoded.text.replace("\x00", "")), delimiter=_delimiter(decoded.text))
    blocks: list[Block] = []
    line = 1
    for row in reader:
        start, line = line, reader.line_num + 1
        cells = [cell.strip() for cell in row]
        if not any(cells):
            continue
        header = not blocks and _names_columns(cells)
        fragments = tuple(Fragment(cell, " | ", line=start) for cell in cells)
        blocks.append(Block(BlockKind.TABLE_ROW, fragments, table=1, is_table_header=header))
    return ParsedDocument(
        media_type=media_type,
        blocks=tuple(blocks),
        encoding=decoded.encoding,
        encoding_confidence=decoded.confidence,
        warnings=decoded.warnings,
    )


def _delimiter(text: str) -> str:
    lines = [line for line in text.splitlines()[:_SAMPLE_LINES] if line.strip()]

    def evenness(delimiter: str) -> tuple[int, int]:
        counts = [line.count(delimiter) for line in lines]
        usual = max(set(counts), key=counts.count) if counts else 0
        return (counts.count(usual) if usual else 0, usual)

    return max(_DELIMITERS, key=evenness)


def _names_columns(cells: list[str]) -> bool:
    """A first row of distinct names, none of them a number."""
    filled = [cell for cell in cells if cell]
    numbers = any(cell.replace(".", "").replace("-", "").replace("%", "").isdigit() for cell in filled)
    return len(filled) > 1 and not numbers and len(set(filled)) == len(filled)
