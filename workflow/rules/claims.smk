# The judgement: nothing is scored before every shard passed the integrity gate. No torch in here.


rule integrity:
    input:
        LOG_FILES,
    output:
        report=f"{RESULTS}/integrity.json",
        config=f"{RESULTS}/config.json",
    log:
        f"{RESULTS}/logs/integrity.log",
    localrule: True
    conda:
        ENVIRONMENT
    threads: 1
    params:
        config=canonical_json(config),
    message:
        f"Checking that every shard in {RESULTS} is there, whole, and of this grid"
    script:
        "../scripts/integrity.py"


rule score:
    input:
        gate=f"{RESULTS}/integrity.json",
        # Named beside the gate: two sets of logs may leave the same report, and an interrupted run must not mix them up.
        logs=LOG_FILES,
        # The exhibits have a registration of their own: a word in it scores no claim again.
        registration=sorted(
            str(path)
            for path in Path(workflow.basedir, "preregistration").glob("*.*")
            if not path.name.lower().startswith("exhibits")
        ),
        code=sources("claims", "registry"),
    output:
        claims=CLAIM_FILES,
        verdicts=f"{RESULTS}/verdicts.csv",
    log:
        f"{RESULTS}/logs/score.log",
    localrule: True
    conda:
        ENVIRONMENT
    threads: 1
    params:
        root=lambda wildcards: workflow.basedir,
    message:
        "Scoring C1 to C7 against their kill conditions"
    script:
        "../scripts/score.py"
