import base64
from contextlib import suppress
from email import policy
from email.message import EmailMessage, Message
from email.parser import BytesParser
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import DocumentRejected
from ingest.normalize import NormalizedDocument
from ingest.parse import parse_bytes
from ingest.parse.calendar_text import calendar_blocks
from ingest.parse.mail_headers import decoded_words
from ingest.parse.members import MAX_ATTACHMENTS, MAX_DEPTH
from ingest.parse.model import Limits, ParseOptions
from tests.ingest.parsing import pdf, read

ZH = "主轴预热说明：预热时间为十五分钟，温度低于五度时延长到二十五分钟。"
TW = "維基大典以網路為礎，這個資料庫提供後台服務，溫度低於五度時延長。"


def message(body: str = "The pump runs.", **fields: str) -> EmailMessage:
    made = EmailMessage()
    made["From"] = "Al Ray <al@example.org>"
    made["To"] = "Bo <bo@example.org>"
    made["Subject"] = "Pump report"
    made["Date"] = "Mon, 04 Mar 2024 10:00:00 +0800"
    made["Message-ID"] = "<1@example.org>"
    for name, value in fields.items():
        del made[name]
        made[name] = value
    made.set_content(body)
    return made


def mail(made: Message) -> NormalizedDocument:
    return read(made.as_bytes(), "mail.eml")


def raw(*lines: str | bytes) -> bytes:
    return b"\r\n".join(line.encode() if isinstance(line, str) else line for line in lines)


def body_of(document: NormalizedDocument) -> str:
    """The text after the header lines."""
    return document.text.split("+0800\n\n", 1)[1]


def test_headers_stand_before_the_text_and_the_subject_is_the_title():
    parsed = parse_bytes(message().as_bytes(), "mail.eml")
    assert [b.text for b in parsed.blocks] == [
        "Pump report",
        "From: Al Ray <al@example.org>",
        "To: Bo <bo@example.org>",
        "Date: Mon, 04 Mar 2024 10:00:00 +0800",
        "The pump runs.",
    ]
    assert parsed.title == "Pump report"
    assert parsed.properties == {"author": "Al Ray", "created": "2024-03-04T10:00:00+08:00"}
    assert parsed.media_type == "message/rfc822"


@pytest.mark.parametrize(
    ("raw_field", "text"),
    [
        ("=?utf-8?b?5rC05rO15oql5ZGK?=", "水泵报告"),
        ("=?GBK?B?" + base64.b64encode("水泵报告".encode("gbk")).decode() + "?=", "水泵报告"),
        ("=?big5?Q?" + "".join(f"={b:02X}" for b in "維基大典".encode("big5")) + "?=", "維基大典"),
        ("=?iso-2022-jp?B?" + base64.b64encode("報告".encode("iso-2022-jp")).decode() + "?=", "報告"),
        (
            "=?utf-8?B?" + base64.b64encode("主轴预热说明报告".encode("gbk")).decode() + "?=",
            "主轴预热说明报告",
        ),
        ("Re: =?utf-8?q?caf=C3=A9_x?= done", "Re: café x done"),
        ("=?nonsense?q?pump?=", "pump"),
        ("=?utf-8?b?5rC05rO1!!", "=?utf-8?b?5rC05rO1!!"),
        ("Plain =?= text", "Plain =?= text"),
        ("a\r\n  folded\tline", "a folded line"),
    ],
)
def test_words_of_any_charset_are_decoded(raw_field, text):
    assert decoded_words(raw_field) == text


def test_a_character_cut_between_two_words_is_whole_again():
    data = "水泵检修报告".encode("gbk")
    words = " ".join(f"=?gbk?b?{base64.b64encode(p).decode()}?=" for p in (data[:3], data[3:7], data[7:]))
    assert decoded_words(words) == "水泵检修报告"


def test_bare_bytes_in_a_subject_are_read():
    content = raw("From: a@b.c", b"Subject: " + ZH.encode("gbk"), "MIME-Version: 1.0", "", "x")
    assert read(content, "m.eml").title == ZH


