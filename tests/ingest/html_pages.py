"""Small pages of the kinds that people save: what a reader wants of each, and what stands around it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Page:
    """A page; `wanted` is its content, `around` must not be read as such."""

    name: str
    html: str
    wanted: tuple[str, ...]
    around: tuple[str, ...]


NEWS_ZH = Page(
    "news_zh",
    """<!DOCTYPE html><html lang="zh-CN"><head><meta charset="utf-8"><title>城东跨河大桥今日合龙_沙洲晚报网</title>
<meta property="og:site_name" content="沙洲晚报网"><meta name="description" content="城东大桥主跨合龙。">
<script>var hot="热搜词";</script></head><body>
<div class="top-bar"><a href="/login">登录</a><a href="/reg">注册</a><a href="/app">客户端下载</a></div>
<div class="nav"><ul><li><a href="/">首页</a></li><li><a href="/gn">国内</a></li><li><a href="/cj">财经</a></li>
<li><a href="/ty">体育</a></li></ul></div>
<div class="crumbs">当前位置：<a href="/">首页</a> &gt; <a href="/bd">本地新闻</a> &gt; 正文</div>
<div class="wrap"><div class="left"><h1>城东跨河大桥今日合龙</h1>
<div class="info"><span>2024-06-18 09:42</span> <span>来源：沙洲晚报</span> <span>作者：林远山</span></div>
<div class="article-content" id="artibody">
<p>　　本报讯　昨日上午十时，随着最后一段钢箱梁缓缓就位，城东跨河大桥主跨顺利合龙，比计划提前了二十一天。</p>
<p>　　大桥全长一千八百六十米，主跨三百二十米，双向六车道，两侧各设三米宽的人行道和非机动车道。</p>
<div class="pic"><img src="a.jpg"><p class="caption">工人在桥面上进行焊接作业。</p></div>
<p>　　项目经理介绍，合龙精度控制在五毫米以内，接下来将进行桥面铺装和护栏安装，预计年底通车。</p>
<p class="editor">（责任编辑：周宁）</p></div>
<div class="share">分享到：<a href="#">微信</a><a href="#">微博</a><a href="#">QQ空间</a></div>
<div class="related"><h3>相关新闻</h3><ul><li><a href="/1">城西快速路改造工程启动公告发布</a></li>
<li><a href="/2">地铁三号线延长段开始铺轨作业</a></li><li><a href="/3">老城区停车位新增两千个</a></li></ul></div>
<div id="comments"><h3>网友评论</h3><p>终于要通车了，以后上班可以少绕二十分钟的路。</p><p>希望人行道晚上有灯。</p></div></div>
<div class="right sidebar"><h3>24小时热榜</h3><ul><li><a href="/h1">高考分数线公布时间确定</a></li>
<li><a href="/h2">明天起气温将明显下降</a></li><li><a href="/h3">这条路本周末封闭施工</a></li></ul></div></div>
<div class="footer">版权所有 沙洲晚报网 苏ICP备0000000号 违法和不良信息举报电话</div></body></html>""",
    (
        "城东跨河大桥今日合龙",
        "主跨顺利合龙，比计划提前了二十一天",
        "双向六车道",
        "工人在桥面上进行焊接作业",
        "预计年底通车",
    ),
    (
        "客户端下载",
        "当前位置",
        "分享到",
        "地铁三号线",
        "热榜",
        "高考分数线",
        "少绕二十分钟",
        "ICP备",
        "热搜词",
    ),
)

NOTICE_ZH = Page(
    "notice_zh",
    """<!DOCTYPE html><html><head><meta charset="utf-8"><title>关于调整办事大厅服务时间的通知</title>
