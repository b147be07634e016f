"""Units of measure, Chinese and English, each with its dimension and its factor to the base unit."""

from __future__ import annotations

from decimal import Decimal

UNITS: dict[str, tuple[str, Decimal]] = {}  # surface → (dimension, factor to its base)


def _unit(dimension: str, factor: str, *surfaces: str) -> None:
    for surface in surfaces:
        UNITS[surface] = (dimension, Decimal(factor))


_unit("length", "1", "m", "metre", "metres", "meter", "meters", "米", "公尺")
_unit("length", "1000", "km", "kilometre", "kilometres", "kilometer", "kilometers", "公里", "千米")
_unit("length", "0.01", "cm", "centimetre", "centimetres", "centimeter", "centimeters", "厘米")
_unit("length", "0.001", "mm", "millimetre", "millimetres", "millimeter", "millimeters", "毫米")
_unit("length", "0.3048", "ft", "foot", "feet", "英尺")
_unit("length", "0.0254", "inch", "inches", "英寸")
_unit("length", "1609.344", "mi", "mile", "miles", "英里")
_unit("length", "500", "里")
_unit("mass", "1", "kg", "kilogram", "kilograms", "公斤", "千克")
_unit("mass", "0.001", "g", "gram", "grams", "克")
_unit("mass", "1000", "t", "ton", "tons", "tonne", "tonnes", "吨")
_unit("mass", "0.5", "斤")
_unit("mass", "0.45359237", "lb", "lbs", "pound", "pounds", "磅")
_unit("share", "0.01", "%", "percent", "per cent", "％")
_unit("time", "1", "s", "second", "seconds", "sec", "秒", "秒钟")
_unit("time", "60", "min", "mins", "minute", "minutes", "分钟")
_unit("time", "3600", "h", "hr", "hrs", "hour", "hours", "小时", "个小时")
_unit("time", "86400", "day", "days", "天")
_unit("time", "604800", "week", "weeks", "周", "星期")
_unit("months", "1", "month", "months", "个月")
_unit("months", "12", "years", "year", "年间", "周年")
_unit("temperature", "1", "°c", "℃", "celsius", "摄氏度")
_unit("temperature_f", "1", "°f", "fahrenheit", "华氏度")
_unit("pressure", "1", "bar")
_unit("power", "1", "w", "watt", "watts", "瓦")
_unit("power", "1000", "kw", "kilowatt", "kilowatts", "千瓦")
_unit("power", "1000000", "mw", "megawatt", "megawatts", "兆瓦")
_unit("volume", "1", "l", "litre", "litres", "liter", "liters", "升")
_unit("volume", "0.001", "ml", "millilitre", "millilitres", "milliliter", "milliliters", "毫升")
_unit("money_cny", "1", "yuan", "rmb", "元", "人民币")
_unit("money_usd", "1", "dollar", "dollars", "usd", "美元")
_unit("money_eur", "1", "euro", "euros", "eur", "欧元")
