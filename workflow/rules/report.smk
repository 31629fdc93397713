# The page people read: one HTML file from the logs, the scores and the figures' code. No torch in here.
rule report:
    input:
        logs=LOG_FILES,
        claims=CLAIM_FILES,
        verdicts=f"{RESULTS}/verdicts.csv",
        code=sources("paper", "report"),
        # On the page where they were measured; a run without them makes the page too.
        exhibits=shown_exhibits(),
        assets=sorted(map(str, Path(SOURCE, "kvcert", "report", "assets").glob("*.*"))),
        # How to cite; a copy of the workflow without it still makes a page.
        citation=[str(path) for path in Path(workflow.basedir).glob("CITATION.cff")],
    output:
        f"{RESULTS}/report/index.html",
    log:
        f"{RESULTS}/logs/report.log",
    localrule: True
    conda:
        ENVIRONMENT
    threads: 1
    params:
        root=lambda wildcards: workflow.basedir,
    message:
        "Writing the report: one page with verdicts, figures, tables and every run"
    script:
        "../scripts/report.py"
