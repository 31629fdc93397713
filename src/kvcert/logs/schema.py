"""Arrow schemas of the three Parquet tables that a shard writes, with a description for every column.

`docs/schema.md` is generated from this file (`kvcert schema`). Nothing here needs torch.
"""

from __future__ import annotations

import pyarrow as pa

S = pa.dictionary(pa.int32(), pa.string())

#: Keys of a file's own metadata: its number of rows, and the SHA-256 of the specification that it was written for.
ROWS, SPEC = b"kvcert.rows", b"kvcert.spec"


def _schema(*columns: tuple[str, pa.DataType, bool, str]) -> pa.Schema:
    return pa.schema(
        [pa.field(name, kind, nullable, {"description": text}) for name, kind, nullable, text in columns]
    )


RUNS = _schema(
    ("run_id", pa.string(), False, "model/task/length/example/setting/scorer/policy/budget/draw/regime"),
    ("shard", S, False, "Shard that wrote the row: model.task.length.part"),
    ("model", S, False, "Name of the model in the configuration"),
    ("task", S, False, "Task"),
    ("length", pa.int32(), False, "Target length of the prompt in tokens"),
    (
        "example",
        pa.int32(),
        False,
        "Example number within (model, task, length); (task, example) is the cluster",
    ),
    ("setting", S, False, "`aware`: compressed after the question was read; `streaming`: before"),
    ("scorer", S, False, "Importance score; `none` where the policy uses none"),
    ("policy", S, False, "Retention policy"),
    ("budget", pa.float64(), False, "Kept tokens per KV head as a share of the context tokens; 1 for `full`"),
    ("draw", pa.int32(), False, "Number of the independent Poisson draw; 0 for policies without randomness"),
    ("regime", S, False, "`free`: greedy decoding; `forced`: the full run's answer is fed in"),
    ("valid", pa.bool_(), False, "False when the run met a non-finite number; such a run is never scored"),
    ("invalid_reason", pa.string(), True, "Why the run is invalid"),
    ("identity", pa.bool_(), False, "True when nothing was evicted (context within the budget)"),
    ("answer", pa.string(), False, "Decoded new text, without the end token"),
    ("token_ids", pa.list_(pa.int32()), False, "New token ids, the end token included"),
    ("score", pa.float64(), True, "Task score in [0, 1]; null when forced or invalid"),
    ("fail", pa.bool_(), True, "score < the task's registered threshold; null when forced or invalid"),
    (
        "logp_mean",
        pa.float64(),
        False,
        "Mean log-probability of all new tokens under this very run (confidence), nats",
    ),
    ("logp_first6", pa.float64(), False, "The same over the first six new tokens, nats"),
    ("entropy_mean", pa.float64(), False, "Mean entropy of the next-token distribution over the steps, nats"),
    (
        "signal",
        pa.float64(),
        True,
        "Mean step certificate over the first min(6, n) steps; null without a certificate",
    ),
    ("signal_guarded", pa.float64(), True, "The same with the guarded radius"),
    ("error", pa.float64(), True, "Mean true relative error over the same steps; null for `full`"),
    ("n_steps", pa.int32(), False, "Decode steps = number of new tokens"),
    ("context_tokens", pa.int32(), False, "n: tokens that eviction may remove"),
    ("prompt_tokens", pa.int32(), False, "All prompt tokens, context included"),
    ("capacity", pa.int32(), False, "K: tokens kept per KV head in expectation"),
    ("kept_tokens", pa.float64(), False, "Realised context tokens kept, mean over layers and KV heads"),
    (
        "kept_bytes",
        pa.int64(),
        False,
        "Bytes of retained K, V and log pi of the context, all layers and heads",
    ),
    ("full_bytes", pa.int64(), False, "Bytes of K and V of the whole context"),
    (
        "evicted_mass",
        pa.float64(),
        True,
        "Share of the importance score that was evicted, mean over layers and heads",
    ),
    ("tail_expected", pa.float64(), True, "m: expected tail sample size, mean over layers and heads"),
    ("tail_kept", pa.float64(), True, "Realised tail sample size, mean over layers and heads"),
    ("seconds_prefill", pa.float64(), False, "Seconds of the example's one prefill (shared by its runs)"),
    ("seconds_decode", pa.float64(), False, "Seconds of the decode batch, divided by its runs"),
    ("prompt_sha256", pa.string(), False, "SHA-256 of the rendered prompt"),
    ("answers", pa.list_(pa.string()), False, "Accepted answers"),
    ("fail_below", pa.float64(), False, "The task's registered failure threshold"),
    ("spec_sha256", S, False, "SHA-256 of the scientific part of the shard's specification"),
    ("backend", S, False, "Attention backend: cpu, torch or cuda"),
    ("device", S, False, "Device of the model"),
    ("dtype", S, False, "Type of weights and cache"),
    ("threads", pa.int32(), False, "Threads of the worker"),
    ("versions", S, False, "JSON of package versions and processor"),
)

STEPS = _schema(
    ("run_id", pa.string(), False, "Key of `runs`"),
    ("step", pa.int32(), False, "1 is the query of the last prompt token, decoded on the compressed cache"),
    ("token_id", pa.int32(), False, "Token chosen (free) or fed next (forced)"),
    ("logp", pa.float32(), False, "Its log-probability, nats"),
    ("entropy", pa.float32(), False, "Entropy of the next-token distribution, nats"),
    ("certificate", pa.float32(), True, "Mean relative radius over the panel; null without a certificate"),
    ("guarded", pa.float32(), True, "The same with the guarded radius"),
    ("error", pa.float32(), True, "Mean true relative error over the same panel; null for `full`"),
    ("covered", pa.bool_(), True, "error <= certificate"),
    ("units", pa.int32(), False, "Panel pairs with something evicted; 0 means no certificate"),
)

HEADS = _schema(
    ("run_id", S, False, "Key of `runs`"),
    ("step", pa.int32(), False, "Step"),
    ("layer", pa.int16(), False, "Layer, from 0"),
    ("head", pa.int16(), False, "Query head, from 0"),
    ("kv_head", pa.int16(), False, "Its KV head"),
    ("panel", pa.bool_(), False, "True for the registered panel; the others are logged for the ablation"),
    ("variance", pa.float32(), False, "V_hat, trace of the variance of the linearised Hajek error"),
    ("bound", pa.float32(), False, "B_hat, range of one unit's contribution"),
    ("radius", pa.float32(), False, "Plug-in Bernstein radius; infinite for a sample below m_min"),
    ("guarded", pa.float32(), False, "radius / (1 - p_sampled): answers self-masking"),
    ("error", pa.float32(), False, "||o_hat - o|| against the shadow cache"),
    ("norm", pa.float32(), False, "||o_hat||"),
    ("norm_true", pa.float32(), False, "||o||"),
    ("ess", pa.float32(), False, "Effective sample size of the retained weights"),
    ("ess_full", pa.float32(), False, "Effective sample size of the shadow's full weights"),
    ("p_max", pa.float32(), False, "Largest retained weight"),
    ("p_sampled", pa.float32(), False, "Largest weight among retained units with pi < 1"),
    ("r_max", pa.float32(), False, "R: largest a_i / (pi_i sum a) over the whole tail (shadow)"),
    ("r_kept", pa.float32(), False, "The same over the retained tail"),
    ("m", pa.float32(), False, "Expected tail sample size"),
    ("tail_kept", pa.int32(), False, "Realised tail sample size"),
    ("tail", pa.int32(), False, "Tail size |T|"),
)

TABLES = {"runs": RUNS, "steps": STEPS, "heads": HEADS}
