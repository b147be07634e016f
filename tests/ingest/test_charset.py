import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import DocumentRejected
from ingest.parse.charset import decode
from tests.ingest.parsing import read

ZH = "主轴预热说明：预热时间为十五分钟，温度低于五度时延长到二十五分钟。换刀后必须重新对刀。"
TW = "維基大典以網路為礎，這個資料庫提供後台服務，溫度低於五度時延長。"
HK = "啲嘢喺邊度？佢哋話嗰部機壞咗，要等聽日先整得返。"
JA = "これは日本語の文章です。主軸の予熱時間は十五分です。温度が五度より低い場合は延長してください。"
KO = "주축 예열 시간은 십오 분입니다. 온도가 오 도보다 낮으면 시간을 늘려 주십시오."
RU = "Время прогрева шпинделя составляет пятнадцать минут. При низкой температуре его увеличивают."
DE = "Die Spindel läuft fünfzehn Minuten warm; bei großer Kälte verlängert sich die Dauer über das Maß."
FR = "Café déjà vu à l’hôtel, naïve façade ; la durée de préchauffage est fixée à quinze minutes."
PL = "Czas nagrzewania wrzeciona wynosi piętnaście minut, a przy niższej temperaturze się wydłuża."
CS = "Doba zahřívání vřetena je patnáct minut, při nižší teplotě se prodlužuje na dvacet pět."
EL = "Ο χρόνος προθέρμανσης της ατράκτου είναι δεκαπέντε λεπτά και παρατείνεται στο κρύο."
TR = "Milin ısınma süresi on beş dakikadır; sıcaklık düşükse süre yirmi beş dakikaya çıkar."
EN = "The pump’s “dry run” guard stops it — read the café manual before you start."


@pytest.mark.parametrize(
    ("text", "encoding", "name"),
    [
        (ZH, "utf-8", "utf-8"),
        (ZH, "utf-8-sig", "utf-8-sig"),
        (ZH, "gb2312", "gb18030"),
        (ZH, "gbk", "gb18030"),
        (ZH + "𠮷㐀", "gb18030", "gb18030"),
        (TW, "gbk", "gb18030"),
        (ZH, "utf-16", "utf-16-le"),
        (ZH, "utf-16-le", "utf-16-le"),
        (ZH, "utf-16-be", "utf-16-be"),
        (ZH, "utf-32", "utf-32-le"),
        (ZH, "hz", "hz"),
        (TW, "big5", "big5hkscs"),
        (HK, "big5hkscs", "big5hkscs"),
        (TW, "utf-16-be", "utf-16-be"),
        (JA, "shift_jis", "cp932"),
        ("①㈱日立 ﾎﾟﾝﾌﾟの主軸を確認してください。", "cp932", "cp932"),
        (JA, "euc_jp", "euc_jp"),
        (JA, "iso2022_jp", "iso2022_jp_2"),
        (KO, "euc_kr", "cp949"),
        (RU, "cp1251", "cp1251"),
        (RU, "koi8_r", "koi8_r"),
        (RU, "cp866", "cp866"),
        (RU, "utf-16-le", "utf-16-le"),
        (DE, "cp1252", "cp1252"),
        (FR, "cp1252", "cp1252"),
        (PL, "cp1250", "cp1250"),
        (PL, "iso8859_2", "iso8859_2"),
        (CS, "cp1250", "cp1250"),
        (EL, "cp1253", "cp1253"),
        (TR, "cp1254", "cp1254"),
        (EN, "cp1252", "cp1252"),
        ("Plain words, nothing else.", "ascii", "ascii"),
        ("产品名称 数量\n轴承 120\n", "gbk", "gb18030"),
        ("Width 5 mm\nHeight 7 mm\n", "utf-16-le", "utf-16-le"),
    ],
)
def test_text_of_any_encoding_is_decoded_and_the_encoding_named(text, encoding, name):
    decoded = decode(text.encode(encoding))
    assert decoded.text == text
    assert decoded.encoding == name
    assert decoded.confidence > 0.9
    assert not decoded.warnings


