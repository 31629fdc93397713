"""A claim's JSON against the registered text and against the second computation: what it says must follow from both."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from kvcert.audit.derive import COMPARED, passes, plain
from kvcert.audit.second.claims import Computed

KILLED = "killed"
#: Curves are drawn with at most 400 points, so their area is the AUC only to this.
AREA = 0.01
#: Keys of a claim's JSON that repeat the registration, and where they stand there.
TEXT = {
    "claim": ("id",), "title": ("title",), "statement": ("statement",), "definition": ("statistic",),
    "kill_condition": ("kill_condition",), "scope": ("scope",), "our_reading": ("our_reading",),
    "paper_value": ("paper", "value"), "paper_number": ("paper", "number"), "paper_verdict": ("paper", "verdict"),
}  # fmt: skip


def text_problems(claim: dict[str, Any], registered: dict[str, Any]) -> list[str]:
    """Registered words, lines, directions and roles that the JSON states otherwise."""
    found = []
    for key, path in TEXT.items():
        value: Any = registered
        for step in path:
            value = value[step]
        if claim.get(key) != plain(value):
            found.append(f"`{key}` is not the registered one")
    for part in claim["parts"]:
        line = registered["lines"].get(part["name"].split(" at ")[0])
        stated = {key: part.get(key) for key in ("threshold", "direction", "role", "kind")}
        if line is None:
            found.append(f"part {part['name']} is not registered")
            continue
        wanted = {"threshold": float(line["threshold"]), "direction": line["passes"], "role": line["role"]}
        wanted |= {"kind": line.get("kind", KILLED)}
        found += [
            f"part {part['name']}: `{k}` is {stated[k]}, registered {v}"
            for k, v in wanted.items()
            if stated[k] != v
        ]
        if not part["label"].startswith(line["label"]):
            found.append(f"part {part['name']}: `label` is not the registered one")
    return found


def disagreements(claim: dict[str, Any], registered: dict[str, Any], found: Computed) -> list[str]:
    """Numbers of the JSON that the second computation does not give (1e-9), and a verdict that does not follow."""
    problems = [f"{key} is {claim[key]}, recomputed {have}" for key, have in
                (("n_runs", found.n_runs), ("n_clusters", found.n_clusters)) if claim[key] != have]  # fmt: skip
    listed = {part["name"]: part for part in claim["parts"]}
    if listed and set(listed) != set(found.parts):
        problems.append(f"parts are {sorted(listed)}, recomputed {sorted(found.parts)}")
    for name, part in listed.items():
        if not close(part["value"], found.parts.get(name)):
            problems.append(f"part {name} is {part['value']}, recomputed {found.parts.get(name)}")
        if part["passed"] != passes(found.parts.get(name), part["threshold"], part["direction"]):
            problems.append(f"part {name}: `passed` is {part['passed']}")
    for line in claim["strata"]:
        key = (line["by"], line["name"], line["measure"])
        if key not in found.strata:
            problems.append(f"stratum {key} is not in the second computation")
        elif not close(line["value"], found.strata[key]):
            problems.append(f"stratum {key} is {line['value']}, recomputed {found.strata[key]}")
    return problems + curve_problems(claim, found) + verdict_problems(claim, registered, found)


def curve_problems(claim: dict[str, Any], found: Computed) -> list[str]:
    """What the figures draw: C7's curve point by point; C6's ROC curves by the area below them."""
    problems = []
    if claim["claim"] == "C7" and claim["curves"]:
        for place, fraction in enumerate(claim["curves"]["fraction"]):
            for gate in ("certificate", "random", "confidence", "oracle"):
                value = found.strata.get(("curve", f"{fraction:g}", gate))
                if not close(claim["curves"][gate][place], value):
                    problems.append(f"curve {gate} at {fraction:g} is not {value}")
    if claim["claim"] == "C6":
        for setting, names in claim["curves"].items():
            for name, forms in names.items():
                for form, curve in forms.items():
                    value = found.strata.get(("setting", setting, f"{form}/{name}"))
                    if curve["fpr"] and (value is None or abs(_area(curve) - value) > AREA):
                        problems.append(f"{form} curve of {name}, {setting}: its area is not {value}")
    return problems


def _area(curve: dict[str, list[float]]) -> float:
    """Trapezoids below a curve."""
    points = list(zip(curve["fpr"], curve["tpr"], strict=True))
    return sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in pairwise(points))


def close(stated: Any, computed: float | None) -> bool:
    """Equal to 1e-9 (relative above 1); null is NaN, text is an infinity."""
    value = plain(computed)
    if isinstance(stated, int | float) and isinstance(value, int | float):
        return abs(stated - value) <= COMPARED * max(1.0, abs(value))
    return bool(stated == value)


def verdict_problems(claim: dict[str, Any], registered: dict[str, Any], found: Computed) -> list[str]:
    """The verdict rule applied again: minima, kill condition, decisiveness, the part shown, agreement with the paper."""
    problems, verdict = [], claim["verdict"]
    deciding = [part for part in claim["parts"] if part["role"] == "decides"]
    failed = [part for part in deciding if part["passed"] is False]
    undefined = [part for part in deciding if part["passed"] is None]
    short = {name: pair for name, pair in found.minima.items() if pair[0] < pair[1]}
    limit = registered["minimum"].get("largest_standard_error")
    error = claim["counts"].get("standard_error")
    if limit is not None and (error is None or not error <= limit):
        short["standard error"] = (0.0, limit)
    if not deciding and runnable(found):
        problems.append("no part is listed, though these rows hold what the claim needs")
    if not deciding or len(undefined) == len(deciding):
        wanted = "not-run"
    elif short:
        wanted = "underpowered"
    elif undefined:
        wanted = "not-run"
    elif failed:
        kinds = [part["kind"] for part in failed]
        wanted = KILLED if KILLED in kinds else kinds[0]
    else:
        wanted = "survived"
    if verdict != wanted:
        problems.append(f"verdict is {verdict}, the registered rule gives {wanted}")
    decisive = False
    if wanted == "survived":
        decisive = all(_beyond(p, p["ci_low"], p["ci_low"], p["ci_high"]) for p in deciding)
    elif wanted.startswith(KILLED):
        ends = ("bonferroni_high", "bonferroni_low", "bonferroni_high")
        decisive = any(_beyond(p, *(p[end] for end in ends)) is False for p in failed)
    if claim["decisive"] != decisive:
        problems.append(f"decisive is {claim['decisive']}, the intervals give {decisive}")
    agrees = (
        None if wanted in ("not-run", "underpowered") else wanted.split()[0] == registered["paper"]["verdict"]
    )
    if claim["agrees"] != agrees:
        problems.append(f"agrees is {claim['agrees']}, it follows {agrees}")
    known = [part for part in deciding if part["passed"] is not None]
    if known:
        near = min(known, key=lambda part: part["value"] - part["threshold"])
        shown = {
            "part": near["name"],
            **{key: near[key] for key in ("value", "ci_low", "ci_high", "threshold", "direction")},
        }
        problems += [f"{k} is not that of part {near['name']}" for k, v in shown.items() if claim[k] != v]
    return problems


#: From this many examples on, a bootstrap interval and the jackknife's must be of the same size within this factor.
ENOUGH, FACTOR = 10, 3.0


def interval_problems(claim: dict[str, Any], errors: dict[str, Any]) -> list[str]:
    """Intervals of the registered lines that are not of the size that the jackknife gives, or not around their value.

    The registered bootstrap is not repeated here (2,000 resamples take longer than a check may): this finds an interval
    that was moved or shrunk, not its last digits.
    """
    found = []
    for part in claim["parts"]:
        value, low, high = (part[key] for key in ("value", "ci_low", "ci_high"))
        if not all(isinstance(number, int | float) for number in (value, low, high)):
            continue
        wide = (part["bonferroni_low"], part["bonferroni_high"])
        if not wide[0] <= low <= high <= wide[1]:
            found.append(f"part {part['name']}: its intervals do not lie in each other")
        error = errors.get(part["name"])
        if (
            claim["n_clusters"] < ENOUGH
            or not isinstance(error, float)
            or error < 1e-4
            or value in (0.0, 1.0)
        ):
            continue
        ratio = (high - low) / (2 * 1.96 * error)
        if not 1 / FACTOR <= ratio <= FACTOR or not low <= value <= high:
            found.append(
                f"part {part['name']}: its interval is {ratio:.2f} of the jackknife's, or not around the value"
            )
    return found


def runnable(found: Computed) -> bool:
    """Whether nothing forbids a verdict: rows, both classes, something to gain, a certificate that varies."""
    rows = found.primary
    if len(rows) == 0:
        return False
    label = {"C4": "fail", "C6": "induced"}.get(found.name)
    if label and rows[label].astype(bool).nunique() < 2:
        return False
    if found.name == "C7" and not (rows["gain"] > 0).any():
        return False
    return not (found.name in ("C4", "C5", "C6", "C7") and rows["signal"].nunique() == 1)


def _beyond(part: dict[str, Any], end: Any, low: Any, high: Any) -> bool | None:
    """Whether an interval's end passes the line; None where there is no interval of some width."""
    if not all(isinstance(value, int | float) for value in (end, low, high)) or not high > low:
        return None
    return passes(end, part["threshold"], part["direction"])
