"""The language of a piece of text, as far as the engine treats languages apart."""

from __future__ import annotations

import regex

from core.types import Lang

_HAN = regex.compile(r"\p{Han}")
_KANA_OR_HANGUL = regex.compile(r"[\p{Hiragana}\p{Katakana}\p{Hangul}]")
# Characters that neither Chinese script has: one is enough to tell Japanese in Han characters alone.
_JAPANESE_FORMS = regex.compile(
    "[効実対関検発続読処囲択単圧応拡権覧両様済経仮価壊帰従戻挿継訳遅釈収増専戦挙歴毎気満総転辺隠黙伝児図奨巻帯広廃拠撃県聴"
    "観頼乗亜厳団徳悪抜楽歩畳竜縦覚譲軽鉄険験黒円剣労営弾徴晩曽粛縁蔵薬郷銭闘雑顕仏勧売寛巌庁懐捜斉栄歓歳沢渉焼穏絵脳豊"
    "陥霊剤圏塩弁恵拝掲揺暦粋荘賛鶏摂暁浄渇犠砕縄繊繍逓駆齢亀勅勲唖噛塁壌壱嬢尭巣弐悩払掻撹斎桜桝桟槙歯渋渓滝瀬猟獣痩稲穂"
    "穣臓艶薫蛍蝋覇酔醤醸鉱鋳錬駅騒髄髪鴎鹸]"
)
_WORD = regex.compile(r"[\p{Latin}\p{Cyrillic}\p{Greek}\p{Arabic}\p{Hebrew}\p{Devanagari}][\p{L}\p{M}'’]*")
_FUNCTION_WORDS = (
    "the of and to in a is that for it as was with be by on not he his but at are this have from or had an "
    "they which you were her all she there would their we him been has when who will more no if out so said "
    "what up its about into than them can only other new some could time these two may then do any my now "
    "such like our over me even most made after also did many before must through where how much each your "
    "every one should"
)
_ENGLISH = frozenset(_FUNCTION_WORDS.split())
# Labels and table rows have few function words; below this many words Latin letters count as English.
_MIN_WORDS_TO_JUDGE = 12
_ENGLISH_SHARE = 0.12


def language_of(text: str) -> Lang:
    """Return `ZH`, `EN`, or `UND` for anything else.

    A Han character counts like a word. Kana or Hangul beside Han mean Japanese or Korean, so `UND`, and so
    do characters in their Japanese form.
    """
    sample = text[:20_000]
    is_ascii = sample.isascii()
    han = 0 if is_ascii else len(_HAN.findall(sample))
    others = 0 if is_ascii else len(_KANA_OR_HANGUL.findall(sample))
    words = _WORD.findall(sample)
    if others > 0.1 * (han + others) and others > len(words):
        return Lang.UND
    if han and han >= len(words):
        return Lang.UND if _is_japanese(sample, han) else Lang.ZH
    latin = [w for w in words if w[0].isascii() or "\u00c0" <= w[0] <= "\u024f"]
    if not words or len(latin) < 0.6 * len(words):
        return Lang.UND
    if len(words) < _MIN_WORDS_TO_JUDGE:
        return Lang.EN if all(w.isascii() for w in words) else Lang.UND
    share = sum(w.lower() in _ENGLISH for w in words) / len(words)
    return Lang.EN if share >= _ENGLISH_SHARE or (share >= 0.04 and len(words) < 60) else Lang.UND


def _is_japanese(text: str, han: int) -> bool:
    """A Chinese text may name a Japanese place; a Japanese one has such a form in every ten characters."""
    return len(_JAPANESE_FORMS.findall(text)) > 0.04 * han
