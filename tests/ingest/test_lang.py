import pytest

from ingest.lang import language_of
from tests.ingest.parsing import cut, read


@pytest.mark.parametrize(
    ("text", "lang"),
    [
        ("好", "zh"),
        ("轴承 6204", "zh"),
        ("機械學習與臺灣圖書館", "zh"),
        ("使用 Docker Compose 部署 geo-engine 服务", "zh"),
        ("M-187 | 泵房 | 661", "zh"),
        ("XY-2080", "en"),
        ("The pump", "en"),
        ("Install the 泵 package on the server", "en"),
        ("これは", "und"),
        ("漢字とかな", "und"),
        ("東京都庁", "und"),
        ("図書館", "und"),
        ("한국어 문장입니다", "und"),
        ("Насос", "und"),
        ("Größe", "und"),
        ("Die Pumpe läuft warm und stabil im Betrieb seit gestern", "und"),
        ("12345", "und"),
    ],
)
def test_the_language_of_short_and_mixed_text(text, lang):
    assert language_of(text) == lang


def test_headings_of_a_japanese_document_are_not_taken_for_chinese():
    source = "# 東京会議\n\n主軸の予熱時間は十五分です。\n\n# 結論\n\n温度\n\n主軸を確認してください。\n"
    assert {d.lang for d in cut(read(source.encode(), "a.md"))} == {"und"}


def test_numbers_take_the_language_of_their_document():
    source = "# 读数\n\n本月读数如下，请核对。\n\n# 12\n\n120 | 45\n"
    assert {d.lang for d in cut(read(source.encode(), "a.md"))} == {"zh"}
