# The theorems on the grid's own model: `snakemake exhibits` (X1 to X5, controls, ablations, and the page with them),
# `snakemake controls` (fails when a control does). On request only; measuring needs torch, tables and figures do not.
from kvcert.exhibits import EXHIBITS
from kvcert.exhibits.needs import ALONE, NEEDS
from kvcert.exhibits.registration import FILE as EXHIBITS_FILE
from kvcert.exhibits.registration import load as load_exhibits
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
        shards_of = exhibit_specs(name, config)
        found += [
            f"{RESULTS}/exhibits/cells/{table}/{spec['shard']}.parquet"
            for table in ("runs", "steps", "heads")
            for spec in shards_of
        ]
    return found


def exhibit_outputs(*names):
    """Tables and figures of exhibits."""
    stems = [EXHIBIT_STEMS[name] for name in names]
    tables = [f"{RESULTS}/tables/{stem}{suffix}" for stem in stems for suffix in TABLE_SUFFIXES]
    return tables + [f"{FOLDER}/{stem}{suffix}" for stem in stems for suffix in FIGURE_SUFFIXES]


def shown_exhibits():
    """Outcomes that the page shows: those that are there and those that this call makes."""
    return [exhibit_file(name) for name in EXHIBITS if name in ASKED or Path(exhibit_file(name)).is_file()]


wildcard_constraints:
    exhibit="|".join(EXHIBITS),
    stem="|".join(EXHIBIT_OF),


rule exhibit:
    input:
        exhibit_inputs,
    output:
        exhibit_file("{exhibit}"),
    log:
        f"{RESULTS}/logs/exhibit_{{exhibit}}.log",
    conda:
        ENVIRONMENT
    # What takes time itself is measured alone on the machine.
    threads: lambda wildcards: workflow.cores if wildcards.exhibit in ALONE else RUN["threads"]
    resources:
        **PLACE_OF_EXHIBITS,
        mem_mb=lambda wildcards, attempt: max(memory_mb(spec, RUN, attempt) for spec in SPECS.values()),
        runtime=lambda wildcards, attempt: 60 * attempt,
        cpus_per_task=RUN["threads"],
    params:
        entry=exhibit_entry,
        study=sha256_json(config["study"]),
        root=lambda wildcards: workflow.basedir,
    message:
        "Exhibit {wildcards.exhibit}: measuring it"
    script:
        "../scripts/exhibit.py"


rule exhibit_page:
    input:
        found=lambda wildcards: exhibit_file(EXHIBIT_OF[wildcards.stem]),
        code=sources("paper/exhibits"),
    output:
        tables=[f"{RESULTS}/tables/{{stem}}{suffix}" for suffix in TABLE_SUFFIXES],
        figures=[f"{FOLDER}/{{stem}}{suffix}" for suffix in FIGURE_SUFFIXES],
    log:
        f"{RESULTS}/logs/exhibit_page_{{stem}}.log",
    localrule: True
    conda:
        ENVIRONMENT
    threads: 1
    params:
        name=lambda wildcards: EXHIBIT_OF[wildcards.stem],
    message:
        "Writing table and figure {wildcards.stem}"
    script:
        "../scripts/exhibit_page.py"


rule controls_hold:
    input:
        exhibit_file("controls"),
    output:
        touch(f"{RESULTS}/exhibits/controls.hold"),
    log:
        f"{RESULTS}/logs/controls_hold.log",
    localrule: True
    conda:
        ENVIRONMENT
    threads: 1
    params:
        found=lambda wildcards, input: input[0],
    message:
        "Holding every control against what must happen"
    script:
        "../scripts/controls_hold.py"
