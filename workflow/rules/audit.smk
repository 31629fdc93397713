# Evidence for one claim (`snakemake audit_C6`), and the whole run as a Workflow Run RO-Crate (`snakemake crate`).
# On request only: nothing of this is part of `rule all`. No torch in here.
for claim in CLAIMS:

    rule:
        name:
            f"audit_{claim}"
        input:
            logs=LOG_FILES,
            gate=f"{RESULTS}/integrity.json",
            claim=f"{RESULTS}/claims/{claim}.json",
            verdicts=f"{RESULTS}/verdicts.csv",
            code=sources("audit", "registry"),
        output:
            f"{RESULTS}/audit/{claim}/MANIFEST.json",
        log:
            f"{RESULTS}/logs/audit_{claim}.log",
        localrule: True
        conda:
            ENVIRONMENT
        threads: 1
        params:
            claim=claim,
            root=lambda wildcards: workflow.basedir,
        message:
            f"Collecting the evidence for {claim} into {RESULTS}/audit/{claim}"
        script:
            "../scripts/audit.py"


rule crate:
    input:
        logs=LOG_FILES,
        claims=CLAIM_FILES,
        verdicts=f"{RESULTS}/verdicts.csv",
        tables=TABLE_FILES,
        figures=FIGURE_FILES,
        code=sources("crate"),
    output:
        f"{RESULTS}-crate/ro-crate-metadata.json",
    log:
        f"{RESULTS}/logs/crate.log",
    localrule: True
    conda:
        ENVIRONMENT
    threads: 1
    params:
        root=lambda wildcards: workflow.basedir,
    message:
        f"Describing the run as a Workflow Run RO-Crate in {RESULTS}-crate"
    script:
        "../scripts/crate.py"
