# What the exhibits' rules share: which there are, what each reads, which this call asks for.
from functools import cache

from kvcert.exhibits import EXHIBITS
from kvcert.exhibits.grids import specs as exhibit_specs
from kvcert.exhibits.needs import ALONE, NEEDS
from kvcert.exhibits.registration import FILE as EXHIBITS_FILE
from kvcert.exhibits.registration import load as load_exhibits
from kvcert.files import sha256_json
from kvcert.paper.catalogue import EXHIBIT_STEMS

EXHIBIT_OF = {stem: name for name, stem in EXHIBIT_STEMS.items()}
#: What this call asks for by name. Jobs in processes of their own find the files in place instead.
ASKED = [name for name in EXHIBITS if "exhibits" in sys.argv or (name == "controls" and name in sys.argv)]


def exhibit_file(name):
    """The outcome of one exhibit, written after its rows."""
    return f"{RESULTS}/exhibits/{name}.json"


def exhibit_entry(wildcards):
    """The registered entry as text: an edited entry measures its exhibit again and no other."""
    try:
        return canonical_json(load_exhibits(Path(workflow.basedir))[wildcards.exhibit])
    except KvcertError as problem:
        sys.exit(str(problem))


def exhibit_inputs(wildcards):
    """Prepared model, logs, traces or runs of its own: `kvcert.exhibits.needs`. A lost cache repeats no finished exhibit."""
    name = wildcards.exhibit
    needs, found = NEEDS[name], [ancient(str(Path(workflow.basedir, EXHIBITS_FILE)))]
    if "model" in needs and not Path(exhibit_file(name)).is_file():
        found.append(PREPARED)
    if needs & {"logs", "traces"}:
        found += [*LOG_FILES, ancient(f"{RESULTS}/integrity.json")]
    if "traces" in needs:
        if not RUN["trace_examples"]:
            sys.exit(f"exhibit {name} reads traces of the grid: set run.trace_examples to 1 or more")
        found += [f"{RESULTS}/traces/{shard}.safetensors" for shard in SPECS]
    if "cells" in needs:
        found += [
            f"{CELLS_FOLDER}/{table}/{spec['shard']}.parquet"
            for table in ("runs", "steps", "heads")
            for spec in exhibit_specs(name, config, Path(workflow.basedir))
        ]
    if "claims" in needs:
        found += CLAIM_FILES
    return found


def exhibit_outputs(*names):
    """Tables and figures of exhibits."""
    stems = [EXHIBIT_STEMS[name] for name in names]
    tables = [f"{RESULTS}/tables/{stem}{suffix}" for stem in stems for suffix in TABLE_SUFFIXES]
    return tables + [f"{FOLDER}/{stem}{suffix}" for stem in stems for suffix in FIGURE_SUFFIXES]


def shown_exhibits():
    """Outcomes that the page shows: those that are there and those that this call makes."""
    return [exhibit_file(name) for name in EXHIBITS if name in ASKED or Path(exhibit_file(name)).is_file()]


CELLS_FOLDER = f"{RESULTS}/exhibits/cells"
PLACE_OF_EXHIBITS = {key: value for key, value in PLACE.items() if key != "slurm_partition"}


@cache
def exhibit_cells():
    """Every shard that exhibits have of their own, by name; only a call about exhibits reads their registration."""
    root = Path(workflow.basedir)
    return {spec["shard"]: spec for name in EXHIBITS for spec in exhibit_specs(name, config, root)}


def exhibit_cell_spec(wildcards):
    """The specification of an exhibit's shard."""
    found = exhibit_cells()
    if wildcards.cell not in found:
        sys.exit(f"no exhibit has a shard {wildcards.cell}")
    return found[wildcards.cell]


wildcard_constraints:
    exhibit="|".join(EXHIBITS),
    stem="|".join(EXHIBIT_OF),
