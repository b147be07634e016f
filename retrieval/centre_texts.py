"""Plain questions and statements about everyday and encyclopaedic topics: what any language sounds like."""

from __future__ import annotations

from collections.abc import Mapping

from core.types import Lang

QUESTIONS: Mapping[Lang, tuple[str, ...]] = {
    Lang.EN: (
        "When was the university founded?", "Who wrote the first book about this war?",
        "How many people live in the city?", "What is the main cause of the disease?",
        "Which river runs through the capital?", "Why did the company move its headquarters?",
        "What does the law say about working hours?", "Where was the treaty signed?",
        "How long does the treatment take?", "What kind of energy do plants use?",
        "Who won the championship last year?", "What is the name of the highest mountain?",
        "In which year did the king die?", "How much does the ticket cost?",
        "What material is the bridge made of?", "Which team played in the final game?",
        "What percentage of students finish school?", "Who was the architect of the church?",
        "How does the engine cool itself?", "What language do most people speak there?",
        "What was the result of the election?", "Where do these birds spend the winter?",
        "Which party controls the parliament?", "What did the scientist discover?",
    ),
    Lang.ZH: (
        "这所大学是什么时候成立的？", "谁写了关于这场战争的第一本书？", "这座城市有多少人口？",
        "这种疾病的主要原因是什么？", "哪条河流经首都？", "公司为什么搬迁总部？",
        "法律对工作时间有什么规定？", "条约是在哪里签订的？", "治疗需要多长时间？",
        "植物利用什么样的能量？", "去年谁赢得了冠军？", "最高的山叫什么名字？",
        "国王是哪一年去世的？", "门票多少钱？", "这座桥是用什么材料建造的？",
        "哪支球队参加了决赛？", "有百分之多少的学生完成学业？", "这座教堂的建筑师是谁？",
        "发动机是如何冷却的？", "那里的大多数人说什么语言？", "选举的结果是什么？",
        "这些鸟在哪里过冬？", "哪个政党控制着议会？", "这位科学家发现了什么？",
    ),
}  # fmt: skip

PASSAGES: Mapping[Lang, tuple[str, ...]] = {
    Lang.EN: (
        "The university was founded in 1868 and moved to its present site in 1921. It has about thirty"
        " thousand students and is known for its schools of law and medicine.",
        "The river rises in the northern mountains, flows through three provinces and reaches the sea"
        " near the capital. In spring, melting snow often causes floods along its lower course.",
        "The war began after the assassination of the crown prince. Within weeks, most of the great"
        " powers had joined one of the two alliances, and fighting spread to several continents.",
        "Plants convert sunlight into chemical energy by photosynthesis. The process takes place in the"
        " leaves and releases oxygen, which animals need in order to breathe.",
        "The company was started by two engineers who built radios in a garage. Today it sells"
        " computers and telephones in more than a hundred countries and employs sixty thousand people.",
        "The church was designed by an Italian architect and completed in 1542. Its dome was damaged by"
        " a fire and rebuilt in the nineteenth century in a different style.",
        "The team won the championship for the third time after beating its rivals in the final game."
        " The winning goal was scored in the last minute by a player who had joined the club that"
        " summer.",
        "Under the new law, employees may not work more than forty-eight hours a week. Employers who"
        " break the rule can be fined, and workers may bring a complaint to the labour court.",
        "The disease is caused by a bacterium that lives in the soil. Patients usually recover within"
        " two weeks when they are treated with antibiotics, but older people may have complications.",
        "The city is the economic centre of the region, with a population of 2.4 million. Its port"
        " handles most of the country's trade, and two railway lines connect it with the interior.",
    ),
    Lang.ZH: (
        "这所大学成立于1868年，1921年迁至现址。该校约有三万名学生，以法学院和医学院闻名。",
        "这条河发源于北部山区，流经三个省份，在首都附近入海。春季融雪常常在下游造成洪水。",
        "王储遇刺之后，战争爆发。几周之内，大多数列强都加入了两个同盟之一，战火蔓延到多个大洲。",
        "植物通过光合作用把阳光转化为化学能。这一过程在叶片中进行，并释放出动物呼吸所需要的氧气。",
        "这家公司由两名在车库里组装收音机的工程师创办。如今，它在一百多个国家销售电脑和电话，拥有六万名员工。",
        "这座教堂由一位意大利建筑师设计，于1542年竣工。它的穹顶曾毁于火灾，十九世纪以不同的风格重建。",
        "该队在决赛中击败对手，第三次获得冠军。制胜一球由当年夏天加盟俱乐部的一名球员在最后一分钟打入。",
        "根据新的法律，员工每周工作时间不得超过四十八小时。违反规定的雇主可能被处以罚款，工人可以向劳动法庭申诉。",
        "这种疾病由生活在土壤中的一种细菌引起。患者使用抗生素治疗，通常两周内即可康复，但老年人可能出现并发症。",
        "这座城市是该地区的经济中心，人口二百四十万。它的港口承担了全国大部分贸易，两条铁路将它与内陆连接起来。",
    ),
}  # fmt: skip
