# kvcert: the whole study as one graph. `snakemake --cores all`, or `make reproduce`, runs it; `snakemake -n` explains it.
#
#   setup     models and texts are fetched, checked, converted     (once, shared by all grids)
#   cells     one job per shard: prefill once, decode every policy, budget and draw, log every step
#   claims    integrity gate, then C1..C7 against their kill conditions               (no torch)
#   paper     tables and figures from the logs and the scores                         (no torch)
#   report    one HTML page of all that, with every run in it                         (no torch)
#   exhibits  X1 to X5, negative controls, ablations: tables, figures, the page with them            (on request)
#   audit     audit_C1 .. audit_C7: the evidence of one claim; crate: the run as an RO-Crate  (on request, no torch)
#
# Other grids are overlays: `snakemake --cores all --configfile config/smoke.yaml`.
import os
import sys

from snakemake.utils import min_version

min_version("9.13")


configfile: "config/config.yaml"


# The workflow runs the package that lies beside it, installed or not, here and in every job.
SOURCE = os.path.join(workflow.basedir, "src")
if SOURCE not in sys.path:
    sys.path.insert(0, SOURCE)
os.environ.update(PYTHONPATH=SOURCE)


include: "workflow/rules/common.smk"
include: "workflow/rules/setup.smk"
include: "workflow/rules/cells.smk"
include: "workflow/rules/claims.smk"
include: "workflow/rules/paper.smk"
include: "workflow/rules/exhibits_common.smk"
include: "workflow/rules/exhibit_cells.smk"
include: "workflow/rules/exhibits.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/audit.smk"


rule all:
    default_target: True
    input:
        LOG_FILES,
        f"{RESULTS}/integrity.json",
        CLAIM_FILES,
        f"{RESULTS}/verdicts.csv",
        TABLE_FILES,
        FIGURE_FILES,
        f"{RESULTS}/report/index.html",
    message:
        "Seven verdicts, all tables and figures and the report are there"


rule exhibits:
    input:
        exhibit_outputs(*EXHIBITS),
        f"{RESULTS}/report/index.html",
    message:
        "Every exhibit is measured, drawn and on the page"


rule controls:
    input:
        exhibit_outputs("controls"),
        f"{RESULTS}/exhibits/controls.hold",
    message:
        "Every negative control did what it must"


onstart:
    print(plan(config), flush=True)


if {"-n", "-np", "--dry-run", "--dryrun"} & set(sys.argv):
    print(plan(config), flush=True)


onsuccess:
    finish()


onerror:
    print(
        f"Stopped. The logs are in {RESULTS}/logs; the same command again continues where this one stopped."
    )