<meta name="PubDate" content="2024-03-05 10:20"><meta name="ContentSource" content="市政务服务中心">
<meta name="Author" content="办公室"></head><body><div class="header"><div class="logo">青岚市人民政府</div>
<ul class="menu"><li><a href="/">首页</a></li><li><a href="/zw">政务公开</a></li><li><a href="/fw">办事服务</a></li></ul></div>
<div class="position">您所在的位置：<a href="/">首页</a> &gt;&gt; <a href="/tz">通知公告</a></div>
<div class="con"><table class="head" border="1"><tr><th>索引号</th><td>QL-2024-0031</td><th>发布机构</th><td>市政务服务中心</td></tr>
<tr><th>成文日期</th><td>2024年3月4日</td><th>文号</th><td>青政服〔2024〕7号</td></tr></table>
<h1>关于调整办事大厅服务时间的通知</h1>
<div id="zoom" class="TRS_Editor">各区县人民政府，市政府各部门：<br>　　为方便群众办事，经研究，决定自2024年4月1日起调整办事大厅服务时间。现将有关事项通知如下：<br>
　　一、工作日服务时间为上午八时三十分至下午五时三十分，中午不休息。<br>　　二、周六上午九时至十二时开放社会保险、不动产登记两个窗口。<br>
　　三、法定节假日不开放，紧急事项可拨打值班电话。<br><br>　　特此通知。<br><p style="text-align:right">青岚市政务服务中心<br>2024年3月4日</p>
<p>附件：<a href="a.docx">各窗口服务时间一览表.docx</a></p></div>
<div class="tools"><a href="#">打印本页</a> <a href="#">关闭窗口</a></div></div>
<div class="foot"><p>主办：青岚市人民政府办公室 网站标识码：0000000001 公安备案</p></div></body></html>""",
    (
        "QL-2024-0031",
        "青政服〔2024〕7号",
        "各区县人民政府，市政府各部门",
        "决定自2024年4月1日起调整办事大厅服务时间",
        "中午不休息",
        "不动产登记两个窗口",
        "特此通知",
        "各窗口服务时间一览表",
    ),
    ("政务公开", "您所在的位置", "打印本页", "网站标识码"),
)

PRODUCT_ZH = Page(
    "product_zh",
    """<html><head><meta charset="gbk"><title>云汐 保温杯 480ml - 示例商城</title></head><body>
<div id="header"><form action="/s"><input name="q"><button>搜索</button></form><a href="/cart">购物车</a></div>
<div class="breadcrumb"><a href="/">全部商品</a><a href="/c">水具</a><a href="/c2">保温杯</a></div>
<div class="product"><h1>云汐 保温杯 480ml</h1><p class="price">售价 <b>￥129.00</b></p>
<p>内胆采用三一六不锈钢，六小时后水温不低于六十五摄氏度，杯盖可单手开启。</p>
<table class="spec"><caption>规格参数</caption><tr><th>容量</th><td>480 毫升</td></tr><tr><th>净重</th><td>265 克</td></tr>
<tr><th>材质</th><td>三一六不锈钢、食品级硅胶</td></tr></table>
<h2>使用说明</h2><ol><li>首次使用前用温水清洗。</li><li>不要放入微波炉加热。</li></ol></div>
<div class="guess-like"><h3>猜你喜欢</h3><ul><li><a href="/1">折叠雨伞</a></li><li><a href="/2">桌面台灯</a></li><li><a href="/3">野餐垫</a></li></ul></div>
<div class="hot-list"><h3>热销榜</h3><ol><li><a href="/4">加湿器</a></li><li><a href="/5">电热水壶</a></li><li><a href="/6">收纳箱</a></li></ol></div>
<div class="cookie-bar">本网站使用 Cookie 改善体验，点击同意继续。<button>同意</button></div>
<div id="footer">客服热线 400-000-0000 © 示例商城</div></body></html>""",
    (
        "云汐 保温杯 480ml",
        "129.00",
        "六小时后水温不低于六十五摄氏度",
        "规格参数",
        "265 克",
        "不要放入微波炉加热",
    ),
    ("购物车", "全部商品", "猜你喜欢", "桌面台灯", "热销榜", "电热水壶", "Cookie", "客服热线"),
)

FORUM_ZH = Page(
    "forum_zh",
    """<html><head><meta charset="utf-8"><title>电瓶车冬天续航掉一半正常吗 - 车友论坛</title></head><body>
