"""Characters of a PDF page → pieces: runs of text on one baseline without a wide gap."""

from __future__ import annotations

from dataclasses import dataclass, field
from unicodedata import category

import numpy as np
from numpy.typing import NDArray

from ingest.parse.pdf_chars import LINE_END, SPACE, UNMAPPED, Chars, Codes, Floats, Indices
from ingest.parse.pdf_frame import Frame, upright
from ingest.parse.pdf_rules import Rule

_PIECE_GAP = 0.95  # in font sizes: a wider gap is a gutter or a table column, rarely a space
_SPACE_GAP = 0.24  # in font sizes: a gap without a space character that reads as one
_CJK_SPACE_GAP = 0.6  # between ideographs: less is letter-spacing of a justified line
_RAISED_HEIGHT = 0.86  # a superscript is at most so high as its neighbour

_CJK = 0x2E80  # from here on scripts that write no spaces between words
_MAX_BORDERS = 150  # more upright lines are a drawing
_NOISE_SHARE = 0.5
_ENOUGH_JUDGED = 800  # characters of a page, evenly
_MIN_JUDGED = 60  # characters: a short page may be a formula

Flags = NDArray[np.bool_]


@dataclass(slots=True)
class Piece:
    """Text on one baseline.

    Coordinates in points from the top left of the page, turned so that the text reads left to right; `size`
    is its font size in points.
    """

    text: str
    x0: float
    top: float
    x1: float
    bottom: float
    size: float
    bold: bool = False
    mono: bool = False

    @property
    def middle(self) -> float:
        """Height of the piece's centre line."""
        return (self.top + self.bottom) / 2


@dataclass(slots=True)
class Turned:
    """Pieces whose text runs in another direction than most of the page; `turn` as in `pdf_frame.upright`."""

    turn: int
    pieces: list[Piece]


@dataclass(slots=True)
class PageText:
    """One page.

    Attributes:
        width, height: of the page as shown, in points.
        pieces: in direction `turn`, the direction of most of the text (0 = as the page is shown).
        chars: characters with a text.
        unmapped: glyphs without one.
        hidden: characters that people cannot see; left out of `pieces` unless they were asked for.
        recognised: read from the picture of the page.
        rules: lines drawn on the page.
        turn: how `pieces` are turned; boxes go back through `pdf_frame.turned_back`.
        others: text in other directions.
    """

    number: int
    width: float
    height: float
    pieces: list[Piece]
    chars: int
    unmapped: int = 0
    recognised: bool = False
    hidden: int = 0
    rules: list[Rule] = field(default_factory=list)
    turn: int = 0
    others: list[Turned] = field(default_factory=list)


def page_text(
    chars: Chars | None, frame: Frame, number: int, hidden: Flags | None, rules: list[Rule]
) -> PageText:
    """Join the characters of a page to pieces.

    Args:
        chars: None for a page without text.
        frame: the visible part of the page.
        number: 1-based.
        hidden: which characters to leave out; None = keep all.
        rules: lines drawn on the page as shown; those that stand upright part the pieces of table cells.
    """
    page = PageText(number, frame.width, frame.height, [], 0, rules=rules)
    if chars is None:
        return page
    seen = (chars.kind != SPACE) & (chars.kind != LINE_END)
    owner = None  # of each character, the known one that it belongs to
    known = np.arange(chars.at.size)
    if hidden is not None:
        owner = _owners(chars)
        out_of_sight = hidden[owner] & seen
        page.hidden = int(out_of_sight.sum())
        seen &= ~out_of_sight
        known = np.flatnonzero(~hidden)
    visible = np.flatnonzero(seen)
    page.unmapped = int((chars.kind[visible] == UNMAPPED).sum())
    page.chars = visible.size - page.unmapped
    if not visible.size:
        return page
    if _is_noise(chars.code[visible]):
        page.unmapped, page.chars = visible.size, 0
        return page
    turns = _turns(chars, known)
    if not turns.any():
        page.pieces = _pieces(chars, seen, known, 0, frame, rules)
        return page
    owner = _owners(chars) if owner is None else owner
    of_known = np.full(chars.at.size, -1, np.intp)
    of_known[known] = turns
    groups = [(turn, known[turns == turn]) for turn in np.unique(turns).tolist()]
    groups.sort(key=lambda group: -group[1].size)
    for index, (turn, members) in enumerate(groups):
        pieces = _pieces(chars, seen & (of_known[owner] == turn), members, turn, frame, rules)
        if index == 0:
            page.turn, page.pieces = turn, pieces
        else:
            page.others.append(Turned(turn, pieces))
    return page


