# Models and texts: fetched, checked against their hashes, converted once. All grids share them.


rule setup:
    input:
        # Local LongBench files, where they are used: a changed one is checked and copied again. A missing one is told
        # by the script, with the line that says what to do.
        [str(file) for name in LONGBENCH if (file := Path(RUN["longbench"], f"{name}.jsonl")).is_file()],
    output:
        PREPARED,
    log:
        f"{RESULTS}/logs/setup.log",
    localrule: True
    conda:
        ENVIRONMENT
    threads: 1
    params:
        models=sorted(model["name"] for model in config["study"]["models"]),
    message:
        f"Fetching, checking and converting the models and texts into {CACHE} (once; one to three minutes)"
    script:
        "../scripts/setup.py"
