# The theorems on the grid's own model: `snakemake exhibits` (X1 to X5, controls, ablations, and the page with them),
# `snakemake controls` (fails when a control does). On request only; measuring needs torch, tables and figures do not.


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
    threads: lambda wildcards: (workflow.cores or RUN["threads"]) if wildcards.exhibit in ALONE else RUN["threads"]
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
