"""`geo eval`: quality of the real code on public sets, as one JSON object."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from api.cli.judged import ANSWERS, CORPUS, QRELS, QUERIES, Keep, Limit, file_option
from api.cli.output import Json, emit

eval_app = typer.Typer(
    help="Measure quality on evaluation sets, on a scratch data folder.", no_args_is_help=True
)


def _known_mode(mode: str) -> str:
    if mode not in ("", "extract", "quote", "free"):
        raise typer.BadParameter("choose extract, quote or free")
    return mode


Mode = Annotated[
    str, typer.Option(callback=_known_mode, help="extract, quote or free; default: the server's.")
]


@eval_app.command("retrieval")
def retrieval(
    corpus: Annotated[Path, CORPUS],
    queries: Annotated[Path, QUERIES],
    qrels: Annotated[Path, QRELS],
    limit: Limit = None,
    keep: Keep = None,
    json: Json = False,
) -> None:
    """Rank documents for judged questions: the final ranking, each route alone, kinds of questions.

    Questions in one language about documents in the other are measured by naming those files.
    """
    from retrieval.measure import eval_retrieval

    figures = eval_retrieval(corpus, queries, qrels, limit=limit, keep=keep)
    if json:
        emit(figures)
        return
    rows = {"final": figures, **figures["routes"]}
    names = ("recall@1", "recall@5", "recall@10", "mrr@10", "ndcg@10")
    print(f"{'':10}" + "".join(f"{name:>11}" for name in names))
    for row, values in rows.items():
        print(f"{row:10}" + "".join(f"{values[name]:>11.4f}" for name in names))
    for kind, values in figures["slices"].items():
        own, best = values["ndcg@10"], values["best_route"]
        print(f"  {kind:14}{values['n']:>5}  ndcg@10 {own:.4f}, best route {best:.4f}")
    if best := figures["against_best_route"]:
        print(f"against {best['route']}: {best['difference']:+.4f} {best['ci95']}, p {best['p']}")
    if (apart := figures["unanswerable"]["auroc"]) is not None:
        print(f"unanswerable: AUROC {apart:.4f} ({figures['unanswerable']['n']})")
    print(f"{figures['n']} questions, p50 {figures['p50_ms']} ms, p95 {figures['p95_ms']} ms")


@eval_app.command("answers")
def answers(
    corpus: Annotated[Path, CORPUS],
    queries: Annotated[Path, QUERIES],
    qrels: Annotated[Path, QRELS],
    answers: Annotated[Path, ANSWERS],
    limit: Limit = None,
    mode: Mode = "",
    claims: Annotated[
        Path | None, typer.Option(dir_okay=False, help="Append every shown claim with its quotes to FILE.")
    ] = None,
    json: Json = False,
) -> None:
    """Ask judged questions and check what is shown: gold answers, citations, verdicts, refusals."""
    from generation.measure import eval_answers

    figures = eval_answers(corpus, queries, qrels, answers, limit=limit, mode=mode, claims_to=claims)
    if json:
        emit(figures)
        return
    for name, value in figures.items():
        if isinstance(value, int | float | str):
            print(f"{name:24}{value}")


@eval_app.command("router")
def router(
    corpus: Annotated[Path, CORPUS],
    queries: Annotated[Path, QUERIES],
    qrels: Annotated[Path, QRELS],
    answers: Annotated[Path, ANSWERS],
    limit: Limit = None,
    keep: Keep = None,
    rows: Annotated[
        Path | None, typer.Option(dir_okay=False, help="Write each question's signals and outcomes to FILE.")
    ] = None,
    json: Json = False,
) -> None:
    """Ask every question at every depth of evidence: what the router saves and what it loses."""
    from generation.measure_router import eval_router

    figures = eval_router(corpus, queries, qrels, answers, limit=limit, keep=keep, rows_to=rows)
    if json:
        emit(figures)
        return
    for depth, own in figures["depths"].items():
        print(f"{depth:10}" + "  ".join(f"{name} {value:.3f}" for name, value in own.items()))
    for point in figures["curve"]:
        saved = (
            f"{point['saved']:.3f} (rerank {point['rerank_saved']:.3f}, prompt {point['tokens_saved']:.3f})"
        )
        by_chance = f"random {point['random_quality']:.3f}"
        print(f"price {point['price']:>5}  quality {point['quality']:.3f}  saved {saved}  {by_chance}")


@eval_app.command("citations")
def citations(
    file: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, readable=True, help="JSON lines of judged claims.")
    ],
    limit: Annotated[int | None, typer.Option(min=1, help="Judge only the first N claims.")] = None,
    json: Json = False,
) -> None:
    """Judge claims against their passages and compare with people's labels, by kind of error."""
    from generation.measure_citations import eval_citations

    figures = eval_citations(file, limit=limit)
    if json:
        emit(figures)
        return
    for name in ("n", "question", "balanced_accuracy", "auc", "auc_words_alone"):
        print(f"{name:24}{figures[name]}")
    for name in ("by_error", "by_edit"):
        print(f"\n{name}")
        for kind, row in figures[name].items():
            print(f"  {kind:22}" + "  ".join(f"{key} {value}" for key, value in row.items()))


@eval_app.command("rgb")
def rgb(
    file: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, readable=True, help="JSON lines of an RGB set.")
    ],
    mode: Mode = "",
    limit: Annotated[int | None, typer.Option(min=1, help="Ask only the first N questions.")] = None,
    json: Json = False,
) -> None:
    """Ask with documents that answer, do not answer, answer wrongly, or contradict each other."""
    from generation.measure_rgb import eval_rgb

    figures = eval_rgb(file, mode=mode, limit=limit)
    if json:
        emit(figures)
        return
    for name, row in figures.items():
        if isinstance(row, dict) and "refused" in row:
            print(f"{name:16}" + "  ".join(f"{key} {value:.3f}" for key, value in row.items()))


