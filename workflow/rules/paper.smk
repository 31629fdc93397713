# Tables and figures, drawn from the logs and the scores alone. No torch in here.
rule tables:
    input:
        logs=LOG_FILES,
        claims=CLAIM_FILES,
        verdicts=f"{RESULTS}/verdicts.csv",
        code=[path for path in sources("paper") if "figures" not in Path(path).parts],
    output:
        TABLE_FILES,
    log:
        f"{RESULTS}/logs/tables.log",
    localrule: True
    conda:
        ENVIRONMENT
    threads: 1
    params:
        stems=TABLES,
    message:
        "Writing the tables as CSV, Markdown and LaTeX"
    script:
        "../scripts/tables.py"


rule figures:
    input:
        logs=LOG_FILES,
        claims=CLAIM_FILES,
        verdicts=f"{RESULTS}/verdicts.csv",
        code=sources("paper"),
    output:
        FIGURE_FILES,
    log:
        f"{RESULTS}/logs/figures.log",
    localrule: True
    conda:
        ENVIRONMENT
    threads: 1
    params:
        stems=FIGURES,
    message:
        f"Drawing the figures as PDF and PNG into {FOLDER}"
    script:
        "../scripts/figures.py"
