"""The chance that a true effect of the paper's size is killed at this sample size, by simulation (C2 and C6).

`python -m kvcert.registry.power` prints the table that stands in the analysis plan.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import norm

from kvcert.claims.auc import auc, conditional_auc, pair_count
from kvcert.registry.claims_file import load_claims


@dataclass(frozen=True)
class World:
    """Assumptions. Every study has `tasks` x `examples` clusters, three budgets and two draws."""

    tasks: int = 5
    examples: int = 48
    full_pass: float = 0.5  # share of examples whose full run passes
    induced: tuple[float, ...] = (
        0.5,
        0.3,
        0.15,
    )  # mean chance that eviction breaks a passing example, by budget
    spread: float = 1.0  # standard deviation of an example's resilience, probit scale
    inherent: float = 0.95  # chance that an example whose full run fails also fails evicted
    shared: float = 0.5  # share of a signal's variance that the runs of one example have in common
    certificate: float = 0.74  # true AUCs of attribution: the paper's middle values
    confidence: float = 0.50
    two_run: float = 0.65
    settings: int = 2  # C2 pools both settings
    alike: float = (
        0.5  # correlation of what befalls the runs of one example at one budget (C2: Poisson and top-k
    )
    # keep the same sinks, recent tokens and top slice); 0 is the worst case


def outcomes(world: World, rng: np.random.Generator, draws: int) -> tuple[np.ndarray, np.ndarray]:
    """Whether the full run passes, (clusters,), and the evicted ones, (clusters, budgets, draws)."""
    clusters = world.tasks * world.examples
    passes = rng.random(clusters) < world.full_pass
    resilience = world.spread * rng.standard_normal((clusters, 1, 1))
    # The probit line is moved so that the mean over examples is the stated chance.
    line = norm.ppf(np.array(world.induced))[None, :, None] * math.sqrt(1 + world.spread**2)
    luck = math.sqrt(world.alike) * rng.standard_normal((clusters, len(world.induced), 1))
    luck = luck + math.sqrt(1 - world.alike) * rng.standard_normal((clusters, len(world.induced), draws))
    broken = luck < line - resilience
    lucky = rng.random(broken.shape) > world.inherent
    return passes, np.where(passes[:, None, None], ~broken, lucky)


def parity(world: World, claim: dict[str, Any], studies: int, seed: int) -> dict[str, float]:
    """Shares of C2's verdicts when Poisson and top-k are equally good in truth."""
    rng, counts = np.random.default_rng([seed, 2]), dict.fromkeys(("survived", "killed", "underpowered"), 0)
    errors = np.zeros(studies)
    for study in range(studies):
        differences = []
        for _ in range(world.settings):
            _, ok = outcomes(world, rng, 3)
            differences.append((ok[:, :, :2].mean(axis=2) - ok[:, :, 2]).mean(axis=1))
        mean = np.mean(differences, axis=0)
        errors[study] = mean.std(ddof=1) / math.sqrt(len(mean))
        killed = mean.mean() < claim["lines"]["parity"]["threshold"]
        weak = errors[study] > claim["minimum"]["largest_standard_error"]
        counts["underpowered" if weak else "killed" if killed else "survived"] += 1
    return {name: count / studies for name, count in counts.items()} | {
        "median_standard_error": float(np.median(errors))
    }


def attribution(world: World, claim: dict[str, Any], studies: int, seed: int) -> dict[str, float]:
    """Shares of C6's verdicts when the true AUCs are the paper's, alike in every task and budget."""
    rng = np.random.default_rng([seed, 6])
    names = ("survived", "killed", "killed (carried by task or budget)", "underpowered")
    counts = dict.fromkeys(names, 0)
    for _ in range(studies):
        counts[_one_attribution(world, claim, rng)] += 1
    return {name: count / studies for name, count in counts.items()}


def _one_attribution(world: World, claim: dict[str, Any], rng: np.random.Generator) -> str:
    passes, ok = outcomes(world, rng, 2)
    cluster, budget, draw = np.nonzero(~ok)
    induced, task = passes[cluster], cluster // world.examples
    place = task * ok.shape[1] + budget
    each = 1.0 / (~ok).sum(axis=2)[cluster, budget]
    minimum, lines = claim["minimum"], claim["lines"]
    both = sum(
        min(len(set(cluster[(task == t) & (induced == label)].tolist())) for label in (True, False))
        >= minimum["clusters_of_each_class"]
        for t in range(world.tasks)
    )
    if both < minimum["tasks"] or pair_count(induced, each, place) < minimum["pairs"]:
        return "underpowered"
    values = {}
    for name, paired in (("certificate", False), ("confidence", False), ("two_run", True)):
        own = rng.standard_normal(ok.shape)
        own = np.broadcast_to(own[:, :, :1], ok.shape) if paired else own  # two-run: one value for both draws
        common = rng.standard_normal((len(ok), 1, 1))
        noise = math.sqrt(world.shared) * common + math.sqrt(1 - world.shared) * own
        shift = math.sqrt(2) * norm.ppf(getattr(world, name))
        signal = noise[cluster, budget, draw] + shift * induced
        values[name] = (
            float(auc(signal, induced, each[None])[0]), float(conditional_auc(signal, induced, each[None], place)[0])
        )  # fmt: skip
    for form, name in enumerate(("pooled", "conditional")):
        mine = values["certificate"][form]
        below = mine < lines[name]["threshold"] or (form == 1 and mine <= lines[name]["threshold"])
        if below or mine <= values["confidence"][form] or mine <= values["two_run"][form]:
            return "killed" if form == 0 else str(lines[name]["kind"])
    return "survived"


def table(root: Path, world: World, studies: int, seed: int) -> str:
    """Markdown: assumptions, then the shares of each verdict."""
    claims = load_claims(root)["claims"]
    lines = ["Assumptions: " + ", ".join(f"{key} {value}" for key, value in asdict(world).items()) + ".", ""]
    lines += [
        f"{studies} simulated studies, seed {seed}.",
        "",
        "| claim | verdict | share |",
        "|---|---|---|",
    ]
    for claim, shares in (
        ("C2", parity(world, claims["C2"], studies, seed)), ("C6", attribution(world, claims["C6"], studies, seed)),
    ):  # fmt: skip
        lines += [f"| {claim} | {name.replace('_', ' ')} | {share:.4f} |" for name, share in shares.items()]
    return "\n".join(lines)


def main() -> None:
    """Print the table for the defaults or for other sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    sizes = [("tasks", int), ("examples", int)]
    for name, kind in [*sizes, *((name, float) for name in ("certificate", "full-pass", "spread", "alike"))]:
        parser.add_argument(f"--{name}", type=kind, default=getattr(World, name.replace("-", "_")))
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=2607)
    args = vars(parser.parse_args())
    studies, seed = args.pop("studies"), args.pop("seed")
    print(table(Path.cwd(), World(**args), studies, seed))


if __name__ == "__main__":
    main()
