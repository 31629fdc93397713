# What the other files share: the resolved configuration, its shards, and the names of the promised files.
import re
import shutil
import subprocess
from pathlib import Path

from kvcert.config import resolve
from kvcert.config_checks import check_known
from kvcert.errors import KvcertError
from kvcert.estimate import describe, plan
from kvcert.files import canonical_json
from kvcert.grid import shards
from kvcert.paper.catalogue import FIGURE_SUFFIXES, TABLE_SUFFIXES, TABLES, figures
from kvcert.paper.cells import DONE, state
from kvcert.prepared import prepared_file
from kvcert.sizing import memory_mb, minutes, partition
from kvcert.tasks.longbench.catalogue import needed

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

# Official LongBench files that come from a folder: the preparation follows them.
GIVEN = RUN["longbench"]
LONGBENCH_FILES = [Path(GIVEN, f"{name}.jsonl") for name in needed(config["study"])] if GIVEN else []
PREPARED = prepared_file(config)
LOG_FILES = [f"{RESULTS}/{table}/{shard}.parquet" for table in ("runs", "steps", "heads") for shard in SPECS]
CLAIM_FILES = [f"{RESULTS}/claims/{claim}.json" for claim in CLAIMS]
TABLE_FILES = [f"{RESULTS}/tables/{stem}{suffix}" for stem in TABLES for suffix in TABLE_SUFFIXES]
FIGURES = figures(task["name"] for task in config["study"]["tasks"])
FIGURE_FILES = [f"{FOLDER}/{stem}{suffix}" for stem in FIGURES for suffix in FIGURE_SUFFIXES]


#: Left by a run that showed its verdicts. Snakemake ends silently when nothing is to be done; `make` then shows them.
SHOWN = Path(".snakemake/verdicts-shown")


def sources(*packages):
    """The package's own files behind a rule: a changed claim is scored again, a changed figure drawn again."""
    folders = (Path(SOURCE) / "kvcert" / package for package in packages)
    return sorted(str(path) for folder in folders for path in folder.rglob("*.py"))


def model_of(wildcards):
    """The prepared models, asked for by shards that are not done: another model or a lost cache repeats no other shard."""
    if wildcards.shard not in SPECS:
        sys.exit(f"no shard {wildcards.shard} in this grid; `kvcert cells --shards` lists them")
    return [] if state(Path(RESULTS), SPECS[wildcards.shard]) == DONE else PREPARED


def finish():
    """The closing words: the verdicts, if this call was about the whole study, and the exhibits that it asked for."""
    if ASKED and all(Path(exhibit_file(name)).is_file() for name in ASKED):
        from kvcert.paper.exhibits.console import print_outcomes

        print_outcomes(Path(RESULTS), ASKED)
    if not Path(RESULTS, "verdicts.csv").is_file():
        return
    from kvcert.paper.console import print_verdicts

    print_verdicts(Path(RESULTS))
    SHOWN.touch()
    print(f"logs, claims and tables: {RESULTS}/   figures: {FOLDER}/")


def stand_in_for_sacct():
    """Without an accounting database the real sacct can only fail, and the Slurm executor would forget its jobs."""
    if "SLURM_JOB_ID" in os.environ or shutil.which("sacct") is None:
        return
    try:
        asked = subprocess.run(["sacct", "--noheader"], capture_output=True, text=True, timeout=20)
    except subprocess.TimeoutExpired:
        return  # there is a database, and it is busy
    if "accounting storage is disabled" in asked.stderr.lower():
        folder = os.path.join(workflow.basedir, "slurm", "noaccounting", "bin")
        os.environ.update(PATH=os.pathsep.join([folder, os.getenv("PATH", os.defpath)]))


stand_in_for_sacct()


def place_of_cells():
    """Where a shard's job goes, and its one GPU: `gpu` or `gres`, never both. Keys left out are the profile's."""
    cluster, place = RUN["cluster"], {}
    if RUN["device"] != "cpu":
        place |= {"gres": cluster["gres"]} if cluster["gres"] else {"gpu": 1}
    if cluster["account"]:
        place["slurm_account"] = cluster["account"]
    if cluster["partitions"]:
        place["slurm_partition"] = lambda wildcards, attempt: partition(SPECS[wildcards.shard], RUN, attempt)
    return place


PLACE = place_of_cells()


wildcard_constraints:
    # Model, task and length from the grid, any part: a list of all shards would make the graph quadratic in their number.
    shard="(?:" + "|".join(sorted({re.escape(name.rsplit(".", 1)[0]) for name in SPECS})) + r")\.[0-9]+",
