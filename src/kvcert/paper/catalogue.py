"""Names of every table and figure. No heavy imports: the DAG reads this file to know which files are promised."""

from __future__ import annotations

from collections.abc import Iterable

#: Stem of a table → one-line caption. Written as {results}/tables/{stem}.csv, .md and .tex.
TABLE_CAPTIONS: dict[str, str] = {
    "verdicts": "The seven claims against their kill conditions, beside the paper's values.",
    "coverage": "Coverage of the certificate by task and budget: panel mean (C1a), per head (C1b), guarded, sharpness.",
    "accuracy": "Mean task score by task, setting, policy and budget, with cluster bootstrap intervals.",
    "attribution": "AUC of telling cache-induced from inherent failures: the certificate and its rivals (C6).",
    "failures": "Failed runs of the Poisson design: cache-induced against inherent.",
    "cost": "Tokens and bytes kept, and seconds, by task, policy and budget.",
    "summary": "What was run: shards, runs, steps, heads, invalid runs, versions.",
}

#: Stem of a figure → one-line caption. Drawn as {figures}/{stem}.pdf and .png.
FIGURE_CAPTIONS: dict[str, str] = {
    "verdicts": "Each claim's value and interval beside its threshold and the paper's value.",
    "coverage": "Coverage by budget: panel mean and per head, per task, and by band of the shadow's effective sample size.",
    "certificate_error": "Certificate against true error, step by step, per budget; covered steps lie below the diagonal.",
    "accuracy": "Task score by budget and policy in both settings, with the full-cache line.",
    "attribution": "ROC of attribution: the certificate and its rivals, pooled and conditional on task and budget.",
    "scheduling": "Recovered share of the oracle's gain by share of runs recomputed.",
    "escalation": "Score gain of gated budget escalation: certificate, confidence and random gates.",
    "ess_coverage": "Coverage per head against the shadow's effective sample size, plain and guarded radius.",
}

#: The same for figures that only a grid with certain tasks gives rise to: stem → (how those tasks' names begin, caption).
TASK_FIGURES: dict[str, tuple[str, str]] = {
    "needle_heatmap": ("ruler_niah", "Task score by policy and budget on the needle grid of RULER."),
    "agent_memory": (
        "agent_memory",
        "Agent memory: accuracy, certificate and true error by the number of turns that were compressed.",
    ),
}

#: Exhibit → stem of its table and its figure; the module that draws it has the same name in lower case.
EXHIBIT_STEMS: dict[str, str] = {
    "X1": "X1_unidentifiability",
    "X2": "X2_estimator",
    "X3": "X3_assumption",
    "X4": "X4_overhead",
    "X5": "X5_merging",
    "controls": "controls",
    "ablations": "ablations",
}

TABLES: tuple[str, ...] = tuple(TABLE_CAPTIONS)
FIGURES: tuple[str, ...] = tuple(FIGURE_CAPTIONS)
#: Every figure that can be asked for by name.
ALL_FIGURES: dict[str, str] = FIGURE_CAPTIONS | {stem: entry[1] for stem, entry in TASK_FIGURES.items()}
TABLE_SUFFIXES: tuple[str, ...] = (".csv", ".md", ".tex")
FIGURE_SUFFIXES: tuple[str, ...] = (".pdf", ".png")


def figures(tasks: Iterable[str]) -> tuple[str, ...]:
    """Stems of the figures that a grid with these tasks promises."""
    names = tuple(tasks)
    own = (stem for stem, (start, _) in TASK_FIGURES.items() if any(name.startswith(start) for name in names))
    return (*FIGURES, *own)