<div id="nv"><ul><li><a href="/">论坛</a></li><li><a href="/g">导读</a></li><li><a href="/s">搜索</a></li></ul></div>
<div id="postlist"><h1>电瓶车冬天续航掉一半正常吗</h1>
<div id="post_1" class="plhin"><div class="authi"><a href="/u1">老周</a> 发表于 2023-12-20 21:14</div><div class="t_f">
刚买半年的电瓶车，夏天能跑七十公里，最近零下五度只能跑三十五公里，是不是电池有问题？充电也比以前慢。</div></div>
<div id="post_2" class="plhin"><div class="authi"><a href="/u2">修车的阿强</a> 发表于 2023-12-20 22:03</div><div class="t_f">
正常。铅酸电池零下时容量只有标称的五到七成，把车推进室内充满，出门前预热，一般能回到五十公里左右。</div></div>
<div id="post_3" class="plhin"><div class="authi"><a href="/u3">小鹿</a> 发表于 2023-12-21 08:40</div><div class="t_f">
我的是锂电，同样的温度掉三成。可以查一下胎压，冬天胎压低也费电。</div></div></div>
<div id="ft">Powered by 论坛程序 <a href="/c">联系我们</a> <a href="/m">手机版</a> <a href="/r">小黑屋</a></div></body></html>""",
    ("电瓶车冬天续航掉一半正常吗", "夏天能跑七十公里", "只有标称的五到七成", "冬天胎压低也费电"),
    ("导读", "小黑屋"),
)

BLOG_ZH = Page(
    "blog_zh",
    """<html lang="zh"><head><meta charset="utf-8"><title>用半小时给旧相机换快门 | 木屑记</title></head><body>
<header class="site-header"><a class="logo" href="/">木屑记</a><nav><a href="/">文章</a><a href="/about">关于</a></nav></header>
<main><article class="post"><header><h1>用半小时给旧相机换快门</h1><p class="meta"><time datetime="2022-10-03">2022年10月3日</time> · 阅读 6 分钟</p></header>
<div class="toc"><p>目录</p><ul><li><a href="#a">准备</a></li><li><a href="#b">拆机</a></li><li><a href="#c">回装</a></li></ul></div>
<div class="post-content"><p>上个月在旧货摊上收了一台机械相机，快门卡在四分之一秒不动。拆开以后发现是慢门齿轮上的油干了。</p>
<h2 id="a">准备</h2><ul><li>精密螺丝刀一套</li><li>清洁用的轻油
<ul><li>手表油最好</li><li>缝纫机油也可以</li></ul></li></ul>
<h2 id="b">拆机</h2><blockquote><p>拆之前先拍照，每一步都拍。</p></blockquote>
<pre><code>for screw in top_plate:
    label(screw)
    put_in_tray(screw)</code></pre>
<p>螺丝长短不一，装错会顶到底片轨道。</p><h2 id="c">回装</h2><p>回装以后各档速度误差在一成以内，够用了。</p></div></article>
<div class="post-nav"><a href="/p">上一篇：磨刀石怎么选</a><a href="/n">下一篇：给木桌上油</a></div>
<div class="author-box"><p>木屑，业余修理工，住在山里。喜欢请关注公众号。</p></div>
<section id="comments"><h3>3 条评论</h3><p>请问慢门齿轮在哪里能买到？我找了很久都没有找到。</p></section></main>
<footer>© 木屑记 · 由静态站点生成器驱动</footer></body></html>""",
    (
        "用半小时给旧相机换快门",
        "慢门齿轮上的油干了",
        "缝纫机油也可以",
        "拆之前先拍照",
        "label(screw)",
        "装错会顶到底片轨道",
        "误差在一成以内",
    ),
    ("上一篇", "给木桌上油", "关注公众号", "慢门齿轮在哪里能买到", "由静态站点生成器驱动"),
)

DOCS_ZH = Page(
    "docs_zh",
    """<html lang="zh-CN"><head><meta charset="utf-8"><title>配置文件 — 云仓手册</title></head><body>