@pytest.mark.parametrize(
    "parameter",
    [
        f"filename*=UTF-8''{quote('水泵.txt')}",
        f"filename*0*=UTF-8''{quote('水')}; filename*1*={quote('泵.txt')}",
        'filename="=?GB2312?B?' + base64.b64encode("水泵.txt".encode("gbk")).decode() + '?="',
        b'filename="' + "水泵.txt".encode("gb18030") + b'"',
    ],
)
def test_attachment_names_of_every_spelling_are_decoded(parameter):
    given_ = parameter if isinstance(parameter, bytes) else parameter.encode()
    content = raw(
        "From: a@b.c",
        "MIME-Version: 1.0",
        "Content-Type: multipart/mixed; boundary=x",
        "",
        "--x",
        "Content-Type: application/octet-stream",
        b"Content-Disposition: attachment; " + given_,
        "",
        "The valve opens at 5 bar.",
        "--x--",
    )
    parsed = parse_bytes(content, "m.eml")
    assert {b.member for b in parsed.blocks} == {None, "水泵.txt"}


@pytest.mark.parametrize(
    ("text", "charset", "label", "encoding"),
    [
        (ZH, "gbk", "gb2312", "gb18030"),
        (ZH, "gbk", "utf-8", "gb18030"),
        (ZH, "gbk", "iso-8859-1", "gb18030"),
        (TW, "big5", "big5", "big5hkscs"),
        (ZH, "utf-8", "us-ascii", "utf-8"),
        ("報告は終わりました。", "iso-2022-jp", "iso-2022-jp", "iso-2022-jp"),
    ],
)
def test_a_body_is_decoded_whatever_its_label_says(text, charset, label, encoding):
    content = raw(
        "From: a@b.c",
        "Subject: x",
        "MIME-Version: 1.0",
        f"Content-Type: text/plain; charset={label}",
        "Content-Transfer-Encoding: base64",
        "",
        base64.b64encode(text.encode(charset)),
    )
    document = read(content, "m.eml")
    assert document.text.endswith(text)
    assert document.encoding == encoding


def test_plain_text_is_taken_before_the_html_beside_it():
    made = message("The pump runs at 30 bar.")
    made.add_alternative("<p>The pump runs at <b>30</b> bar.</p><p>Banner</p>", subtype="html")
    assert body_of(mail(made)) == "The pump runs at 30 bar."


@pytest.mark.parametrize(
    "plain", ["", " \n", "View this message in a browser.", "<html><p>The pump</p></html>"]
)
def test_html_is_taken_when_the_plain_text_says_nothing(plain):
    made = message(plain)
    page = "<h1>Pump</h1><p>The pump runs at 30 bar, and it is checked daily by the shift.</p>"
    made.add_alternative(f"<style>p {{}}</style>{page}", subtype="html")
    document = mail(made)
    assert body_of(document).startswith("Pump\n\nThe pump runs at 30 bar")
    assert document.blocks[-1].heading_path == ("Pump report", "Pump")


def test_text_that_the_html_hides_is_not_read():
    made = message("")
    made.add_alternative(
        '<p>Read this long sentence about pumps.</p><p style="display:none">secret</p>', subtype="html"
    )
    document = mail(made)
    assert "secret" not in document.text
    assert [w["code"] for w in document.warnings] == ["hidden_text"]


def test_quoted_text_stays_under_the_name_of_its_author():
    document = mail(
        message(
            "It is 620 bar.\n\nOn Mon, 4 Mar 2024, Cy Low wrote:\n> What is the pressure?\n>\n"
            "> > It was 480 bar.\n> Sure?\n\nYes.\n"
        )
    )
    paths = {document.text[b.span.start : b.span.end]: b.heading_path[1:] for b in document.blocks}
    assert paths["It is 620 bar."] == ()
    assert paths["What is the pressure?"] == ("On Mon, 4 Mar 2024, Cy Low wrote:",)
    assert paths["It was 480 bar."] == ("On Mon, 4 Mar 2024, Cy Low wrote:", "Quoted message")
    assert paths["Yes."] == ("Al Ray",)
    assert ">" not in body_of(document)


