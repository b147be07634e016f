"""`geo bench`: speed against the systems that others use, on the same files and the same machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from api.cli.output import Json, emit, note

bench_app = typer.Typer(
    help="Measure speed against peers, in an environment of their own (.venv-peers).", no_args_is_help=True
)

Rounds = Annotated[int, typer.Option(min=1, max=100, help="Interleaved rounds.")]
PassageCounts = Annotated[
    list[int] | None, typer.Option("--size", min=100, help="Passages; may be given several times.")
]
Questions = Annotated[int, typer.Option(min=10, max=10_000, help="Questions per round.")]


@bench_app.command("parse")
def parse(
    files: Annotated[
        Path | None,
        typer.Option(
            exists=True, file_okay=False, readable=True, help="Folder to read; made files if omitted."
        ),
    ] = None,
    rounds: Annotated[int, typer.Option(min=3, max=100, help="Interleaved rounds.")] = 7,
    html_set: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            file_okay=False,
            readable=True,
            help="Folder with segments.jsonl and pages/, for the F-score.",
        ),
    ] = None,
    expected: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, help="JSON lines of file and contains, to count phrases in PDFs."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Read PDF and HTML: ours with layout and boxes against the plain text of other libraries."""
    from ingest.measure import bench_parse

    figures = bench_parse(files, rounds=rounds, html_set=html_set, expected=expected, note=note)
    if json:
        emit(figures)
        return
    for kind in ("pdf", "html"):
        _show(kind, figures.get(kind, {}))


@bench_app.command("ingest")
def ingest(
    sizes: Annotated[
        list[int] | None, typer.Option("--size", min=100, help="Documents; may be given several times.")
    ] = None,
    rounds: Rounds = 5,
    corpus: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="JSON lines with passages; made ones if omitted."),
    ] = None,
    line: Annotated[int, typer.Option(min=0, help="Documents for the walk through all stages.")] = 60,
    json: Json = False,
) -> None:
    """Index passages and vectors: ours against txtai and Haystack; the encoder; the whole line."""
    from retrieval.measure_ingest import bench_ingest

    figures = bench_ingest(
        sizes=sizes or [1000, 5000, 20_000], rounds=rounds, corpus=corpus, line=line, note=note
    )
    _report("ingest", figures, json=json)


@bench_app.command("lexical")
def lexical(
    sizes: PassageCounts = None,
    rounds: Rounds = 7,
    questions: Questions = 200,
    json: Json = False,
) -> None:
    """Search by words: ours, with scope and headings, against tantivy used alone and bm25s."""
    from retrieval.measure_lexical import bench_lexical

    figures = bench_lexical(
        sizes=sizes or [10_000, 100_000, 1_000_000], rounds=rounds, questions=questions, note=note
    )
    _report("lexical", figures, json=json)


@bench_app.command("query")
def query(
    sizes: PassageCounts = None,
    rounds: Rounds = 5,
    questions: Questions = 100,
    peers_at: Annotated[
        int | None,
        typer.Option(min=0, help="The size at which the peers run; the largest if omitted, 0: at none."),
    ] = None,
    keep: Annotated[
        Path | None, typer.Option(file_okay=False, help="Keep what was prepared here and use it again.")
    ] = None,
    json: Json = False,
) -> None:
    """Ask by words and vector at once: ours against txtai and Haystack, on the same passages and vectors."""
    from retrieval.measure_query import bench_query

    counts = sizes or [10_000, 100_000]
    if peers_at and peers_at not in counts:
        raise typer.BadParameter(
            f"the peers can run at {', '.join(map(str, counts))}", param_hint="--peers-at"
        )
    figures = bench_query(
        sizes=counts, rounds=rounds, questions=questions, peers_at=peers_at, keep=keep, note=note
    )
    _report("query", figures, json=json)


@bench_app.command("rebuild")
def rebuild(
    size: Annotated[int, typer.Option(min=100, help="Passages in the index.")] = 100_000,
    rounds: Rounds = 3,
    seconds: Annotated[float, typer.Option(min=1, max=600, help="Length of one load.")] = 20.0,
    json: Json = False,
) -> None:
    """Ask 20 questions a second alone, beside a rebuild, and beside a rebuild with uploads and deletes."""
    from retrieval.measure_rebuild import bench_rebuild

    figures = bench_rebuild(size=size, rounds=rounds, seconds=seconds, note=note)
    _report("rebuild", figures, json=json)


@bench_app.command("exact")
def exact(
    size: Annotated[int, typer.Option(min=100, help="Vectors.")] = 100_000,
    queries: Annotated[int, typer.Option(min=1, help="Queries in one batch.")] = 256,
    rounds: Annotated[int, typer.Option(min=3, max=100, help="Interleaved rounds.")] = 7,
    json: Json = False,
) -> None:
    """Search many queries exactly at once: ours against faiss.IndexFlatIP and the bare matrix product."""
    from retrieval.measure_exact import bench_exact

    figures = bench_exact(size=size, queries=queries, rounds=rounds, note=note)
    _report("exact", figures, json=json)


