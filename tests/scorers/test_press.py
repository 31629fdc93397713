"""kvpress's scores inside our runner: the same tokens as the press itself keeps, in one conversion of ratios."""

import importlib
import inspect

import pytest
import torch
from tests.cache.test_exactness import CONSTANTS, loaded, prompt, reference
from tests.conftest import make_tiny_model
from transformers import DynamicCache
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from kvcert import policies, scorers
from kvcert.attention import forward, kvcert_attention
from kvcert.cache.context import ContextCache
from kvcert.config_checks import check_known
from kvcert.errors import KvcertError
from kvcert.presses import PRESSES, compression_ratio
from kvcert.runner.decoding import decode_full
from kvcert.scorers.press import recording

kvpress = pytest.importorskip("kvpress")
library_module = importlib.import_module("kvcert.scorers.press.library")
#: A context long enough for LagKV's two partitions.
N, K = 300, 90


def test_ratios_are_converted_exactly():
    """Whatever we keep, a press given the converted ratio keeps as much (kvpress counts what it removes)."""
    from kvpress.utils import compute_n_kept

    for n in (*range(1, 130), 764, 4096, 16384):
        for kept in range(1, n + 1, max(1, n // 97)):
            assert compute_n_kept(n, compression_ratio(kept, n)) == kept
    for kept in (0, 11):
        with pytest.raises(ValueError, match="between"):
            compression_ratio(kept, 10)


def our_scores(model, names, ids, n=None):
    """Raw and final scores of the first n tokens in our own prefill, by scorer: [layers, KV heads, n]."""
    n = len(ids) if n is None else n
    wanted = {name: scorers.get(name, CONSTANTS) for name in names}
    cache = ContextCache(model, len(ids), 6, wanted)
    with torch.inference_mode(), recording(model.model, wanted.values()):
        forward(model.model, cache, torch.tensor([ids[:n]]), 0)
        if n < len(ids):
            forward(model.model, cache, torch.tensor([ids[n:]]), n)
        return cache.scores(n)


@pytest.mark.parametrize("kind", ["llama", "qwen3"])
@pytest.mark.parametrize("name", sorted(PRESSES))
def test_topk_keeps_what_the_press_keeps(name, kind):
    """kvpress's own way (hooks, DynamicCache) against `topk` without protected tokens on the same context."""
    ids = list(prompt(N).ids)
    model = loaded(make_tiny_model(kind, attn="kvcert"))
    z = our_scores(model, [name], ids)[name]
    keep = policies.get("topk").select(z, K, {"n_sink": 0, "n_recent": 0}, torch.zeros(0)).keep
    press = PRESSES[name]
    options = {key: CONSTANTS[constant] for key, constant in press.constants.items()}
    its = getattr(kvpress, press.class_name)(compression_ratio=compression_ratio(K, N), **options)
    other, cache = make_tiny_model(kind, attn="sdpa"), DynamicCache()
    captured = []
    score = its.score
    its.score = lambda *args, **kwargs: captured.append(score(*args, **kwargs)) or captured[-1]
    with torch.inference_mode(), its(other):
        other.model(input_ids=torch.tensor([ids]), past_key_values=cache)
    for layer in range(2):
        kept_by_press = cache.layers[layer].keys[0]
        assert kept_by_press.shape[1] == K == int(keep[layer].sum(-1).max()) == int(keep[layer].sum(-1).min())
        raw = captured[layer][0]
        # The same tokens, but for ties at the cut (LagKV ranks within partitions; Qwen3 normalises its keys).
        cut = raw.sort(descending=True).values[..., K - 1 : K]
        clear = (raw - cut).abs() > 1e-4 * cut.abs()
        assert torch.equal(keep[layer][clear], (raw > cut)[clear])
        assert name in ("kvpress_lagkv", "kvpress_knorm") or int((~clear).sum()) <= 4


def test_knorm_is_key_norm_and_snapkv_differs_only_where_it_says():
    model = loaded(make_tiny_model("llama", attn="kvcert"))
    found = our_scores(model, ["kvpress_knorm", "key_norm", "kvpress_snapkv", "snapkv"], list(prompt(N).ids))
    assert torch.equal(found["kvpress_knorm"], found["key_norm"])
    # kvpress leaves the window's own keys out and gives them the largest score plus 1; before the last pooled
    # neighbourhood the two are one formula.
    window, reach = CONSTANTS["window"], CONSTANTS["pooling"] // 2
    ours, theirs = found["snapkv"], found["kvpress_snapkv"]
    edge = N - window - reach
    assert torch.allclose(ours[..., :edge], theirs[..., :edge], atol=1e-6)
    order = [x[..., :edge].argsort(dim=-1, stable=True) for x in (ours, theirs)]
    assert float((order[0] == order[1]).double().mean()) > 0.98  # float noise may swap near-equal neighbours
    assert bool((theirs[..., N - window :] > 1).all())


@pytest.mark.parametrize("name", sorted(PRESSES))
def test_the_question_is_read_before_scoring_in_the_aware_setting(name):
    """Read in two passes or in one, the scores of the context are the same: the press sees the whole prefix."""
    p = prompt(N, question=12)
    model = loaded(make_tiny_model("llama", attn="kvcert"))
    aware = our_scores(model, [name], list(p.ids), p.n_context)[name]
    wanted = {name: scorers.get(name, CONSTANTS)}
    cache = ContextCache(model, N, 6, wanted)
    with torch.inference_mode(), recording(model.model, wanted.values()):
        forward(model.model, cache, torch.tensor([list(p.ids)]), 0)
        whole = cache.scores(p.n_context)[name]
    assert aware.shape[-1] == p.n_context
    close = (aware - whole).abs() <= (1e-5 + 1e-3 * whole.abs() if PRESSES[name].kind == "mass" else 2.5 / N)
    assert float(close.double().mean()) > 0.99


def test_hooks_only_while_recording_and_only_when_asked():
    model = loaded(make_tiny_model("llama", attn="kvcert"))
    attention = model.model.model.layers[0].self_attn

    def clean():
        return not attention._forward_pre_hooks and not hasattr(attention, "rotary_emb")

    with recording(model.model, [scorers.get("snapkv", CONSTANTS)]):
        assert clean()
    scorer = scorers.get("kvpress_tova", CONSTANTS)
    with recording(model.model, [scorer]):
        assert not clean()
    assert clean()
    with pytest.raises(ZeroDivisionError), recording(model.model, [scorer]):
        raise ZeroDivisionError
    assert clean()
    with pytest.raises(RuntimeError, match="not read inside"):
        scorer.score(0, torch.zeros(1), torch.zeros(1), 1, 1.0, torch.zeros(1))
    with (
        pytest.raises(KvcertError, match="not built as kvpress expects"),
        recording(make_strange(), [scorer]),
    ):
        pass


def make_strange():
    model = torch.nn.Module()
    model.model = torch.nn.Linear(2, 2)
    return model


def test_a_refusal_of_the_press_is_one_line():
    model = loaded(make_tiny_model("llama", attn="kvcert"))
    with pytest.raises(KvcertError, match=r"kvpress_snapkv: kvpress refuses 6 tokens .*longer context"):
        our_scores(model, ["kvpress_snapkv"], list(prompt(20).ids)[:6])


def test_importing_kvpress_changes_no_number():
    """It wraps every attention function; ours gives the same bits wrapped and plain, and the reference's tokens."""
    from kvpress.attention_patch import attention_patch

    p = prompt()
    logits, trails = [], []
    before = ALL_ATTENTION_FUNCTIONS["kvcert"]
    try:
        for function in (kvcert_attention, attention_patch(kvcert_attention)):
            ALL_ATTENTION_FUNCTIONS["kvcert"] = function
            model = loaded(make_tiny_model("llama", attn="kvcert"))
            cache = ContextCache(model, 80, 6, {})
            with torch.inference_mode():
                logits.append(forward(model.model, cache, torch.tensor([list(p.ids[:-1])]), 0, keep=0))
                trails.append(decode_full(model, cache, p.ids[-1], len(p.ids) - 1, 5).tokens)
    finally:
        ALL_ATTENTION_FUNCTIONS["kvcert"] = before
    assert torch.equal(*logits)
    assert trails[0] == trails[1] == reference(make_tiny_model("llama"), list(p.ids), 5)[0]


@pytest.mark.parametrize(
    ("version", "match"),
    [
        (None, r"kvpress is not installed; install the extra: pip install 'kvcert\[baselines\]'"),
        ("0.4.0", r"kvpress 0\.4\.0 is not supported; install the extra.*>= 0\.5\.5, < 0\.6\.0"),
        ("0.6.1", "kvpress 0.6.1 is not supported"),
    ],
)
def test_without_kvpress_one_line_says_what_to_install(version, match, monkeypatch):
    def installed(name):
        if version is None:
            raise library_module.metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(library_module.metadata, "version", installed)
    library_module.library.cache_clear()
    try:
        with pytest.raises(KvcertError, match=match) as caught:
            scorers.get("kvpress_tova", CONSTANTS)
        assert "\n" not in str(caught.value)
    finally:
        library_module.library.cache_clear()


def test_names_are_known_without_torch(base_config):
    from kvcert.config import resolve

    base_config = resolve(base_config)
    base_config["study"]["scorer"] = "kvpress_lagkv"
    check_known(base_config)
    base_config["study"]["scorer"] = "kvpress_nope"
    with pytest.raises(
        KvcertError, match=r"nothing is called 'kvpress_nope'; did you mean .*known: .*kvpress_tova"
    ):
        check_known(base_config)
    with pytest.raises(KvcertError, match=r"unknown scorer 'kvpress_nope'; known: .*kvpress_tova"):
        scorers.get("kvpress_nope", CONSTANTS)


@pytest.mark.parametrize("name", sorted(PRESSES))
def test_the_score_does_not_depend_on_the_ratio(name):
    """So that one score serves every budget."""
    source = inspect.getsource(getattr(kvpress, PRESSES[name].class_name).score)
    assert "compression_ratio" not in source