@pytest.mark.parametrize(
    "mark",
    [
        "-----Original Message-----",
        "------------------ 原始邮件 ------------------",
        "在 2024年3月4日，李伟 <li@example.org> 写道：",
        "From: Cy Low\nSent: Monday\nTo: Al",
        "发件人: 李伟\n发送时间: 2024年3月4日\n收件人: 王芳",
    ],
)
def test_what_follows_the_mark_of_a_reply_is_told_apart(mark):
    document = mail(message(f"Done.\n\n{mark}\n\nPlease check the valve."))
    last = document.blocks[-1]
    assert document.text.endswith("Please check the valve.")
    assert last.heading_path == ("Pump report", mark.split("\n")[0])


@pytest.mark.parametrize("quote", ['type="cite"', "class=gmail_quote"])
def test_a_reply_below_a_quote_in_html_is_the_senders_again(quote):
    made = message("")
    made.set_content(
        f"<p>On 4 Mar 2024, Cy Low &lt;cy@example.org&gt; wrote:</p><blockquote {quote}><p>What is it?</p>"
        f"<blockquote {quote}><p>Deep.</p></blockquote></blockquote><p>It is 620 bar.</p>"
        f"<blockquote {quote}><p>Sure?</p></blockquote><div>&nbsp;<br></div>",
        subtype="html",
    )
    document = mail(made)
    paths = {document.text[b.span.start : b.span.end]: b.heading_path[1:] for b in document.blocks}
    theirs = ("On 4 Mar 2024, Cy Low <cy@example.org> wrote:",)
    assert (paths["What is it?"], paths["Deep."]) == (theirs, theirs)
    assert paths["It is 620 bar."] == ("Al Ray",)
    assert paths["Sure?"] == ("Quoted message",)
    assert document.text.endswith("Sure?")


@pytest.mark.parametrize(
    "line", ["As Knuth once wrote:", "鲁迅先生曾经写道：", "From: the roof down to the floor."]
)
def test_prose_that_cites_an_author_is_no_reply(line):
    document = mail(message(f"Intro.\n\n{line}\n\nThe pump runs."))
    assert document.blocks[-1].heading_path == ("Pump report",)


def test_flowed_lines_are_joined():
    content = raw(
        "From: a@b.c",
        "Subject: x",
        "MIME-Version: 1.0",
        "Content-Type: text/plain; format=flowed",
        "",
        "The pump ",
        "runs.",
        "Next line.",
    )
    assert read(content, "m.eml").text.endswith("The pump runs.\n\nNext line.")


def test_attachments_become_parts_under_their_names():
    made = message()
    made.add_attachment(
        b"# Seals\n\nChange them yearly.\n",
        maintype="application",
        subtype="octet-stream",
        filename="../../etc/seals.md",
    )
    made.add_attachment(
        pdf([(60, 60, "Valve data")]), maintype="application", subtype="pdf", filename="v.pdf"
    )
    parsed = parse_bytes(made.as_bytes(), "mail.eml")
    document = mail(made)
    seals = next(b for b in document.blocks if document.text[b.span.start :].startswith("Change"))
    assert seals.heading_path == ("Pump report", "seals.md", "Seals")
    assert [b.member for b in parsed.blocks][-2:] == ["v.pdf", "v.pdf"]
    assert parsed.blocks[-1].fragments[0].page == 1
    assert not parsed.partial