@bench_app.command("tiers")
def tiers(
    size: Annotated[int, typer.Option(min=1000, help="Vectors.")] = 100_000,
    rounds: Annotated[int, typer.Option(min=3, max=100, help="Interleaved rounds.")] = 7,
    vectors: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="A .npy file of real vectors; made ones if omitted."),
    ] = None,
    peer: Annotated[
        list[str] | None, typer.Option(help="usearch, hnsw or lancedb; may be given several times.")
    ] = None,
    prepared: Annotated[
        Path | None,
        typer.Option(
            file_okay=False, help="Folder that keeps vectors and built indexes; what is there is used again."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Search hot, warm and cold tiers: speed, bytes and recall against usearch, FAISS HNSW and lancedb."""
    from retrieval.measure_tiers import PEERS, bench_tiers

    _check_chosen(peer, PEERS, "--peer")
    figures = bench_tiers(
        size=size, rounds=rounds, vectors=vectors, peers=peer or PEERS, prepared=prepared, note=note
    )
    _report("tiers", figures, json=json)


@bench_app.command("generate")
def generate(
    requests: Annotated[int, typer.Option(min=16, max=4096, help="Questions of one load.")] = 64,
    rounds: Rounds = 2,
    mean_tokens: Annotated[int, typer.Option(min=8, max=512, help="Mean length of an answer.")] = 64,
    part: Annotated[
        list[str] | None,
        typer.Option(help="service, engine or grammar; may be given several times. All if omitted."),
    ] = None,
    transformers: Annotated[
        bool, typer.Option("--transformers", help="One static batch of transformers too: minutes on a CPU.")
    ] = False,
    json: Json = False,
) -> None:
    """Answer 16 questions at a time: ours over HTTP against waves of 16, vllm serve and transformers."""
    from generation.measure_generate import PARTS, GenerateSizes, bench_generate

    _check_chosen(part, PARTS, "--part")
    figures = bench_generate(
        GenerateSizes(requests=requests, mean_tokens=mean_tokens, rounds=rounds),
        parts=part or PARTS,
        transformers=transformers,
        note=note,
    )
    _report("generate", figures, json=json)


@bench_app.command("prefix")
def prefix(
    zipf: Annotated[float, typer.Option(min=0, max=3, help="How unevenly documents are asked for.")] = 1.0,
    passages: Annotated[int, typer.Option(min=1, max=12, help="Passages of one prompt.")] = 4,
    block: Annotated[int, typer.Option(min=16, max=256, help="Tokens of a KV block.")] = 32,
    prompts: Annotated[int, typer.Option(min=80, max=10_000, help="Prompts of one run.")] = 160,
    rounds: Rounds = 2,
    judged: Annotated[
        tuple[Path, Path, Path, Path] | None,
        typer.Option(help="Corpus, queries, qrels and answers: what the order does to answers on these."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Questions of the judged set.")] = 100,
    mode: Annotated[str, typer.Option(help="quote or free, for the judged set.")] = "free",
    json: Json = False,
) -> None:
    """Ask for popular passages: time to the first token in the shared order, by relevance, and uncached."""
    from core.types import CitationMode
    from generation.measure_order import JudgedSet, quality_by_order
    from generation.measure_prefix import PrefixSizes, bench_prefix

    if mode not in ("quote", "free"):
        raise typer.BadParameter("choose quote or free", param_hint="--mode")
    sizes = PrefixSizes(exponent=zipf, passages=passages, block=block, prompts=prompts, rounds=rounds)
    figures = bench_prefix(sizes, note=note)
    if judged is not None:
        files = JudgedSet(*judged, limit)
        figures |= quality_by_order(files, mode=CitationMode(mode), note=note)
    _report("prefix", figures, json=json)


def _check_chosen(given: list[str] | None, known: Sequence[str], option: str) -> None:
    if unknown := set(given or ()) - set(known):
        raise typer.BadParameter(
            f"{', '.join(sorted(unknown))}: choose from {', '.join(known)}", param_hint=option
        )


def _report(name: str, figures: dict[str, Any], *, json: bool) -> None:
    if json:
        emit(figures)
    else:
        _show(name, figures)


def _show(prefix: str, figures: dict[str, Any]) -> None:
    for name, value in figures.items():
        if isinstance(value, dict):
            _show(f"{prefix} {name}", value)
        else:
            print(f"{prefix + ' ' + name:40}{value}")


def register(app: typer.Typer) -> None:
    """Add the group to the command line."""
    app.add_typer(bench_app, name="bench")