<div class="sphinxsidebar"><h3>目录</h3><ul><li><a href="i.html">安装</a></li><li><a href="c.html">配置文件</a></li>
<li><a href="b.html">备份与恢复</a></li><li><a href="f.html">常见问题</a></li></ul></div>
<div class="document"><div class="body" role="main"><h1>配置文件<a class="headerlink" href="#x">¶</a></h1>
<p>配置文件名为 <code>cang.toml</code>，放在数据目录的根下。</p>
<div class="admonition note"><p class="admonition-title">注意</p><p>修改后需要重新启动服务才能生效。</p></div>
<h2>选项</h2><table class="docutils"><thead><tr><th>名称</th><th>默认值</th><th>说明</th></tr></thead>
<tbody><tr><td><code>port</code></td><td>8080</td><td>监听端口</td></tr><tr><td><code>keep_days</code></td><td>30</td><td>日志保留天数</td></tr></tbody></table>
<h2>示例</h2><pre>[server]
port = 9000

[log]
  keep_days = 7</pre><dl><dt><code>port</code></dt><dd>大于一千零二十四的整数。</dd></dl></div>
<div class="prev-next"><a href="i.html">上一页 安装</a> <a href="b.html">下一页 备份与恢复</a></div></div>
<div class="footer">最后更新于 2024 年 1 月。</div></body></html>""",
    (
        "配置文件名为",
        "cang.toml",
        "修改后需要重新启动服务才能生效",
        "日志保留天数",
        "keep_days = 7",
        "大于一千零二十四的整数",
    ),
    ("常见问题", "上一页", "最后更新于"),
)

HELP_ZH = Page(
    "help_zh",
    """<!DOCTYPE html><html lang="zh-CN"><head><title>插入分隔符</title></head><body>
<header id="TopLeftHeader"><a class="logo" href="main.html"><p>办公软件 7.4 帮助</p></a></header>
<aside class="rightside"><label>目录</label><div id="Contents"></div></aside>
<div id="DisplayArea"><h1>插入分隔符</h1><p class="paragraph">在光标处插入换行符、分栏符或分页符。</p>
<p class="paragraph">选择菜单「插入 - 更多分隔符」</p></div><footer><p>Title is: 插入分隔符</p></footer></body></html>""",
    ("插入分隔符", "在光标处插入换行符、分栏符或分页符", "选择菜单「插入 - 更多分隔符」"),
    ("7.4 帮助", "Title is"),
)

OLD_ZH = Page(
    "old_zh",
    """<html><head><meta http-equiv="Content-Type" content="text/html; charset=gb2312"><title>清溪镇志 第三章</title></head>
<body bgcolor="#FFFFFF"><table width="760" border="0" align="center"><tr><td colspan="2"><a href="index.htm">返回首页</a></td></tr>
<tr><td width="160" valign="top"><a href="1.htm">第一章</a><br><a href="2.htm">第二章</a><br><a href="3.htm">第三章</a><br><a href="4.htm">第四章</a></td>
<td><center><font size="5"><b>第三章 水利</b></font></center><br>
&nbsp;&nbsp;&nbsp;&nbsp;清溪发源于白云岭，自西北向东南流经全镇，长二十三公里。光绪十二年大水，冲毁石桥三座，田地二百余亩。<br><br>
&nbsp;&nbsp;&nbsp;&nbsp;一九五八年修建红旗水库，库容四百二十万立方米，灌溉农田一万二千亩，次年发电。<br><br>
&nbsp;&nbsp;&nbsp;&nbsp;一九九六年重修河堤，设防标准由十年一遇提高到五十年一遇。</td></tr></table></body></html>""",
    ("第三章 水利", "清溪发源于白云岭", "库容四百二十万立方米", "五十年一遇"),
    ("返回首页",),
)

NEWS_EN = Page(
    "news_en",
    """<!doctype html><html lang="en"><head><title>Harbour ferry returns after winter refit - The Quayside Post</title>
