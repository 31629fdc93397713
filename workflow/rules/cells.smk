# The measurement: one job per shard of (model × task × length).
# A shard is run again when its specification changes or a file of it is missing, never for an edit elsewhere:
# profiles/default leaves changed code out of the triggers, and a finished shard needs no model. A change to the measuring
# code that changes numbers raises kvcert.grid.MEASURE, and with it every specification.
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
        **PLACE,
        # Functions of model, length, examples and attempt: kvcert.sizing. A retry asks for more.
        mem_mb=lambda wildcards, attempt: memory_mb(SPECS[wildcards.shard], RUN, attempt),
        runtime=lambda wildcards, attempt: minutes(SPECS[wildcards.shard], RUN, attempt),
        # --cores all would cap `threads` at the submit host's processors; this key it leaves alone.
        cpus_per_task=RUN["threads"],
    params:
        # Canonical text: the order of keys in a YAML file means nothing, so it must not repeat a shard.
        spec=lambda wildcards: canonical_json(SPECS[wildcards.shard]),
        trace_examples=RUN["trace_examples"],
        # Words for the console. Derived from the input, hence no trigger: other words must not repeat a shard either.
        what=lambda wildcards, input: describe(SPECS[wildcards.shard], RUN),
    message:
        "Shard {wildcards.shard}: {params.what}"
    script:
        "../scripts/cell.py"