def test_a_bad_attachment_is_a_warning_and_the_rest_is_read():
    made = message()
    made.add_attachment(b"%PDF-1.4 broken", maintype="application", subtype="pdf", filename="bad.pdf")
    made.add_attachment(b"PK\x05\x06" + bytes(18), maintype="application", subtype="zip", filename="all.zip")
    made.add_attachment("The valve opens.", filename="note.txt")
    document = mail(made)
    assert document.text.endswith("The valve opens.")
    assert document.partial
    assert [w["code"] for w in document.warnings] == ["attachment_unreadable"] * 2
    assert "bad.pdf" in document.warnings[0]["detail"]
    assert "Unpack it" in document.warnings[1]["detail"]


def test_pictures_of_the_text_are_left_out():
    made = message("")
    made.add_alternative('<p>The pump runs at 30 bar.</p><img src="cid:logo">', subtype="html")
    made.get_payload()[1].add_related(b"\x89PNG\r\n\x1a\n", maintype="image", subtype="png", cid="<logo>")
    document = mail(made)
    assert document.warnings == []
    assert body_of(document) == "The pump runs at 30 bar."


def test_a_forwarded_message_is_a_part_with_its_own_attachments():
    inner = message("Inner text.", Subject="Inner")
    inner.add_attachment("Deep text.", filename="deep.txt")
    outer = message("See below.")
    outer.add_attachment(inner)
    parsed = parse_bytes(outer.as_bytes(), "mail.eml")
    assert {b.text: b.member for b in parsed.blocks}["Deep text."] == "Inner/deep.txt"
    assert {b.text: b.member for b in parsed.blocks}["Inner text."] == "Inner"


def test_messages_inside_messages_end_at_a_depth():
    made = message("Level 0", Subject="M0")
    for level in range(1, MAX_DEPTH + 3):
        outer = message(f"Level {level}", Subject=f"M{level}")
        outer.add_attachment(made)
        made = outer
    document = mail(made)
    assert document.text.count("Level") == MAX_DEPTH + 1
    assert any("nested more than" in w["detail"] for w in document.warnings)
    assert document.partial


def test_attachments_past_the_cap_are_left_out_and_said_so():
    made = message()
    for number in range(MAX_ATTACHMENTS + 5):
        made.add_attachment(f"Text {number}.", filename=f"{number}.txt")
    document = mail(made)
    assert f"Text {MAX_ATTACHMENTS - 1}." in document.text
    assert f"Text {MAX_ATTACHMENTS}." not in document.text
    assert [w["code"] for w in document.warnings] == ["attachment_left_out"]


def test_bytes_of_all_attachments_together_are_capped():
    made = message()
    for number in range(3):
        made.add_attachment("x " * 500, filename=f"{number}.txt")
    options = ParseOptions(Limits(max_inflated_bytes=2500))
    parsed = parse_bytes(made.as_bytes(), "m.eml", options=options)
    assert {b.member for b in parsed.blocks} == {None, "0.txt", "1.txt"}
    assert parsed.partial


def test_an_invitation_is_read_as_text():
    event = (
        "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nSUMMARY:Pump\\, valve\r\n review\r\n"
        "DTSTART;TZID=Asia/Shanghai:20240305T093000\r\nDTEND:20240305T020000Z\r\nLOCATION:七号会议室\r\n"
        'ATTENDEE;CN="Bo":mailto:bo@example.org\r\n'
        "BEGIN:VALARM\r\nDESCRIPTION:ring\r\nEND:VALARM\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
    )
    assert [b.text for b in calendar_blocks(event)] == [
        "Event: Pump, valvereview",
        "Start: 2024-03-05 09:30 (Asia/Shanghai)",
        "End: 2024-03-05 02:00 UTC",
        "Place: 七号会议室",
        "Attendee: Bo <bo@example.org>",
    ]
    made = message("Please come.")
    made.add_alternative(event, subtype="calendar")
    made.add_attachment(event.encode(), maintype="application", subtype="ics", filename="invite.ics")
    assert mail(made).text.count("七号会议室") == 1


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("application/pkcs7-mime; smime-type=enveloped-data; name=smime.p7m", "AAAA"),
        (
            'multipart/encrypted; boundary=x; protocol="application/pgp-encrypted"',
            "--x\r\n\r\nVersion: 1\r\n--x--",
        ),
        ("text/plain", "-----BEGIN PGP MESSAGE-----\r\n\r\nhQEMA\r\n-----END PGP MESSAGE-----"),
    ],
)
def test_an_encrypted_message_says_so(kind, payload):
    content = raw("From: a@b.c", "Subject: x", "MIME-Version: 1.0", f"Content-Type: {kind}", "", payload)
    with pytest.raises(DocumentRejected) as error:
        read(content, "m.eml")
    assert error.value.code == "encrypted"
    assert "decrypted" in error.value.detail