<meta property="article:published_time" content="2024-02-11T07:30:00+00:00"><meta name="author" content="Ines Marlow"></head><body>
<a class="skip-link" href="#m">Skip to main content</a><header><nav><a href="/">Home</a><a href="/w">World</a><a href="/s">Sport</a></nav></header>
<main id="m"><article><h1>Harbour ferry returns after winter refit</h1><p class="byline">By <a href="/im">Ines Marlow</a></p>
<div class="share-bar"><a href="#">Share on Facebook</a><a href="#">Email this story</a></div>
<p>The harbour ferry carried its first passengers in eleven weeks on Sunday, after engineers replaced both of its diesel engines with electric motors.</p>
<figure><img src="f.jpg" alt=""><figcaption>The ferry leaves the north quay on Sunday morning.</figcaption></figure>
<p>The crossing takes nine minutes, two fewer than before, and the operator says that it will save four hundred tonnes of fuel a year.</p>
<aside class="related-content"><h3>Read more</h3><ul><li><a href="/1">Bridge tolls to rise in April</a></li><li><a href="/2">Why the old quay closed</a></li></ul></aside>
<p>Fares stay the same until the summer timetable begins.</p>
<div class="newsletter-signup"><p>Sign up for our morning newsletter and get the headlines in your inbox.</p></div></article>
<section class="most-read"><h2>Most read</h2><ol><li><a href="/a">Storm closes coast road</a></li><li><a href="/b">School wins chess cup</a></li><li><a href="/c">New market hall opens</a></li></ol></section></main>
<div id="onetrust-consent-sdk" class="cookie-banner"><p>We and our partners use cookies to give you the best experience.</p></div>
<footer><p>© The Quayside Post. All rights reserved.</p></footer></body></html>""",
    (
        "Harbour ferry returns after winter refit",
        "replaced both of its diesel engines",
        "The ferry leaves the north quay",
        "four hundred tonnes of fuel",
        "Fares stay the same",
    ),
    (
        "Skip to main",
        "Email this story",
        "Bridge tolls",
        "morning newsletter",
        "Storm closes",
        "use cookies",
        "rights reserved",
    ),
)

DOCS_EN = Page(
    "docs_en",
    """<html lang="en"><head><title>retry — pumpctl 3.1 documentation</title></head><body>
<nav class="sidebar"><ul><li><a href="a">Overview</a></li><li><a href="b">Commands</a></li><li><a href="c">Changelog</a></li></ul></nav>
<div class="content"><h1>retry</h1><p>Run a command again until it succeeds.</p><h2>Synopsis</h2><pre>pumpctl retry [--max N] COMMAND</pre>
<h2>Options</h2><dl><dt>--max N</dt><dd>Give up after N attempts. The default is 5.</dd><dt>--wait S</dt><dd>Wait S seconds between attempts.</dd></dl>
<details><summary>Exit codes</summary><p>0 when the command succeeded, 75 when every attempt failed.</p></details>
<div class="sidebar"><p class="title">Why exponential waits?</p><p>Fixed waits make all clients come back at the same moment, which keeps an overloaded server down.</p></div>
<h2>See also</h2><p>These pages are related:</p><ul><li><a href="x">pumpctl run</a></li><li><a href="y">pumpctl watch</a></li><li><a href="z">pumpctl stop</a></li></ul></div>
<footer>Built with a static generator.</footer></body></html>""",
    (
        "Run a command again until it succeeds",
        "pumpctl retry [--max N] COMMAND",
        "Give up after N attempts",
        "75 when every attempt failed",
        "Fixed waits make all clients come back",
        "pumpctl watch",
    ),
    ("Changelog", "static generator"),
)

BLOG_EN = Page(
    "blog_en",
    """<html><head><title>Three weeks with a hand-cranked mill &#8211; Slow Bread</title></head><body class="single cookies-not-set">