def _owners(chars: Chars) -> Indices:
    """For each character, the index of the last known one at or before it."""
    is_known = np.zeros(chars.code.size, np.intp)
    is_known[chars.at] = 1
    return np.maximum(np.cumsum(is_known) - 1, 0)


def _is_noise(code: Codes) -> bool:
    """Whether a page reads like `"#$!%&'`: its font came without the way from its glyphs to letters."""
    step = 1 + code.size // _ENOUGH_JUDGED
    letters, signs = np.bincount(_SIGN[np.minimum(code[::step], 0xFFFF)], minlength=2)[:2].tolist()
    return letters + signs >= _MIN_JUDGED and signs > _NOISE_SHARE * (letters + signs)


def _sign_table() -> NDArray[np.uint8]:
    """0 for letters, their marks and digits, 1 for signs, 2 for signs that rules and leaders are made of."""
    table = np.array([0 if category(chr(code))[0] in "LNM" else 1 for code in range(0x10000)], np.uint8)
    table[[ord(c) for c in "._-=*~·•…—–─━|\u00ad\ufffd"]] = 2
    table[0xE000:0xF900] = 1  # private use
    return table


_SIGN = _sign_table()


def _turns(chars: Chars, known: Indices) -> Indices:
    """Direction of each known character; columns of vertical writing count as turned by 270 degrees."""
    of_style = np.array([style.turn for style in chars.styles], np.intp)
    turns = of_style[chars.style_of[known]] if of_style.any() else np.zeros(known.size, np.intp)
    if chars.code.max() < _CJK:
        return turns
    # Upright ideographs, each below the one before it.
    x0, top, x1, _ = chars.boxes[:, known]
    size = np.maximum(x1 - x0, 0.1)
    below = np.zeros(known.size, np.bool_)
    step = top[1:] - top[:-1]
    below[1:] = (np.abs(x0[1:] - x0[:-1]) < 0.3 * size[1:]) & (step > 0.5 * size[1:]) & (step < 3 * size[1:])
    if below.sum() < 0.6 * known.size:
        return turns
    return np.full(known.size, 270, np.intp)


