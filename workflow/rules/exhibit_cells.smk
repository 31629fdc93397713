# Runs that exhibits need beside the registered grid: one job per shard, as in cells.smk, into a folder of their own.


rule exhibit_cell:
    input:
        prepared=lambda wildcards: (
            [] if state(Path(CELLS_FOLDER), exhibit_cell_spec(wildcards)) == DONE else PREPARED
        ),
    output:
        runs=f"{CELLS_FOLDER}/runs/{{cell}}.parquet",
        steps=f"{CELLS_FOLDER}/steps/{{cell}}.parquet",
        heads=f"{CELLS_FOLDER}/heads/{{cell}}.parquet",
        traces=f"{CELLS_FOLDER}/traces/{{cell}}.safetensors",
    log:
        f"{RESULTS}/logs/exhibits/{{cell}}.log",
    conda:
        ENVIRONMENT
    threads: RUN["threads"]
    resources:
        **PLACE_OF_EXHIBITS,
        mem_mb=lambda wildcards, attempt: memory_mb(exhibit_cell_spec(wildcards), RUN, attempt),
        runtime=lambda wildcards, attempt: minutes(exhibit_cell_spec(wildcards), RUN, attempt),
        cpus_per_task=RUN["threads"],
    params:
        spec=lambda wildcards: canonical_json(exhibit_cell_spec(wildcards)),
        what=lambda wildcards, input: describe(exhibit_cell_spec(wildcards), RUN),
    message:
        "Shard {wildcards.cell} of an exhibit: {params.what}"
    script:
        "../scripts/exhibit_cell.py"