<div id="page"><div class="site-branding"><a href="/">Slow Bread</a></div>
<div id="content"><div class="entry-content post-body"><h1 class="entry-title">Three weeks with a hand-cranked mill</h1>
<p>I bought the mill because the flour I liked had vanished from the shop, and because I enjoy making easy things hard.</p>
<p>It takes about four minutes of cranking per hundred grams. After a week the loaves had more flavour, and my right arm had opinions.</p>
<table><tr><th>Grain</th><th>Minutes per 100 g</th></tr><tr><td>Wheat</td><td>4</td></tr><tr><td>Rye</td><td>6</td></tr></table>
<p>Would I buy it again? Yes, but I would buy the one with the longer handle.</p></div>
<div class="sharedaddy"><h3>Share this:</h3><ul><li><a href="#">Twitter</a></li><li><a href="#">Facebook</a></li><li><a href="#">Print</a></li></ul></div>
<div class="comments-area" id="comments"><h2>2 thoughts on this post</h2><p>I have the same mill and mine squeaks terribly when it rains.</p></div></div>
<div id="secondary" class="widget-area"><h2>Recent posts</h2><ul><li><a href="/1">Sourdough at altitude</a></li><li><a href="/2">The oven diaries</a></li><li><a href="/3">On salt</a></li></ul></div></div></body></html>""",
    (
        "Three weeks with a hand-cranked mill",
        "four minutes of cranking",
        "Rye | 6",
        "the one with the longer handle",
    ),
    ("Share this", "squeaks terribly", "The oven diaries"),
)

QUESTION_EN = Page(
    "question_en",
    """<html><head><title>How do I bleed a radiator without a key? - Fixit Answers</title></head><body>
<div class="topnav"><a href="/q">Questions</a><a href="/t">Tags</a><a href="/u">Users</a></div>
<div id="mainbar"><h1>How do I bleed a radiator without a key?</h1><div class="question"><div class="post-text">
<p>The radiator in my hall is cold at the top and I have lost the key. Is there a safe way to open the valve?</p></div></div>
<div id="answers"><h2>2 Answers</h2><div class="answer"><div class="post-text"><p>A flat screwdriver fits the slot of most modern valves. Turn it a quarter turn and hold a cloth below.</p></div></div>
<div class="answer"><div class="post-text"><p>Needle-nose pliers work on the square pin, but wrap them in tape so that you do not round the edges.</p></div></div></div></div>
<div id="sidebar"><h4>Hot Network Questions</h4><ul><li><a href="/1">Why does my tap whistle?</a></li><li><a href="/2">Can I paint over silicone?</a></li><li><a href="/3">Which drill for tile?</a></li></ul></div>
<div id="footer"><a href="/tour">Tour</a> <a href="/help">Help</a> <a href="/legal">Legal</a></div></body></html>""",
    ("How do I bleed a radiator", "cold at the top", "A flat screwdriver fits the slot", "wrap them in tape"),
    ("Hot Network", "Why does my tap whistle", "Legal"),
)

PRODUCT_EN = Page(
    "product_en",
    """<html><head><title>Tarn 20 daypack | Fell Outfitters</title></head><body><form id="aspnetForm" action="/">
