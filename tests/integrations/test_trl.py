"""Pairs: our losses and our trainer beside TRL's own."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

import tierrank as tr
from tierrank.preference import dpo_loss

pytestmark = pytest.mark.slow  # to import TRL takes seconds; tests/test_preference.py has formulas
pytest.importorskip("trl")

BETA, PAIRS = 0.3, 12


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def tiny_model(seed=0):
    import transformers

    torch.manual_seed(seed)
    config = transformers.GPT2Config(
        vocab_size=20, n_positions=16, n_embd=16, n_layer=1, n_head=2, bos_token_id=1,
        eos_token_id=1, pad_token_id=0,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config)


def tokenizer():
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = {
        word: i for i, word in enumerate(["<pad>", "<end>", "<unknown>", *"abcdefghijklmnopq"])
    }
    plain = Tokenizer(models.WordLevel(words, unk_token="<unknown>"))
    plain.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=plain, pad_token="<pad>", eos_token="<end>", unk_token="<unknown>"
    )


def pairs(seed=0):
    """Prompts with a chosen and a rejected response, which may be of other lengths."""
    rng = np.random.default_rng(seed)

    def words(most):
        return " ".join(rng.choice(list("abcdefghijklmnopq"), size=rng.integers(1, most + 1)))

    return [
        {"prompt": words(4), "chosen": f" {words(5)}", "rejected": f" {words(5)}"}
        for _ in range(PAIRS)
    ]


def as_responses(rows):
    """The same, with the better response now first and now second."""
    return [
        {
            "prompt": row["prompt"],
            "responses": [row["chosen"], row["rejected"]][:: 1 - 2 * (i % 2)],
            "ratings": [5, 3][:: 1 - 2 * (i % 2)],
        }
        for i, row in enumerate(rows)
    ]


def dpo_config(folder, **options):
    from trl import DPOConfig

    return DPOConfig(
        str(folder), beta=BETA, report_to="none", use_cpu=True, bf16=False, disable_tqdm=True,
        gradient_checkpointing=False, learning_rate=3e-3, lr_scheduler_type="constant", max_steps=6,
        per_device_train_batch_size=4, logging_steps=1, save_strategy="no", **options,
    )  # fmt: skip


def their_trainer(folder, rows, **options):
    from datasets import Dataset
    from trl import DPOTrainer

    return DPOTrainer(
        tiny_model(), ref_model=tiny_model(seed=1), args=dpo_config(folder, **options),
        train_dataset=Dataset.from_list(rows), eval_dataset=Dataset.from_list(rows),
        processing_class=tokenizer(),
    )  # fmt: skip


@pytest.mark.parametrize("loss_type", ["sigmoid", "sigmoid_norm"])
def test_dpo_loss_is_that_of_trl_on_given_log_probabilities(tmp_path, loss_type):
    """Its own code, with log-probabilities of tokens in place of those of a model."""
    draw = torch.Generator().manual_seed(0)
    mask = torch.zeros(2 * PAIRS, 8, dtype=torch.long)
    mask[:, 3:5] = 1
    mask[::3, 5:] = 1
    logps = -3 * torch.rand(2 * PAIRS, 7, generator=draw, dtype=torch.float64) * mask[:, 1:]
    reference = -9 * torch.rand(2, PAIRS, generator=draw, dtype=torch.float64)
    logps.requires_grad_()
    trainer = their_trainer(tmp_path, pairs(), loss_type=[loss_type])
    trainer.precompute_ref_logps = True
    batch = {
        "input_ids": mask, "attention_mask": mask, "completion_mask": mask,
        "ref_chosen_logps": reference[0], "ref_rejected_logps": reference[1],
    }  # fmt: skip
    nothing = torch.zeros_like(logps)
    out = SimpleNamespace(
        log_probs=logps, entropy=nothing, mean_logits=nothing, is_top1=nothing.bool()
    )
    theirs = trainer.compute_loss(lambda **_: out, batch)
    tiers = tr.Tiers.from_labels(torch.tensor([[1, 0]] * PAIRS))
    tokens = mask.sum(dim=1).reshape(2, PAIRS).T if loss_type == "sigmoid_norm" else None
    ours = dpo_loss(
        logps.sum(dim=1).reshape(2, PAIRS).T, reference.T, tiers, beta=BETA, lengths=tokens
    )
    assert ours.item() == pytest.approx(theirs.item(), abs=1e-12)
    slopes = [torch.autograd.grad(loss, logps)[0] for loss in (ours, theirs)]
    torch.testing.assert_close(*slopes, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_without_a_reference_it_is_simpo_and_cpo_of_trl(smoothing):
    from trl.experimental.cpo import CPOTrainer

    draw = torch.Generator().manual_seed(0)
    policy = -20 * torch.rand(2, PAIRS, generator=draw, dtype=torch.float64)
    tokens = torch.randint(1, 30, (2, PAIRS), generator=draw)
    tiers = tr.Tiers.from_labels(torch.tensor([[1, 0]] * PAIRS))
    settings = {
        "alpha": 0.0, "beta": 2.0, "simpo_gamma": 0.7, "label_smoothing": smoothing,
        "accelerator": SimpleNamespace(device="cpu"),
    }  # fmt: skip
    for loss_type, divisor, options in (
        ("simpo", tokens, {"lengths": tokens.T, "margin": 0.7}),
        ("sigmoid", torch.ones_like(tokens), {}),
    ):
        trainer = SimpleNamespace(loss_type=loss_type, **settings)
        theirs, chosen, _ = CPOTrainer.cpo_loss(trainer, *(policy / divisor))
        ours = dpo_loss(
            policy.T, None, tiers, beta=2.0, label_smoothing=smoothing, reduction="none", **options
        )
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(chosen, 2.0 * (policy / divisor)[0])


def test_on_pairs_the_trainers_go_the_same_way(tmp_path):
    from tierrank.integrations.transformers import TieredDPOTrainer

    rows = pairs()
    theirs = their_trainer(tmp_path, rows)
    ours = TieredDPOTrainer(
        tiny_model(), ref_model=tiny_model(seed=1), args=dpo_config(tmp_path),
        train_dataset=as_responses(rows), processing_class=tokenizer(),
    )  # fmt: skip
    assert (ours.beta, ours.data_collator.max_length) == (BETA, theirs.args.max_length)
    for trainer in (theirs, ours):
        trainer.train()
    names = [
        "loss",
        *(f"rewards/{each}" for each in ("chosen", "rejected", "margins", "accuracies")),
    ]
    for expected, found in zip(theirs.state.log_history, ours.state.log_history, strict=True):
        for name in expected.keys() & names:
            assert found[name] == pytest.approx(expected[name], rel=1e-5, abs=1e-6), name
    for one, other in zip(theirs.model.parameters(), ours.model.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-4)