def test_a_signed_text_loses_its_signature():
    text = "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nThe pump runs.\n"
    text += "-----BEGIN PGP SIGNATURE-----\niQEz\n-----END PGP SIGNATURE-----\n"
    assert body_of(mail(message(text))) == "The pump runs."


def test_a_mailbox_is_read_message_by_message():
    box = b"".join(
        b"From al@example.org Mon Mar  4 10:00:00 2024\n"
        + message(f"Text {n}.", Subject=f"S{n}").as_bytes()
        + b"\n"
        for n in range(3)
    )
    parsed = parse_bytes(box, "box.mbox")
    assert [b.member for b in parsed.blocks if b.text.startswith("Text")] == ["S0", "S1", "S2"]


def test_many_recipients_are_counted_and_not_listed():
    to = ", ".join(f"p{n}@example.org" for n in range(60))
    assert "and 40 more" in mail(message(To=to)).text


def test_a_saved_page_is_read_as_its_root_page():
    content = raw(
        "From: <Saved by Blink>",
        "Snapshot-Content-Location: http://example.org/a",
        "Subject: =?utf-8?Q?Pumps?=",
        "MIME-Version: 1.0",
        'Content-Type: multipart/related; type="text/html"; boundary="x"',
        "",
        "--x",
        "Content-Type: text/html; charset=gbk",
        "Content-Transfer-Encoding: quoted-printable",
        "Content-Location: http://example.org/a",
        "",
        "<html><body><p>" + "".join(f"={b:02X}" for b in ZH.encode("gbk")) + "</p></body></html>",
        "--x",
        "Content-Type: text/css",
        "Content-Location: http://example.org/s.css",
        "",
        "p { color: red }",
        "--x--",
    )
    parsed = parse_bytes(content, "page.mhtml")
    assert [b.text for b in parsed.blocks] == [ZH]
    assert (parsed.title, parsed.media_type, parsed.encoding) == ("Pumps", "multipart/related", "gb18030")


def test_the_library_and_we_see_the_same_text():
    made = message("Line one.\n\nLine two.")
    theirs = BytesParser(policy=policy.default).parsebytes(made.as_bytes()).get_body().get_content().split()
    assert body_of(mail(made)).split() == theirs


PIECES = [
    b"From: a@b.c\r\n", b"Subject: =?utf-8?B?5rC0?=\r\n", b"MIME-Version: 1.0\r\n", b"Message-ID: <1>\r\n",
    b"Content-Type: multipart/mixed; boundary=x\r\n", b"Content-Type: text/html\r\n", b"\r\n", b"--x\r\n",
    b"--x--\r\n", b"> quoted\r\n", b"On Monday, Al wrote:\r\n", b"Content-Type: message/rfc822\r\n",
    b"Content-Transfer-Encoding: base64\r\n", b"Content-Disposition: attachment; filename*1*=x\r\n",
    b"AAAA\r\n",
    b"<p>text", b"\xff\xfe\xb2\xe2", b"Content-Type: multipart/alternative; boundary=x\r\n", b"text\r\n",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=30))
def test_any_arrangement_of_parts_gives_a_result_or_a_reason(pieces):
    content = b"From: a@b.c\r\nMessage-ID: <0>\r\n" + b"".join(pieces)
    with suppress(DocumentRejected):
        assert parse_bytes(content, "m.eml").blocks