<div class="header"><a href="/cart">Basket (0)</a><a href="/account">My account</a><a href="/stores">Stores</a></div>
<div class="product-page"><h1>Tarn 20 daypack</h1><p>A twenty-litre pack for day walks, with a rain cover that folds into the base and a hip belt that comes off.</p>
<ul><li>Weight 640 g</li><li>Recycled nylon, 210 denier</li><li>Holds a two-litre bladder</li></ul>
<table><tr><th rowspan="2">Size</th><th colspan="2">Back length</th></tr><tr><th>from</th><th>to</th></tr><tr><td>S</td><td>40 cm</td><td>46 cm</td></tr><tr><td>L</td><td>46 cm</td><td>53 cm</td></tr></table></div>
<div class="recommendations"><h2>Customers also bought</h2><a href="/1">Trekking poles</a><a href="/2">Merino socks</a><a href="/3">Head torch</a></div>
<div class="footer">Free returns within thirty days of purchase on unworn items.</div></form></body></html>""",
    (
        "Tarn 20 daypack",
        "a rain cover that folds into the base",
        "210 denier",
        "Size | Back length from | Back length to",
        "L | 46 cm | 53 cm",
    ),
    ("Basket", "Merino socks", "Free returns"),
)

WIKI_ZH = Page(
    "encyclopedia_zh",
    """<html lang="zh"><head><title>白鹭岭 - 百科</title></head><body><div class="wiki-nav"><a href="/">首页</a><a href="/r">随便看看</a><a href="/e">编辑</a></div>
<div class="lemma-main"><h1>白鹭岭</h1><div class="lemma-summary">白鹭岭是东海丘陵的一段，主峰海拔八百一十二米，因岭下湿地常年栖息白鹭得名<sup class="reference"><a href="#r1">[1]</a></sup>。</div>
<table class="infobox"><tr><th>主峰</th><td>望海尖</td></tr><tr><th>海拔</th><td>812 米</td></tr><tr><th>面积</th><td>36 km<sup>2</sup></td></tr></table>
<h2>地质</h2><div class="para">岭体主要由花岗岩构成，形成于约一亿两千万年前。</div>
<h2>动植物</h2><div class="para">记录维管植物九百余种，其中珍稀植物十四种。</div>
<div class="open-tag"><a href="/t1">地理</a><a href="/t2">山脉</a><a href="/t3">旅游</a></div></div>
<div class="side-content"><h3>热门词条</h3><ul><li><a href="/1">望江楼</a></li><li><a href="/2">青石镇</a></li><li><a href="/3">云台湖</a></li></ul></div></body></html>""",
    (
        "白鹭岭是东海丘陵的一段",
        "常年栖息白鹭得名。",
        "望海尖",
        "36 km²",
        "形成于约一亿两千万年前",
        "珍稀植物十四种",
    ),
    ("随便看看", "热门词条", "云台湖"),
)

NOTICE_EN = Page(
    "notice_en",
    """<html lang="en"><head><title>Notice of road closure: Mill Lane</title></head><body>
<div role="banner"><p>Borough of Ashcombe</p></div><div role="navigation"><a href="/">Home</a><a href="/n">Notices</a><a href="/p">Planning</a></div>
<div role="main"><h1>Notice of road closure: Mill Lane</h1><p>Reference: TR/2024/118</p>
<p>Notice is given that the council intends to close Mill Lane between its junctions with Station Road and the B4021 from 3 to 14 June 2024, so that the water main can be replaced.</p>
<ol type="a"><li>Access for residents is kept at all times.</li><li>The diversion leads by Church Hill.</li></ol>
<address>Highways Office, 2 Market Square, Ashcombe</address></div><div role="contentinfo"><p>Accessibility statement. Privacy.</p></div></body></html>""",
    (
        "TR/2024/118",
        "so that the water main can be replaced",
        "a. Access for residents",
        "Highways Office, 2 Market Square",
    ),
    ("Planning", "Accessibility statement"),
)

PAGES = (
    NEWS_ZH, NOTICE_ZH, PRODUCT_ZH, FORUM_ZH, BLOG_ZH, DOCS_ZH, HELP_ZH, OLD_ZH, WIKI_ZH,
    NEWS_EN, DOCS_EN, BLOG_EN, QUESTION_EN, PRODUCT_EN, NOTICE_EN,
)  # fmt: skip
