from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.types import Span
from ingest.normalize import build
from ingest.parse import parse_bytes
from tests.ingest.parsing import read


def stamp(seconds: float, comma: str = ",") -> str:
    ms = round(seconds * 1000)
    return f"{ms // 3600000:02}:{ms // 60000 % 60:02}:{ms // 1000 % 60:02}{comma}{ms % 1000:03}"


def srt(*cues: tuple[float, float, str]) -> bytes:
    return "\n".join(
        f"{n}\n{stamp(start)} --> {stamp(end)}\n{text}\n" for n, (start, end, text) in enumerate(cues, 1)
    ).encode()


def paragraphs(content: bytes, name: str = "talk.srt") -> list[str]:
    return [b.text for b in parse_bytes(content, name).blocks]


def test_cues_are_joined_into_sentences_without_numbers_or_times():
    content = srt(
        (1, 3, "About two months ago\nI found myself"), (5, 7, "on a video."), (7.1, 9, "It was long.")
    )
    assert paragraphs(content) == ["About two months ago I found myself on a video. It was long."]


def test_a_sentence_end_before_a_pause_ends_the_paragraph_and_a_long_pause_always_does():
    content = srt((1, 3, "It is done."), (6, 7, "Next"), (9, 10, "part."), (20, 21, "and"), (30, 31, "more"))
    assert paragraphs(content) == ["It is done.", "Next part.", "and", "more"]


def test_a_place_leads_to_the_line_and_the_moment():
    content = srt((1, 3, "First."), (3725, 3727, "The pump\n<i>runs</i>."))
    document = read(content, "talk.srt")
    at = document.text.index("runs")
    place = document.offset_map.place(Span(at, at + 4))
    assert (place.line, place.member) == (8, "01:02:05")
    at = document.text.index("The pump")
    place = document.offset_map.place(Span(at, at + 8))
    assert content.decode()[place.start : place.end] == "The pump"


def test_markup_and_positions_are_dropped_and_signs_that_are_text_stay():
    content = srt((1, 2, r"{\an8}<font color='red'>a &lt; b</font> I <3 you\Nand 5 < 6"))
    assert paragraphs(content) == ["a < b I <3 you and 5 < 6"]


def test_a_number_that_is_said_is_not_taken_for_a_label():
    assert paragraphs(srt((1, 2, "In the year\n1984"), (2, 3, "it began."))) == ["In the year 1984 it began."]
    tight = b"1\n00:00:01,000 --> 00:00:02,000\nOne.\n2\n00:00:02,000 --> 00:00:03,000\nTwo.\n"
    assert paragraphs(tight) == ["One. Two."]


def test_captions_that_roll_are_read_once_and_words_said_twice_stay():
    rolling = srt(
        (0, 2, "the pump runs at"),
        (2, 2.01, "the pump runs at"),
        (2.01, 4, "the pump runs at\nthirty bar today"),
        (4, 4.01, "thirty bar today"),
        (4.01, 6, "thirty bar today\nand tomorrow"),
    )
    assert paragraphs(rolling) == ["the pump runs at thirty bar today and tomorrow"]
    growing = srt((0, 1, "the pump"), (1, 2, "the pump runs"), (2, 3, "the pump runs well"))
    assert paragraphs(growing) == ["the pump runs well"]
    assert paragraphs(srt((0, 1, "No."), (1, 2, "No."))) == ["No. No."]
    assert paragraphs(srt((0, 1, "The pump runs."), (4, 5, "The pump runs."))) == ["The pump runs."] * 2


def test_webvtt_keeps_speakers_and_drops_notes_styles_and_labels():
    content = (
        "WEBVTT - Talk\nKind: captions\nLanguage: zh-CN\n\nSTYLE\n::cue { color: red }\n\nREGION\nid:a\n\n"
        "NOTE two\nlines\n\nintro\n00:01.000 --> 00:03.000 align:start\n<v Ann>The pump &amp; valve\n\n"
        "00:03.000 --> 00:04.000\n<v Ann>run.\n\nNOTE no --\n\n00:04.000 --> 00:05.000\n"
        "<v.loud 李伟>Wirklich<00:04.500><c> so</c>?</v>\n"
    )
    parsed = parse_bytes(content.encode(), "talk.vtt")
    assert [b.text for b in parsed.blocks] == ["Ann: The pump & valve run.", "李伟: Wirklich so?"]
    assert parsed.properties == {"language": "zh-CN"}
    assert parsed.media_type == "text/vtt"


def test_chinese_lines_keep_the_space_that_is_their_only_stop():
    assert paragraphs(srt((1, 2, "今天检查水泵"), (2, 3, "明天检查阀门"))) == ["今天检查水泵 明天检查阀门"]


def test_text_without_any_stop_is_cut_all_the_same():
    content = srt(*((n, n + 1, f"words of line number {n} go on") for n in range(200)))
    found = paragraphs(content)
    assert 5 < len(found) < 20
    assert max(map(len, found)) < 1000


def test_utf16_and_lines_of_old_systems_are_read():
    content = "1\r00:00:01,000 --> 00:00:02,000\r水泵。\r\r".encode("utf-16")
    assert paragraphs(content) == ["水泵。"]


def test_a_file_without_cues_is_read_as_text():
    assert paragraphs(b"No cues, only words.") == ["No cues, only words."]


def test_the_shared_subtitles_are_read(shared_data: Path):
    path = shared_data / "data" / "docs" / "enc_utf16be_bom.srt"
    if not path.exists():
        pytest.skip("file not laid beside this checkout")
    document = build(parse_bytes(path.read_bytes(), path.name))
    assert "About 2 months ago I found myself on the comment section of YouTube" in document.text
    assert "-->" not in document.text
    assert document.encoding == "utf-16-be"


WORDS = st.text("abcde XYZ.!?水泵", min_size=1, max_size=30).filter(lambda t: t.strip())


@given(st.lists(st.tuples(st.floats(0.2, 9), WORDS), min_size=1, max_size=20))
def test_every_word_is_kept_in_order_when_captions_do_not_touch(cues):
    at = 0.0
    made: list[tuple[float, float, str]] = []
    for gap, text in cues:
        made.append((at + gap, at + gap + 1, text))
        at += gap + 1
    joined = " ".join(paragraphs(srt(*made)))
    assert joined.split() == " ".join(text for _, _, text in made).split()
