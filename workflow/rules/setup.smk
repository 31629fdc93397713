# Models and texts: fetched, checked against their hashes, converted once. All grids share them.


rule setup:
    input:
        # A changed LongBench file is checked and copied again. A missing one is told by the script, with what to do.
        [str(path) for path in LONGBENCH_FILES if path.is_file()],
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
