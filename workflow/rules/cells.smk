# The measurement: one job per shard of (model × task × length).
# A shard is run again when its specification changes or a file of it is missing, never for an edit elsewhere:
# profiles/default leaves changed code out of the triggers, and a finished shard needs no model.
# The traces of its first examples are kept for the exhibits.


rule cell:
    input:
        prepared=model_of,
    output:
        runs=f"{RESULTS}/runs/{{shard}}.parquet",
        steps=f"{RESULTS}/steps/{{shard}}.parquet",
        heads=f"{RESULTS}/heads/{{shard}}.parquet",
        traces=f"{RESULTS}/traces/{{shard}}.safetensors" if RUN["trace_examples"] else [],
    log:
        f"{RESULTS}/logs/{{shard}}.log",
    conda:
        ENVIRONMENT
    threads: RUN["threads"]
    resources:
        mem_mb=lambda wildcards, attempt: 4000 * attempt,
        runtime=lambda wildcards, attempt: 120 * attempt,
        cpus_per_task=RUN["threads"],
        gpu=1 if RUN["device"] != "cpu" else 0,
    params:
        # Canonical text: the order of keys in a YAML file means nothing, so it must not repeat a shard.
        spec=lambda wildcards: canonical_json(SPECS[wildcards.shard]),
        trace_examples=RUN["trace_examples"],
        # Words for the console. Derived from the input, hence no trigger: other words must not repeat a shard either.
        what=lambda wildcards, input: describe(SPECS[wildcards.shard]),
    message:
        "Shard {wildcards.shard}: {params.what}"
    script:
        "../scripts/cell.py"
