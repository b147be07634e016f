import io
import struct
import tracemalloc
import zipfile

import pytest

from core.errors import DocumentRejected
from ingest.parse.model import Limits
from ingest.parse.zip_package import MemberDamaged, ZipPackage, safe_xml


def packed(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def reason(content: bytes, limits: Limits | None = None, read: str = "") -> str:
    with pytest.raises(DocumentRejected) as error:
        package = ZipPackage(content, limits or Limits(), "DOCX file")
        package.read(read)
    return error.value.code


def test_members_are_read_by_name_as_bytes_stream_and_xml():
    package = ZipPackage(packed({"a.xml": b"<a>x<!-- c --></a>", "b.bin": b"\0" * 200_000}), Limits(), "file")
    assert package.xml("a.xml").text == "x"
    assert package.xml("none.xml") is None
    with package.open("b.bin") as stream:
        assert sum(map(len, iter(lambda: stream.read(1000), b""))) == 200_000
    assert package.size("b.bin") == 200_000


def test_declared_and_real_sizes_are_capped():
    bomb = packed({"a": b"\0" * 5_000_000})
    assert reason(bomb, Limits(max_inflated_bytes=1 << 20)) == "too_big"
    assert reason(bomb, Limits(max_inflation_ratio=10), "a") == "too_big"
    assert reason(packed({str(i): b"" for i in range(9)}), Limits(max_members=8)) == "too_big"


def test_all_reads_together_keep_the_cap():
    package = ZipPackage(packed({"a": b"\0" * 600_000}), Limits(max_inflated_bytes=1 << 20), "file")
    package.read("a")
    with pytest.raises(DocumentRejected, match="inflates past the cap"):
        package.read("a")


def test_an_undeclared_bomb_stops_while_it_inflates():
    bomb = bytearray(packed({"a": b"\0" * 50_000_000}))
    at = bomb.rindex(b"PK\x01\x02")
    bomb[at + 24 : at + 28] = struct.pack("<I", 1000)  # the size that the directory declares
    tracemalloc.start()
    with pytest.raises(MemberDamaged):
        ZipPackage(bytes(bomb), Limits(), "file").read("a")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


def test_a_thousandfold_member_is_refused_in_flat_memory(shared_data):
    path = shared_data / "cases/D21/ratio_20mb.docx"
    content = path.read_bytes()
    tracemalloc.start()
    assert reason(content, Limits(max_inflated_bytes=10 << 20), "word/document.xml") == "too_big"
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


def test_hostile_names_are_only_keys():
    package = ZipPackage(packed({"/abs": b"1", "../up": b"2", "w\\b": b"3"}), Limits(), "file")
    assert [package.read(n) for n in ("abs", "../up", "w/b")] == [b"1", b"2", b"3"]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_of_a_name_given_twice_one_member_counts():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a", "first")
        archive.writestr("a", "second")
    assert ZipPackage(buffer.getvalue(), Limits(), "file").read("a") == b"second"


def test_overlapping_members_are_refused():
    content = bytearray(packed({"a": b"x" * 100, "b": b"y" * 100}, zipfile.ZIP_STORED))
    first = content.index(b"PK\x01\x02")
    content[first + 20 : first + 24] = struct.pack("<I", 150)  # "a" now reaches into "b"
    assert reason(bytes(content)) == "refused"


def test_encrypted_and_damaged_members_say_so():
    content = bytearray(packed({"a": b"x" * 1000}))
    assert reason(bytes(content), read="b") == "corrupt"
    flipped = content.copy()
    flipped[33] ^= 0xFF
    assert reason(bytes(flipped), read="a") == "corrupt"
    content[content.index(b"PK\x01\x02") + 8] |= 1
    assert reason(bytes(content), read="a") == "encrypted"


def test_damage_is_told_apart_from_refusal():
    package = ZipPackage(packed({"a.xml": b"<a>"}), Limits(), "file")
    with pytest.raises(MemberDamaged) as error:
        package.xml("a.xml")
    assert error.value.member == "a.xml"


@pytest.mark.parametrize(
    "text",
    [
        "<!DOCTYPE a><a/>",
        "<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>",
        "<!-- " + "x" * 5000 + " --><!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>",
        "<!DOCTYPE a SYSTEM 'file:///etc/passwd'><a/>",
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_types_and_entities_are_refused_in_every_encoding(text, encoding):
    with pytest.raises(DocumentRejected) as error:
        safe_xml(text.encode(encoding))
    assert error.value.code == "refused"


def test_a_bare_type_may_be_allowed_but_never_entities():
    assert safe_xml(b"<!DOCTYPE ncx PUBLIC 'p' 'http://x/y.dtd'><a>t</a>", allow_doctype=True).text == "t"
    with pytest.raises(DocumentRejected):
        safe_xml(b"<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>", allow_doctype=True)


def test_depth_is_bounded():
    with pytest.raises(ValueError, match="depth"):
        safe_xml(b"<a>" * 5000 + b"</a>" * 5000)
