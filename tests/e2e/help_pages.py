"""Deterministic input for long runs: Chinese help pages in HTML, no two alike, and a long PDF manual.

The pages look like those of an office suite's help: navigation around the content, a title, sections with
steps, notes, a table of commands, related topics.
"""

from __future__ import annotations

import io
import random

PROGRAMS = ("文字处理", "电子表格", "演示文稿", "绘图", "公式编辑", "数据库")
OBJECTS = (
    "页眉", "页脚", "目录", "脚注", "书签", "段落样式", "字符样式", "单元格", "数据透视表", "图表", "图例", "母版",
    "幻灯片切换", "动画", "连接线", "图层", "公式", "矩阵", "查询", "报表", "表单", "主键", "宏", "批注", "修订",
    "交叉引用", "索引", "自动更正", "查找替换", "打印范围", "条件格式", "有效性", "筛选器", "分类汇总", "情景方案",
    "单变量求解", "数字签名", "导航器", "样式列表", "工具栏", "标尺", "网格线", "文本框", "艺术字", "水印", "页码",
)  # fmt: skip
ACTIONS = (
    "插入",
    "删除",
    "移动",
    "复制",
    "锁定",
    "隐藏",
    "更新",
    "导出",
    "合并",
    "拆分",
    "对齐",
    "重命名",
    "排序",
    "保护",
)
MENUS = ("文件", "编辑", "视图", "插入", "格式", "表格", "工具", "窗口", "数据", "幻灯片")
KEYS = ("Ctrl", "Shift", "Alt", "F2", "F4", "F5", "F7", "F9", "F11", "Enter", "Tab", "Esc", "Delete", "Home")
REASONS = (
    "这样可以避免在多人协作时互相覆盖内容", "否则打印预览中看不到最新的结果", "因为该设置只对当前文档有效",
    "如果文档带有密码，需要先输入密码", "该选项在只读模式下不可用", "更改会立即应用到所有使用它的页面",
    "较大的文件可能需要几秒钟", "撤销一次即可恢复原来的状态", "旧版本的文件格式不保存这项信息",
)  # fmt: skip
_NAVIGATION = "".join(f'<li><a href="/{n}">{name}帮助</a></li>' for n, name in enumerate(PROGRAMS))


def page(number: int) -> tuple[str, str]:
    """Name and HTML of help page `number`; 1 to 5 kB.

    Of the size of the pages in Debian's libreoffice-help-zh-cn: 900 characters and 6 to 7 passages on average.
    """
    told = random.Random(f"page {number}")
    program, thing = told.choice(PROGRAMS), told.choice(OBJECTS)
    title = f"{told.choice(ACTIONS)}{thing}：{program}主题 {number:04d}"
    sections = "".join(_section(told, number, n) for n in range(told.randint(0, 3)))
    html = f"""<!DOCTYPE html><html lang="zh-CN"><head><meta charset="utf-8"><title>{title}</title></head><body>
<header><nav><ul>{_NAVIGATION}</ul></nav><form><input placeholder="搜索帮助"></form></header>
<main><h1>{title}</h1><p>{_sentence(told)}{_sentence(told)}主题编号为 T{number:04d}，{_sentence(told)}</p>
{sections}<h2>相关主题</h2><ul>{"".join(f"<li>{told.choice(ACTIONS)}{told.choice(OBJECTS)}</li>" for _ in range(3))}</ul>
</main><footer><p>请支持我们！ 本帮助系统由社区维护。</p></footer></body></html>"""
    return f"help-{number:04d}.html", html


def _section(told: random.Random, number: int, ordinal: int) -> str:
    steps = "".join(
        f"<li>选择<b>{told.choice(MENUS)} - {told.choice(ACTIONS)}{told.choice(OBJECTS)}</b>。{_sentence(told)}</li>"
        for _ in range(told.randint(1, 3))
    )
    heading = f"<h2>{ordinal + 1}. {told.choice(ACTIONS)}{told.choice(OBJECTS)}</h2>"
    body = f"<p>{''.join(_sentence(told) for _ in range(told.randint(1, 3)))}</p><ol>{steps}</ol>"
    if told.random() < 0.5:
        rows = "".join(
            f"<tr><td>{told.choice(ACTIONS)}{told.choice(OBJECTS)}</td><td>{told.choice(KEYS)}+{told.choice(KEYS)}</td>"
            f"<td>{number * 7 + n}</td></tr>"
            for n in range(told.randint(2, 8))
        )
        body += f"<table><tr><th>命令</th><th>快捷键</th><th>编号</th></tr>{rows}</table>"
    return heading + body


def _sentence(told: random.Random) -> str:
    first, second = told.sample(OBJECTS, 2)
    return (
        f"要{told.choice(ACTIONS)}{first}，请先在“{told.choice(MENUS)}”菜单中打开{second}，"
        f"再按 {told.choice(KEYS)}+{told.choice(KEYS)} 键{told.randint(2, 90)} 次以内，{told.choice(REASONS)}。"
    )


def manual(pages: int) -> bytes:
    """A PDF manual of `pages` pages in two languages, with headings, paragraphs and a running header."""
    from reportlab import rl_config
    from reportlab.lib.pagesizes import A4
    from reportlab.pdfbase import pdfmetrics
    from reportlab.pdfbase.cidfonts import UnicodeCIDFont
    from reportlab.pdfgen.canvas import Canvas

    rl_config.invariant = 1
    pdfmetrics.registerFont(UnicodeCIDFont("STSong-Light"))
    told = random.Random("manual")
    sink = io.BytesIO()
    canvas = Canvas(sink, pagesize=A4, invariant=1)
    for number in range(1, pages + 1):
        canvas.setFont("STSong-Light", 8)
        canvas.drawString(60, 810, "办公套件参考手册")
        canvas.drawRightString(535, 30, str(number))
        canvas.setFont("STSong-Light", 15)
        canvas.drawString(60, 770, f"{number}. {told.choice(ACTIONS)}{told.choice(OBJECTS)}")
        canvas.setFont("STSong-Light", 10)
        body = "".join(_sentence(told) for _ in range(12)) + f"本页的校验码是 V{number:04d}。"
        for line, at in enumerate(range(0, len(body), 46)):
            canvas.drawString(60, 740 - 16 * line, body[at : at + 46])
        canvas.showPage()
    canvas.save()
    return sink.getvalue()