def _pieces(
    chars: Chars, seen: Flags, known: Indices, turn: int, frame: Frame, rules: list[Rule]
) -> list[Piece]:
    """Pieces of the characters `seen`, among them the `known` ones, all in direction `turn`."""
    whole = known.size == chars.at.size
    boxes = upright(chars.boxes if whole else chars.boxes[:, known], turn, frame.width, frame.height)
    at = chars.at if whole else chars.at[known]
    code = chars.code[seen]
    rank = (np.cumsum(seen) - 1)[at]  # of the known characters among those seen
    breaks, spaces = _joints(chars, at, rank, chars.style_of[known], boxes, rules if turn == 0 else [])
    code = _raised(code, rank, boxes, breaks, spaces)
    starts = np.flatnonzero(breaks)
    # The text of all pieces at once: every character moves on by the spaces before it.
    spaced = np.zeros(code.size, np.intp)
    spaced[rank[spaces]] = 1
    place = np.arange(code.size) + np.cumsum(spaced)
    text_codes = np.full(int(place[-1]) + 1, 32, np.uint32)
    text_codes[place] = code
    text = text_codes.tobytes().decode("utf-32-le", "replace")
    begins = place[rank[starts]]
    ends = np.append(begins[1:], len(text)).tolist()
    edges = np.stack(
        (
            np.minimum.reduceat(boxes[0], starts),
            np.minimum.reduceat(boxes[1], starts),
            np.maximum.reduceat(boxes[2], starts),
            np.maximum.reduceat(boxes[3], starts),
        ),
        axis=1,
    )
    # To a tenth of a point: finer than any reader can see, and the same on every machine.
    corners = np.round(edges.astype(np.float64), 1).tolist()
    styles = chars.styles
    style_of = chars.style_of[known]
    first = style_of[starts].tolist()
    stops = np.append(starts[1:], known.size)
    last = style_of[stops - 1].tolist()
    main = style_of[(starts + stops) // 2].tolist()  # a mark or a symbol may stand at either end
    pieces: list[Piece] = []
    for (x0, top, x1, bottom), at, end, a, b, m in zip(
        corners, begins.tolist(), ends, first, last, main, strict=True
    ):
        style = styles[m]
        bold = styles[a].bold and styles[b].bold
        mono = styles[a].mono and styles[b].mono and style.mono
        # A font without a usable size (a matrix of zeros) is measured by its boxes.
        size = style.size if style.size > 0.5 else max(bottom - top, 0.1)
        pieces.append(Piece(text[at:end], x0, top, x1, bottom, size, bold, mono))
    return pieces


def _joints(
    chars: Chars, at: Indices, rank: Indices, style_of: Indices, boxes: Floats, rules: list[Rule]
) -> tuple[Flags, Flags]:
    """Before which of the known characters a new piece begins, and before which a space stands."""
    breaks = np.ones(at.size, np.bool_)
    spaces = np.zeros(at.size, np.bool_)
    if at.size == 1:
        return breaks, spaces
    x0, top, x1, bottom = boxes
    height = np.maximum(bottom - top, 0.1)
    smaller = np.minimum(height[1:], height[:-1])
    em = np.array([style.size for style in chars.styles], np.float32)[style_of]
    em = np.where((em > 0.5) & (em < 2 * height), em, height)  # a font may have no size of its own
    em = np.maximum(em[1:], em[:-1])
    gap = x0[1:] - x1[:-1]
    overlap = np.minimum(bottom[1:], bottom[:-1]) - np.maximum(top[1:], top[:-1])
    adjacent = np.diff(rank) == 1  # else the inside of a word is between the two
    blank = np.cumsum((chars.kind == SPACE) & (chars.code != 0))[at]
    line_end = np.cumsum(chars.kind == LINE_END)[at]
    apart = (overlap <= 0.4 * smaller) | (gap > _PIECE_GAP * em) | (gap < -1.5 * em)
    upright_rules = [rule for rule in rules if rule.vertical]
    for rule in upright_rules if len(upright_rules) <= _MAX_BORDERS else ():
        middle = (top[1:] + bottom[1:]) / 2
        beside = (x1[:-1] <= rule.x0 + 1) & (x0[1:] >= rule.x1 - 1)
        apart |= beside & (middle > rule.top) & (middle < rule.bottom)
    # pdfium's line ends are a guess: pieces of one line meet again by geometry.
    breaks[1:] = (apart & adjacent) | (line_end[1:] != line_end[:-1])
    enough = _SPACE_GAP * em
    if chars.code.max() >= _CJK:
        ideograph = (chars.code[at] >= _CJK) & (chars.code[at] < 0xFFE0)
        enough = np.where(ideograph[1:] & ideograph[:-1], _CJK_SPACE_GAP * em, enough)
    spaces[1:] = ((blank[1:] != blank[:-1]) | ((gap > enough) & adjacent)) & ~breaks[1:]
    return breaks, spaces


_RAISED = {ord(plain): ord(raised) for plain, raised in zip("0123456789+-−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻", strict=True)}


def _raised(code: Codes, rank: Indices, boxes: Floats, breaks: Flags, spaces: Flags) -> Codes:
    """Write raised digits as superscripts, apart from the word they note but close to a unit or a number.

    Args:
        code: of all characters; returned as it is, or as a changed copy.
        rank: of the known characters among them; every digit is known.
        boxes: of the known characters.
        breaks: where pieces begin.
        spaces: changed in place.
    """
    top, bottom = boxes[1], boxes[3]
    height = np.maximum(bottom - top, 0.1)
    if height.min() >= _RAISED_HEIGHT * height.max():
        return code
    small = height[1:] < _RAISED_HEIGHT * height[:-1]
    after = np.zeros(rank.size, np.bool_)  # smaller and higher than the character before
    after[1:] = small & (bottom[1:] < bottom[:-1] - 0.12 * height[:-1]) & ~breaks[1:]
    before = np.zeros(rank.size, np.bool_)  # smaller and higher than the character after, at a line's begin
    grows = (height[:-1] < _RAISED_HEIGHT * height[1:]) & (bottom[:-1] < bottom[1:] - 0.12 * height[1:])
    before[:-1] = grows & ~breaks[1:]
    starts = np.flatnonzero(after | before)
    if not starts.size:
        return code
    code = code.copy()
    for start in starts.tolist():
        if after[start]:
            end = start
            limit = _RAISED_HEIGHT * height[start - 1]
            while (
                end < rank.size and height[end] < limit and (end == start or not (breaks[end] or spaces[end]))
            ):
                end += 1
            if not _raise(code, rank[start:end]):
                continue
            word = code[max(0, rank[start] - 3) : rank[start]].tobytes().decode("utf-32-le", "replace")
            spaces[start] = len(word) == 3 and (word.isalpha() or not word[-1].isalnum())
        else:
            begin = start
            while begin > 0 and not breaks[begin] and height[begin - 1] < 1.05 * height[start]:
                begin -= 1
            if breaks[begin] and start - begin < 4 and _raise(code, rank[begin : start + 1]):
                spaces[start + 1] = True
    return code


def _raise(code: Codes, at: Indices) -> bool:
    """Replace the characters `at` by superscripts; False, and nothing done, if any is no digit or sign."""
    raised = [_RAISED.get(value, 0) for value in code[at].tolist()]
    if not raised or not all(raised):
        return False
    code[at] = raised
    return True