@eval_app.command("chunks")
def chunks(
    folder: Annotated[
        Path, typer.Argument(exists=True, file_okay=False, readable=True, help="Where both are.")
    ],
    limit: Annotated[int | None, typer.Option(min=1, help="Ask only the first N questions.")] = None,
    json: Json = False,
) -> None:
    """Gold characters held by the best five passages: `corpora/*.md` and `questions_df.csv` in FOLDER."""
    from retrieval.measure_chunks import eval_chunks

    figures = eval_chunks(folder, limit=limit)
    if json:
        emit(figures)
        return
    names = ("recall@5", "precision", "iou", "shown_chars")
    rows = {"all": figures, **figures["by_document"], "peer": figures["peer"]}
    print(f"{'':24}" + "".join(f"{name:>12}" for name in names))
    for row, values in rows.items():
        print(f"{row[:23]:24}" + "".join(f"{values[name]:>12.4f}" for name in names))
    mean = figures["passage_chars_mean"]
    print(f"{figures['n']} questions, {figures['passages']} passages of {mean} characters in the mean")


@eval_app.command("entities")
def entities(
    entities: Annotated[Path | None, file_option("TSV: qid, name, types, description.")] = None,
    mentions: Annotated[Path | None, file_option("JSON lines with gold mentions.")] = None,
    benchmark: Annotated[
        Path | None, typer.Option(exists=True, file_okay=False, help="Folder of <name>.benchmark.jsonl.")
    ] = None,
    gold_mentions: Annotated[
        bool,
        typer.Option("--gold-mentions/--find-mentions", help="Link the given mentions, or find them first."),
    ] = True,
    threshold: Annotated[float | None, typer.Option(min=0, max=1, help="Default: the settings'.")] = None,
    encoder: Annotated[bool, typer.Option("--encoder/--no-encoder", help="Ask the encoder in doubt.")] = True,
    aliases: Annotated[
        list[Path] | None,
        typer.Option(exists=True, dir_okay=False, help="JSON lines of entities with all their names."),
    ] = None,
    ambiguous: Annotated[
        Path | None,
        typer.Option(
            exists=True, file_okay=False, help="Folder of questions about names of several entities."
        ),
    ] = None,
    public: Annotated[
        Path | None,
        typer.Option(exists=True, file_okay=False, help="Public data that these questions need as well."),
    ] = None,
    weight: Annotated[
        list[float] | None, typer.Option(min=0, help="Weights of the entity route to compare.")
    ] = None,
    json: Json = False,
) -> None:
    """Link mentions to a closed list of entities: accuracy, candidates, precision, recall, NIL.

    With --aliases: find names however they are written. With --ambiguous: ask questions about one of several
    entities of a name, with the entity route and without it.
    """
    from core.settings import get_settings

    if ambiguous is not None:
        _ambiguous(ambiguous, public, weight, json)
        return
    limit = get_settings().ingest.link_threshold if threshold is None else threshold
    if aliases:
        _aliases(aliases, limit, json)
        return
    if entities is None or mentions is None:
        raise typer.BadParameter("give --entities and --mentions, or --aliases, or --ambiguous")
    _mentions(entities, mentions, benchmark, gold_mentions, limit, encoder, json)


def _ambiguous(folder: Path, public: Path | None, weights: list[float] | None, json: bool) -> None:
    from retrieval.measure_ambiguous import eval_ambiguous

    figures = eval_ambiguous(folder, public, weights=weights)
    if json:
        emit(figures)
        return
    for chosen, parts in figures["by_weight"].items():
        for part, values in parts.items():
            print(f"weight {chosen:6}{part:10}{values['n']:5}  recall@5 {values['recall@5']:.4f}")
    print(f"recall@5 rises by {figures['gain_recall@5']}")


def _aliases(files: list[Path], threshold: float, json: bool) -> None:
    from ingest.measure_aliases import eval_aliases
    from retrieval.measure import report_progress

    figures = eval_aliases(files, threshold=threshold, progress=report_progress("names"))
    if json:
        emit(figures)
        return
    for file, languages in figures["by_file"].items():
        for lang, values in languages.items():
            shown = "  ".join(f"{k} {v}" for k, v in values.items() if k != "n" and v is not None)
            print(f"{file:24}{lang:4}{shown}")


def _mentions(
    entities: Path,
    mentions: Path,
    benchmark: Path | None,
    gold_mentions: bool,
    threshold: float,
    encoder: bool,
    json: bool,
) -> None:
    from ingest.measure_entities import eval_entities
    from ingest.similarity import similarity
    from retrieval.measure import report_progress

    figures = eval_entities(
        entities,
        mentions,
        benchmark,
        gold_mentions=gold_mentions,
        threshold=threshold,
        similarity=similarity if encoder else None,
        progress=report_progress("link"),
    )
    if json:
        emit(figures)
        return
    names = (
        "n",
        "accuracy",
        "accuracy_abstaining",
        "candidate_recall@50",
        "precision",
        "recall",
        "nil_accuracy",
    )
    print(f"{'':26}" + "".join(f"{name:>20}" for name in names))
    for row, values in {"mean": figures, **figures["by_benchmark"]}.items():
        print(
            f"{row:26}"
            + "".join(f"{values[name] if values[name] is not None else '-':>20}" for name in names)
        )


def register(app: typer.Typer) -> None:
    """Add the group to the command line."""
    app.add_typer(eval_app, name="eval")
