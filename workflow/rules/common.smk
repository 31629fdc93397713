# What the other files share: the resolved configuration, its shards, and the names of the promised files.
import re
from pathlib import Path

from kvcert.config import resolve
from kvcert.config_checks import check_known
from kvcert.errors import KvcertError
from kvcert.estimate import describe, plan
from kvcert.files import canonical_json, sha256_json
from kvcert.grid import shards
from kvcert.paper.catalogue import FIGURE_SUFFIXES, FIGURES, TABLE_SUFFIXES, TABLES
from kvcert.paper.cells import DONE, state

try:
    config = resolve(config)
    check_known(config)
except KvcertError as problem:
    sys.exit(str(problem))

RUN = config["run"]
RESULTS, FOLDER, CACHE = RUN["results"], RUN["figures"], RUN["cache"]
SPECS = {spec["shard"]: spec for spec in shards(config)}
CLAIMS = [f"C{number}" for number in range(1, 8)]
ENVIRONMENT = "../../environment.yml"

# The name holds the hash of the list of models, so another list is another file.
PREPARED = f"{CACHE}/prepared/{sha256_json(config['study']['models'])[:16]}.json"
LOG_FILES = [f"{RESULTS}/{table}/{shard}.parquet" for table in ("runs", "steps", "heads") for shard in SPECS]
CLAIM_FILES = [f"{RESULTS}/claims/{claim}.json" for claim in CLAIMS]
TABLE_FILES = [f"{RESULTS}/tables/{stem}{suffix}" for stem in TABLES for suffix in TABLE_SUFFIXES]
FIGURE_FILES = [f"{FOLDER}/{stem}{suffix}" for stem in FIGURES for suffix in FIGURE_SUFFIXES]


#: Left by a run that showed its verdicts. Snakemake ends silently when nothing is to be done; `make` then shows them.
SHOWN = Path(".snakemake/verdicts-shown")


def sources(*packages):
    """The package's own files behind a rule: a changed claim is scored again, a changed figure drawn again."""
    folders = (Path(SOURCE) / "kvcert" / package for package in packages)
    return sorted(str(path) for folder in folders for path in folder.rglob("*.py"))


def model_of(wildcards):
    """The prepared models, asked for by shards that are not done: another model or a lost cache repeats no other shard."""
    return [] if state(Path(RESULTS), SPECS[wildcards.shard]) == DONE else PREPARED


def finish():
    """The closing words: the verdict table, if this call was about the whole study."""
    if not Path(RESULTS, "verdicts.csv").is_file():
        return
    from kvcert.paper.console import print_verdicts

    print_verdicts(Path(RESULTS))
    SHOWN.touch()
    print(f"logs, claims and tables: {RESULTS}/   figures: {FOLDER}/")


wildcard_constraints:
    shard="|".join(map(re.escape, SPECS)),