@pytest.mark.parametrize("length", [8, 12, 20, 35])
@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (ZH, "gbk"),
        (ZH, "utf-16-le"),
        (ZH, "utf-16-be"),
        (TW, "big5"),
        (TW, "gb18030"),
        (JA, "cp932"),
        (JA, "euc_jp"),
        (KO, "cp949"),
    ],
)
def test_a_few_characters_of_east_asian_text_are_enough(text, encoding, length):
    for start in range(0, len(text) - length, 5):
        piece = text[start : start + length]
        assert decode(piece.encode(encoding)).text == piece


@pytest.mark.parametrize(
    "declared", ["utf-8", "iso-8859-1", "windows-1251", "euc-kr", "shift_jis", "nonsense", ""]
)
def test_a_declaration_that_lies_is_not_believed(declared):
    assert decode(ZH.encode("gbk"), declared).text == ZH


@pytest.mark.parametrize(("declared", "name"), [("iso-8859-2", "iso8859_2"), ("mac-roman", "mac_roman")])
def test_a_declaration_decides_between_readings_that_are_alike(declared, name):
    text = "Größe, Höhe, Länge"
    assert decode(text.encode(name), declared).text == text


def test_utf8_with_a_few_broken_bytes_is_still_utf8():
    damaged = (ZH * 20).encode()
    for content in (damaged[:-1], damaged[:300] + b"\xff" + damaged[300:], damaged[1:]):
        decoded = decode(content)
        assert decoded.encoding == "utf-8"
        assert 0.6 <= decoded.confidence < 1
        assert [w.code for w in decoded.warnings] == ["broken_bytes"]


def test_one_broken_byte_does_not_hide_the_encoding_of_a_chinese_text():
    content = (ZH * 20).encode("gbk")
    decoded = decode(content[:200] + b"\xff" + content[200:])
    assert decoded.encoding == "gb18030"
    assert decoded.text.count("\ufffd") == 1
    assert decoded.text.endswith("换刀后必须重新对刀。")
    assert "broken_bytes" in [w.code for w in decoded.warnings]


def test_the_euro_sign_of_a_chinese_windows_is_read():
    content = ZH.encode("gbk") + b"\n" + "价格：".encode("gbk") + b"\x80" + b"50\n"
    assert decode(content).text == ZH + "\n价格：€50\n"


def test_a_log_with_few_chinese_lines_is_decided_by_them():
    log = "".join(f"2026-01-{n % 28 + 1:02} INFO nightly-sync.sh finished step {n}\n" for n in range(400))
    text = log + "磁盘余量不足，请检查备份任务。\n" + log
    assert decode(text.encode("gbk")).text == text


def test_bytes_that_mean_nothing_are_refused_and_the_problem_named():
    with pytest.raises(DocumentRejected) as error:
        decode(bytes(range(0x80, 0x100)) * 3)
    assert error.value.code == "encoding"
    assert "UTF-8" in error.value.detail


def test_a_doubtful_letter_is_read_with_a_warning_and_a_low_confidence():
    decoded = decode(b"na gr\xeda")
    assert decoded.confidence < 0.9
    assert [w.code for w in decoded.warnings] == ["encoding_uncertain"]


def test_the_decision_is_stored_with_the_document():
    document = read(ZH.encode("gbk"), "spindle.txt")
    assert (document.encoding, document.encoding_confidence) == ("gb18030", 0.99)


@given(st.binary(max_size=200))
def test_any_bytes_are_text_or_a_refusal(data):
    try:
        decoded = decode(data)
    except DocumentRejected:
        return
    decoded.text.encode()
    assert 0 <= decoded.confidence <= 1


@given(
    st.text(alphabet=st.characters(exclude_categories=("Cs", "Cc")), min_size=4, max_size=80),
    st.sampled_from([codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE]),
)
def test_a_mark_decides_by_itself(text, bom):
    name = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
    text = text.lstrip("\ufeff\0")
    assert decode(bom + text.encode(name.get(bom, "utf-32-le"))).text == text


def test_the_bench_of_a_chinese_windows_editor(shared_data):
    document = read((shared_data / "cases" / "D01" / "spindle_gbk.txt").read_bytes(), "spindle_gbk.txt")
    assert document.encoding == "gb18030"
    assert "主轴预热时间为十五分钟" in document.text
