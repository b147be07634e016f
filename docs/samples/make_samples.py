"""Write the sample documents that need a program: two PDF and two DOCX files.

Run from the repository root: `python docs/samples/make_samples.py`. The output does not depend on the day it is
run, so a second run changes nothing.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from xml.sax.saxutils import escape

from reportlab import rl_config
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.platypus import Paragraph, SimpleDocTemplate, Spacer, Table, TableStyle

HERE = Path(__file__).resolve().parent
rl_config.invariant = 1

Part = tuple[str, str] | tuple[str, list[list[str]]]

KESTREL: list[Part] = [
    ("title", "Kestrel K7 Dosing Pump: Operating Manual"),
    (
        "text",
        "The Kestrel K7 is a diaphragm dosing pump for water treatment. It doses between 0.4 and 38 litres per "
        "hour against a back pressure of at most 10 bar. This manual covers installation, operation, maintenance "
        "and the fault codes that the pump shows on its display.",
    ),
    ("heading", "1 Installation"),
    (
        "text",
        "Mount the pump upright on a wall or a bracket, no more than 1.5 metres above the lowest level of the tank. "
        "Leave 120 millimetres of free space in front of the pump head, so that the head can be taken off without "
        "loosening the pipes. The ambient temperature must stay between 4 and 45 degrees Celsius.",
    ),
    (
        "text",
        "Connect the suction line with the grey fitting and the discharge line with the black fitting. The two "
        "fittings have different threads and cannot be confused by force.",
    ),
    ("heading", "2 First start"),
    (
        "text",
        "Open the bleed valve by a quarter turn before the first start. Run the pump at full stroke until liquid "
        "leaves the bleed line without bubbles, then close the valve. Bleeding usually takes less than four minutes.",
    ),
    (
        "text",
        "The pump leaves the factory in manual mode with 90 strokes per minute. The maximum is 180 strokes per "
        "minute. Hold the left key for three seconds to change to pulse mode.",
    ),
    ("heading", "3 Maintenance"),
    (
        "text",
        "The diaphragm kit DK-7 must be replaced every 2,000 operating hours or once a year, whichever comes first. "
        "The valve seats are inspected at the same time and cleaned with warm water. Never use solvents on the "
        "valve balls, which are made of ceramic and glued into their cages.",
    ),
    (
        "table",
        [
            ["Part", "Order number", "Replace after"],
            ["Diaphragm kit", "DK-7", "2,000 hours"],
            ["Suction valve", "SV-7", "4,000 hours"],
            ["Discharge valve", "DV-7", "4,000 hours"],
            ["Pump head", "PH-7", "12,000 hours"],
        ],
    ),
    (
        "text",
        "After a diaphragm has been replaced, tighten the six head screws crosswise with a torque of 4.5 newton "
        "metres. Tighten them again after 24 hours of operation.",
    ),
    ("heading", "4 Fault codes"),
    (
        "text",
        "Fault code E12 means that the tank is empty and the pump has stopped to protect the diaphragm. Fault code "
        "E27 means that the back pressure is higher than 10 bar; check whether a valve in the discharge line is "
        "closed. Fault code E31 reports that the motor is hotter than 95 degrees Celsius. The pump starts again by "
        "itself after an E31 once the motor has cooled to 70 degrees.",
    ),
    (
        "text",
        "Every fault is written to the log with the operating hour at which it occurred. The log keeps the last 200 "
        "faults, and it can be read over the service port at the bottom of the housing.",
    ),
    ("heading", "5 Storage"),
    (
        "text",
        "Rinse the pump head with clean water for ten minutes before the pump is stored. A pump that has been stored "
        "for longer than two years needs a new diaphragm kit before it is started.",
    ),
]

XINGLAN: list[Part] = [
    ("title", "星岚天文台参观与观测手册"),
    (
        "text",
        "星岚天文台建在海拔三千一百二十米的星岚山顶。天文台有三座圆顶，其中最大的一座安装了口径一点六米的反射望远镜，"
        "取名“听雪”。听雪望远镜于二〇一八年开始观测，主要用于寻找近地小行星。",
    ),
    ("heading", "一、开放时间"),
    (
        "text",
        "天文台每周三至周日对公众开放，开放时间为上午十点至下午四点。夜间观测活动只在每月农历二十五日至次月初五之间举行，"
        "因为这几天月光最弱。遇到大风或者降雪，夜间活动取消，门票可以改期一次。",
    ),
    (
        "text",
        "每场夜间观测活动最多接待三十六人，需要提前七天预约。十岁以下的儿童必须由成人陪同。",
    ),
    ("heading", "二、交通"),
    (
        "text",
        "从山脚的云台镇到天文台有一条二十二公里的盘山公路，班车每天往返四次，单程五十分钟。私家车只能停在半山的松坪停车场，"
        "再换乘电动摆渡车上山。摆渡车最后一班下山时间是二十二点三十分。",
    ),
    ("heading", "三、观测须知"),
    (
        "text",
        "圆顶内禁止使用白光手电，只能使用红光手电。相机的闪光灯必须关闭。望远镜转动时，请站在黄线以外。",
    ),
    (
        "text",
        "山顶夜间气温比山脚低十五度左右，即使在七月也可能降到五度以下。天文台在服务台免费借用羽绒服，押金为一百元。",
    ),
    ("heading", "四、仪器"),
    (
        "table",
        [
            ["望远镜", "口径", "用途"],
            ["听雪", "一点六米", "寻找近地小行星"],
            ["观澜", "零点六米", "变星测光"],
            ["拾光", "零点三米", "公众观测"],
        ],
    ),
    (
        "text",
        "听雪望远镜的相机工作在零下一百一十度，由液氮冷却，每三天补充一次液氮。到目前为止，听雪一共发现了四十七颗近地小行星。",
    ),
]

NORTHGATE: list[Part] = [
    ("title", "Northgate Waterworks: Stores Plan"),
    (
        "text",
        "The central store of Northgate Waterworks stands behind the filter hall. It holds spare parts, chemicals and "
        "protective clothing for all seven pumping stations. The storekeeper on duty can be reached at extension 418.",
    ),
    ("heading", "Where things are"),
    (
        "text",
        "Bays are named by a letter for the aisle and a number for the position. Spare parts for dosing pumps are in "
        "aisle C. The diaphragm kit DK-7 for the Kestrel K7 is kept in bay C14, and the valves SV-7 and DV-7 are kept in "
        "bay C15. Pump heads are too heavy for the shelves and stand on the floor in bay F2.",
    ),
    (
        "table",
        [
            ["Bay", "Content", "Minimum stock"],
            ["C14", "Diaphragm kit DK-7", "12 pieces"],
            ["C15", "Valves SV-7 and DV-7", "8 pieces each"],
            ["D03", "Chlorine test strips", "40 boxes"],
            ["F2", "Pump head PH-7", "2 pieces"],
        ],
    ),
    ("heading", "Taking and returning parts"),
    (
        "text",
        "Every part that leaves the store is scanned at the gate. A part that is needed at night may be taken without "
        "a signature, but the work order must be handed in by noon of the next day. Parts that were not used go back "
        "to the store within five working days.",
    ),
    ("heading", "Chemicals"),
    (
        "text",
        "Sodium hypochlorite is stored in the cool room at no more than 15 degrees Celsius, because it loses its "
        "strength in warmth. Two people must be present when a drum is opened. The emergency shower beside the cool "
        "room is tested every Monday.",
    ),
    ("heading", "Stocktaking"),
    (
        "text",
        "The whole store is counted on the second Saturday of January and July. A difference of more than 3 percent in "
        "one aisle leads to a second count by another team.",
    ),
]

YUNHE: list[Part] = [
    ("title", "云禾仓储公司安全管理规定"),
    (
        "text",
        "本规定适用于云禾仓储公司的全部五座仓库。所有员工、承包商和访客进入库区前都要接受十五分钟的安全告知。",
    ),
    ("heading", "第一章 出入库区"),
    (
        "text",
        "进入库区必须佩戴安全帽和反光背心。访客由接待人员全程陪同，不得单独行动。库区内车辆限速每小时八公里。",
    ),
    ("heading", "第二章 叉车作业"),
    (
        "text",
        "叉车司机必须持证上岗，证件每四年复审一次。叉车充电区设在三号仓库的西侧，充电时必须打开通风机。"
        "叉车载货高度不得超过货叉架顶部，夜间作业必须打开蓝色警示灯。",
    ),
    ("heading", "第三章 消防"),
    (
        "text",
        "灭火器每月检查一次，压力表指针必须在绿色区域。消防通道的宽度不得小于四米，任何时候不得堆放货物。"
        "仓库每季度举行一次疏散演练，全体人员应当在六分钟内到达集合点。",
    ),
    (
        "table",
        [
            ["仓库", "存放货物", "集合点"],
            ["一号仓库", "日用百货", "东门广场"],
            ["二号仓库", "电子产品", "东门广场"],
            ["三号仓库", "化工原料", "北侧停车场"],
            ["四号仓库", "粮油食品", "南门花坛"],
            ["五号仓库", "家具建材", "南门花坛"],
        ],
    ),
    ("heading", "第四章 化工原料"),
    (
        "text",
        "三号仓库的化工原料按照酸、碱、溶剂分区存放，区与区之间隔开五米。室内湿度超过百分之七十时，值班员要启动除湿机。"
        "发现泄漏的，应当先疏散人员，再用吸附棉围堵，并在十分钟内报告安全主管。",
    ),
    ("heading", "第五章 处罚"),
    (
        "text",
        "第一次违反本规定的，给予口头警告；第二次违反的，停工培训一天；第三次违反的，调离岗位。",
    ),
]


def write_pdf(path: Path, parts: list[Part], font: str, bold: str) -> None:
    """Lay `parts` out on A4 with a running footer."""
    wrap = "CJK" if font == "STSong-Light" else None
    styles = {
        "title": ParagraphStyle(
            "title", fontName=bold, fontSize=18, leading=24, spaceAfter=12, wordWrap=wrap
        ),
        "heading": ParagraphStyle(
            "heading", fontName=bold, fontSize=13, leading=18, spaceBefore=10, spaceAfter=4, wordWrap=wrap
        ),
        "text": ParagraphStyle("text", fontName=font, fontSize=10.5, leading=15, spaceAfter=6, wordWrap=wrap),
    }
    story: list[object] = []
    for kind, content in parts:
        if isinstance(content, str):
            story.append(Paragraph(escape(content), styles[kind]))
            continue
        table = Table(content, hAlign="LEFT", colWidths=[140] * len(content[0]))
        table.setStyle(
            TableStyle([("FONT", (0, 0), (-1, -1), font, 10), ("GRID", (0, 0), (-1, -1), 0.5, "#888888")])
        )
        story += [table, Spacer(1, 8)]
    title = next(content for kind, content in parts if kind == "title")

    def footer(canvas: object, page: object) -> None:
        canvas.setFont(font, 8)  # type: ignore[attr-defined]  # reportlab's canvas carries no types
        canvas.drawCentredString(A4[0] / 2, 28, f"- {page.page} -")  # type: ignore[attr-defined]  # as above

    document = SimpleDocTemplate(str(path), pagesize=A4, title=str(title), author="", margins=60)
    document.build(story, onFirstPage=footer, onLaterPages=footer)


def write_docx(path: Path, parts: list[Part]) -> None:
    """Write the smallest package that word processors open: styles, headings, text and tables."""
    body = "".join(_docx_part(kind, content) for kind, content in parts)
    files = {
        "[Content_Types].xml": (
            '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
            '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
            '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            '<Default Extension="xml" ContentType="application/xml"/>'
            '<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.'
            'wordprocessingml.document.main+xml"/><Override PartName="/word/styles.xml" ContentType="application/'
            'vnd.openxmlformats-officedocument.wordprocessingml.styles+xml"/></Types>'
        ),
        "_rels/.rels": (
            '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
            '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
            '<Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/'
            'officeDocument" Target="word/document.xml"/></Relationships>'
        ),
        "word/_rels/document.xml.rels": (
            '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
            '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
            '<Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/'
            'styles" Target="styles.xml"/></Relationships>'
        ),
        "word/styles.xml": (
            f'<?xml version="1.0" encoding="UTF-8" standalone="yes"?><w:styles {_W}>'
            + _style("Title", "Title", 36)
            + _style("Heading1", "heading 1", 28)
            + "</w:styles>"
        ),
        "word/document.xml": (
            f'<?xml version="1.0" encoding="UTF-8" standalone="yes"?><w:document {_W}><w:body>{body}'
            "<w:sectPr/></w:body></w:document>"
        ),
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)
    path.write_bytes(buffer.getvalue())


_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def _style(style_id: str, name: str, half_points: int) -> str:
    return (
        f'<w:style w:type="paragraph" w:styleId="{style_id}"><w:name w:val="{name}"/>'
        f'<w:rPr><w:b/><w:sz w:val="{half_points}"/></w:rPr></w:style>'
    )


def _docx_part(kind: str, content: str | list[list[str]]) -> str:
    if isinstance(content, str):
        style = {"title": "Title", "heading": "Heading1"}.get(kind)
        properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
        return f'<w:p>{properties}<w:r><w:t xml:space="preserve">{escape(content)}</w:t></w:r></w:p>'
    rows = []
    for index, row in enumerate(content):
        header = "<w:trPr><w:tblHeader/></w:trPr>" if index == 0 else ""
        cells = "".join(f"<w:tc><w:p><w:r><w:t>{escape(cell)}</w:t></w:r></w:p></w:tc>" for cell in row)
        rows.append(f"<w:tr>{header}{cells}</w:tr>")
    return f'<w:tbl><w:tblPr><w:tblStyle w:val="TableGrid"/></w:tblPr>{"".join(rows)}</w:tbl>'


def main() -> None:
    """Write all four files beside this one."""
    pdfmetrics.registerFont(UnicodeCIDFont("STSong-Light"))
    write_pdf(HERE / "kestrel-k7-manual.pdf", KESTREL, "Helvetica", "Helvetica-Bold")
    write_pdf(HERE / "xinglan-observatory.pdf", XINGLAN, "STSong-Light", "STSong-Light")
    write_docx(HERE / "northgate-stores.docx", NORTHGATE)
    write_docx(HERE / "yunhe-warehouse-safety.docx", YUNHE)


if __name__ == "__main__":
    main()
