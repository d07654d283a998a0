"""Language models trained on responses in tiers, beside TRL on pairs."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch

import tierrank as tr
from tierrank.integrations.transformers import TieredCollator, response_logps, tiers_of
from tierrank.preference import dpo_loss

transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")
from tierrank.integrations.transformers import TieredDPOTrainer  # noqa: E402

WORDS = ["a", "b", "c", "d", "e", "f", "g", "h", "0", "1", "2", "3", "4", "5", "6", "7"]
BETA = 0.3


@pytest.fixture(scope="module")
def tokenizer():
    return make_tokenizer()


def make_tokenizer():
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = ["<pad>", "<end>", "<unknown>", *WORDS]
    vocabulary = {word: i for i, word in enumerate(words)}
    plain = Tokenizer(models.WordLevel(vocabulary, unk_token="<unknown>"))
    plain.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=plain, pad_token="<pad>", eos_token="<end>", unk_token="<unknown>"
    )


def tiny_model(seed=0):
    torch.manual_seed(seed)
    config = transformers.GPT2Config(
        vocab_size=24, n_positions=32, n_embd=32, n_layer=1, n_head=2, bos_token_id=1,
        eos_token_id=1, pad_token_id=0,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config)


def graded_rows(number, seed=0, responses=(2, 6)):
    """A response is the better, the more of its three words are the prompt's last one."""
    rng = np.random.default_rng(seed)
    rows = []
    while len(rows) < number:
        prompt = rng.choice(WORDS, size=3).tolist()
        others = [word for word in WORDS if word != prompt[-1]]
        grades = rng.choice([0, 1, 3], size=rng.integers(*responses, endpoint=True))
        if len(set(grades)) < 2:
            continue
        texts = []
        for grade in grades:
            words = [prompt[-1]] * grade + rng.choice(others, size=3 - grade).tolist()
            texts.append(" " + " ".join(rng.permutation(words)))
        row = {"prompt": " ".join(prompt), "responses": texts, "ratings": grades.tolist()}
        rows.append(row)
    return rows


def settings(folder, **options):
    usual = {
        "per_device_train_batch_size": 4, "per_device_eval_batch_size": 4, "max_steps": 6,
        "learning_rate": 3e-3, "lr_scheduler_type": "constant", "save_strategy": "no",
        "report_to": "none", "use_cpu": True, "disable_tqdm": True,
    }  # fmt: skip
    return transformers.TrainingArguments(str(folder), **{**usual, **options})


def trainer_of(tokenizer, folder, rows, model=None, evaluate=None, args=None, **options):
    return TieredDPOTrainer(
        model or tiny_model(), args=args or settings(folder), train_dataset=rows,
        eval_dataset=evaluate, processing_class=tokenizer, **{"beta": BETA, **options},
    )  # fmt: skip


def test_a_batch_is_padded_and_its_tiers_are_those_of_the_ratings(tokenizer):
    rows = [
        {"prompt": "a b", "responses": [" c", " d e f"], "ratings": [0.5, 2]},
        {"prompt": "g", "responses": [" 0 1", " 2", " 3"], "ratings": [1, 1, 0]},
    ]
    batch = TieredCollator(tokenizer)(rows)
    ids = {word: tokenizer.convert_tokens_to_ids(word) for word in WORDS}
    end, none = 1, 0
    assert batch["input_ids"].tolist() == [
        [[ids["a"], ids["b"], ids["c"], end, none, none],
         [ids["a"], ids["b"], ids["d"], ids["e"], ids["f"], end], [none] * 6],
        [[ids["g"], ids["0"], ids["1"], end, none, none],
         [ids["g"], ids["2"], end, none, none, none], [ids["g"], ids["3"], end, none, none, none]],
    ]  # fmt: skip
    assert batch["attention_mask"].sum(dim=2).tolist() == [[4, 6, 0], [4, 3, 3]]
    assert batch["completion_mask"][0, 1].tolist() == [0, 0, 1, 1, 1, 1]
    assert batch["completion_mask"].sum(dim=2).tolist() == [[2, 4, 0], [3, 2, 2]]
    tiers, real = tiers_of(batch)
    assert tiers == tr.Tiers.from_labels([0.5, 2, 1, 1, 0], lengths=[2, 3])
    assert real.tolist() == [[True, True, False], [True, True, True]]
    cut = TieredCollator(tokenizer, max_length=4)(rows)
    assert cut["attention_mask"].sum(dim=2).tolist() == [[4, 4, 0], [4, 3, 3]]
    with pytest.raises(ValueError, match=r"the prompt 'a b' has 2 tokens, which leaves none"):
        TieredCollator(tokenizer, max_length=2)(rows)


def test_conversations_go_through_the_chat_template(tokenizer):
    tokenizer.chat_template = (
        "{% for m in messages %}{{ m['content'] + ' ' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '' }}{% endif %}"
    )
    row = {
        "prompt": [{"role": "user", "content": "a b"}],
        "responses": [[{"role": "assistant", "content": each}] for each in ("c", "d e")],
        "ratings": [1, 0],
    }
    batch = TieredCollator(tokenizer)([row])
    assert batch["completion_mask"].tolist() == [[[0, 0, 1, 0], [0, 0, 1, 1]]]


def test_log_probabilities_are_sums_over_the_tokens_of_a_response(tokenizer):
    rows = graded_rows(3)
    batch = TieredCollator(tokenizer)(rows)
    model = tiny_model().eval()
    real = tiers_of(batch)[1]
    found = response_logps(model, {name: batch[name][real] for name in list(batch)[:3]})
    wanted = []
    for row in rows:
        start = len(tokenizer(row["prompt"])["input_ids"])
        for response in row["responses"]:
            ids = tokenizer(row["prompt"] + response + "<end>")["input_ids"]
            logs = model(torch.tensor([ids])).logits[0].log_softmax(-1)
            wanted.append(sum(logs[t - 1, ids[t]].item() for t in range(start, len(ids))))
    assert found.tolist() == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize(
    "options", [{}, {"reference_free": True, "by_length": True, "margin": 0.5}]
)
def test_a_step_is_a_mean_over_prompts_however_batches_are_cut(tokenizer, tmp_path, options):
    """Seven prompts of one to six responses: at once, and as 2 + 2 + 2 + 1."""
    rows = graded_rows(7)

    def after(**how):
        args = settings(
            tmp_path, max_steps=1, optim="sgd", max_grad_norm=0.0, learning_rate=1.0,
            logging_steps=1, seed=3, **how,
        )  # fmt: skip
        trainer = trainer_of(tokenizer, tmp_path, rows, args=args, **options)
        trainer.train()
        logged = next(log for log in trainer.state.log_history if "loss" in log)
        return logged, torch.cat([p.detach().reshape(-1) for p in trainer.model.parameters()])

    at_once, whole = after(per_device_train_batch_size=7)
    in_parts, parts = after(per_device_train_batch_size=2, gradient_accumulation_steps=4)
    torch.testing.assert_close(parts, whole, rtol=1e-5, atol=1e-6)
    assert in_parts["loss"] == pytest.approx(at_once["loss"], abs=2e-4)  # rounded by the trainer
    for name in ("rewards/accuracies", "rewards/tier_2", "logps/chosen"):
        assert in_parts[name] == pytest.approx(at_once[name], rel=1e-5, abs=1e-6)


def test_evaluation_weighs_prompts_alike_and_names_metrics_as_trl_does(tokenizer, tmp_path):
    rows = graded_rows(7)
    model, reference = tiny_model(), tiny_model(seed=1)
    trainer = trainer_of(
        tokenizer, tmp_path, rows, model, evaluate={"held_out": rows}, ref_model=reference
    )
    found = trainer.evaluate()
    rewards, losses, accuracies, best = [], [], [], []
    for row in rows:
        batch = TieredCollator(tokenizer)([row])
        tiers, real = tiers_of(batch)
        tokens = {name: batch[name][real] for name in list(batch)[:3]}
        with torch.no_grad():
            logps = [response_logps(each.eval(), tokens) for each in (model, reference)]
        losses.append(dpo_loss(*logps, tiers, beta=BETA).item())
        reward, grade = (BETA * (logps[0] - logps[1])).numpy(), np.array(row["ratings"])
        above = grade[:, None] > grade[None]
        accuracies.append((reward[:, None] > reward[None])[above].mean())
        best.append(reward[grade == grade.max()].mean())
        rewards.append([reward[grade == each].mean() for each in sorted(set(grade))[::-1]])
    prefix = "eval_held_out_"
    assert found[f"{prefix}loss"] == pytest.approx(np.mean(losses), rel=1e-5)
    assert found[f"{prefix}rewards/accuracies"] == pytest.approx(np.mean(accuracies), rel=1e-6)
    assert found[f"{prefix}rewards/chosen"] == pytest.approx(np.mean(best), rel=1e-4, abs=1e-6)
    assert found[f"{prefix}rewards/margins"] == pytest.approx(
        np.mean([each[0] - each[-1] for each in rewards]), rel=1e-4, abs=1e-6
    )
    third = [each[2] for each in rewards if len(each) > 2]
    assert found[f"{prefix}rewards/tier_3"] == pytest.approx(np.mean(third), rel=1e-4, abs=1e-6)


def test_higher_grades_get_higher_rewards_on_prompts_that_were_held_out(tokenizer, tmp_path):
    datasets = pytest.importorskip("datasets")
    rows = datasets.Dataset.from_list(graded_rows(160))
    args = settings(tmp_path, max_steps=45, per_device_train_batch_size=16, logging_steps=15)
    trainer = trainer_of(tokenizer, tmp_path, rows, evaluate=graded_rows(60, seed=1), args=args)
    before = trainer.evaluate()
    assert before["eval_rewards/chosen"] == before["eval_rewards/rejected"] == 0  # the copy
    trainer.train()
    after = trainer.evaluate()
    assert after["eval_rewards/tier_1"] > after["eval_rewards/tier_2"] + 0.1
    assert after["eval_rewards/tier_2"] > after["eval_rewards/tier_3"] + 0.1
    assert after["eval_rewards/accuracies"] > 0.8
    assert after["eval_loss"] < before["eval_loss"]
    logged = [log for log in trainer.state.log_history if "rewards/accuracies" in log]
    assert len(logged) == 3
    assert logged[-1]["rewards/accuracies"] > logged[0]["rewards/accuracies"]


def weights_of(model):
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


def test_a_run_that_is_resumed_ends_as_one_that_was_not_stopped(tokenizer, tmp_path):
    rows = graded_rows(12)
    whole = trainer_of(
        tokenizer, tmp_path, rows,
        args=settings(tmp_path / "whole", save_strategy="steps", save_steps=3),
    )  # fmt: skip
    whole.train()
    again = trainer_of(tokenizer, tmp_path, rows)  # the model as it was at the start
    again.train(resume_from_checkpoint=str(tmp_path / "whole" / "checkpoint-3"))
    assert again.state.global_step == 6
    torch.testing.assert_close(weights_of(again.model), weights_of(whole.model), rtol=0, atol=0)
    loaded = transformers.GPT2LMHeadModel.from_pretrained(tmp_path / "whole" / "checkpoint-6")
    torch.testing.assert_close(weights_of(loaded), weights_of(whole.model), rtol=0, atol=0)


def test_log_probabilities_of_the_reference_are_computed_once_or_at_each_step(tokenizer, tmp_path):
    datasets = pytest.importorskip("datasets")
    rows, other = graded_rows(9), graded_rows(5, seed=1)
    by_copy = trainer_of(tokenizer, tmp_path, rows, evaluate=other)
    precomputed = [
        trainer_of(tokenizer, tmp_path, each, evaluate=other, precompute_ref_log_probs=True)
        for each in (rows, datasets.Dataset.from_list(rows))
    ]
    given = trainer_of(tokenizer, tmp_path, precomputed[0].train_dataset, evaluate=None)
    for trainer in (by_copy, *precomputed, given):
        trainer.train()
        torch.testing.assert_close(
            weights_of(trainer.model), weights_of(by_copy.model), rtol=1e-4, atol=1e-5
        )
    assert [trainer.ref_model is None for trainer in (by_copy, *precomputed, given)] == [
        False, True, True, True,
    ]  # fmt: skip
    assert precomputed[1].evaluate()["eval_loss"] == pytest.approx(
        by_copy.evaluate()["eval_loss"], rel=1e-4
    )
    with pytest.raises(ValueError, match="these rows have no ref_logps, and the reference model"):
        precomputed[0].evaluate(graded_rows(2, seed=4))


class WithAdapter(transformers.GPT2LMHeadModel):
    """What PEFT makes of a model, as small as can be: frozen, and something to learn beside it."""

    def __init__(self, config):
        super().__init__(config)
        self.requires_grad_(False)
        self.adapter, self.adapted = torch.nn.Parameter(torch.zeros(config.vocab_size)), True

    def forward(self, *inputs, **options):
        out = super().forward(*inputs, **options)
        if self.adapted:
            out.logits = out.logits + self.adapter
        return out

    @contextmanager
    def disable_adapter(self):
        self.adapted = False
        yield
        self.adapted = True


def test_adapters_are_switched_off_for_the_reference(tokenizer, tmp_path):
    def trained(**options):
        model = WithAdapter(tiny_model().config)
        model.load_state_dict(tiny_model().state_dict(), strict=False)
        trainer = trainer_of(tokenizer, tmp_path, graded_rows(8), model, **options)
        trainer.train()
        return trainer

    by_switch, by_model = trained(), trained(ref_model=tiny_model())
    assert by_switch.ref_model is None
    assert by_switch.model.adapter.abs().max() > 1e-3
    torch.testing.assert_close(by_switch.model.adapter, by_model.model.adapter)


def test_pairs_that_tie_choose_their_objective(tokenizer, tmp_path):
    rows = graded_rows(5, responses=(2, 2))
    assert trainer_of(tokenizer, tmp_path, rows).objective == "pl-partition"
    rows[2]["ratings"] = [1, 1]
    trainer = trainer_of(tokenizer, tmp_path, rows)
    assert trainer.objective == "davidson"
    trainer.train()
    with pytest.raises(ValueError, match=r"row 2: all 2 responses are rated 1 .*davidson"):
        trainer_of(tokenizer, tmp_path, rows, objective="pl-partition")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ratings": [1, 0]}, r"row 1: 3 responses, but 2 ratings \(prompt 'a b'\)"),
        ({"ratings": [1, 0, float("nan")]}, r"row 1: ratings\[2\] is nan"),
        ({"ratings": [1, None, 0]}, r"row 1: ratings\[1\] is None"),
        ({"ratings": [2, 2, 2]}, r"row 1: all 3 responses are rated 2 .*leave it out"),
        ({"responses": [], "ratings": []}, r"row 1 has no responses"),
        ({"prompt": None}, r"row 1 has no prompt"),
        ({"prompt": [{"role": "user", "content": "a"}]}, r"row 1: the prompt is messages, and not"),
        ({"ref_logps": [0.0]}, r"row 1: 3 responses, but 1 ref_logps"),
    ],
)
def test_rows_that_are_not_whole_are_refused_by_their_number(tokenizer, tmp_path, change, message):
    good = {"prompt": "a b", "responses": [" c", " d", " e"], "ratings": [1, 0, 0]}
    with pytest.raises(ValueError, match=message):
        trainer_of(tokenizer, tmp_path, [good, {**good, **change}])
    if "all 3" not in message:
        with pytest.raises(ValueError, match=message.replace("row 1", "row 1 of the batch")):
            TieredCollator(tokenizer)([good, {**good, **change}])


def test_other_wrong_input_is_refused(tokenizer, tmp_path):
    rows, model = graded_rows(3), tiny_model()
    with pytest.raises(ValueError, match="ref_model is the model itself"):
        trainer_of(tokenizer, tmp_path, rows, model, ref_model=model)
    with pytest.raises(ValueError, match="give the tokenizer"):
        trainer_of(None, tmp_path, rows)
    with pytest.raises(ValueError, match="no objective 'nonesuch'"):
        trainer_of(tokenizer, tmp_path, rows, objective="nonesuch")
    with torch.no_grad():
        model.transformer.wte.weight[3:].fill_(torch.nan)
    with pytest.raises(ValueError, match=r"policy_logps must be finite, but policy_logps\[0\] is"):
        trainer_of(tokenizer, tmp_path, rows, model, reference_free=True).train()


def test_rows_that_stream_are_looked_at_as_they_come(tokenizer, tmp_path):
    datasets = pytest.importorskip("datasets")
    rows = graded_rows(8)
    streamed = datasets.Dataset.from_list(rows).to_iterable_dataset()
    trainer_of(tokenizer, tmp_path, streamed).train()
    with pytest.raises(ValueError, match="a data set that streams has no place"):
        trainer_of(tokenizer, tmp_path, streamed, precompute_ref_log_probs=True)
    rows[5]["ratings"] = [0] * len(rows[5]["ratings"])
    streamed = datasets.Dataset.from_list(rows).to_iterable_dataset()
    with pytest.raises(ValueError, match=r"has one tier only .* says nothing to pl-partition"):
        trainer_of(tokenizer, tmp_path, streamed).train()


TWO_STEPS = """
import sys; sys.path.insert(0, sys.argv[1])
import test_transformers as tests
args = tests.settings(
    sys.argv[2], max_steps=2, optim="sgd", max_grad_norm=0.0, learning_rate=1.0, logging_steps=1,
    per_device_train_batch_size=int(sys.argv[3]), gradient_accumulation_steps=int(sys.argv[4]),
)
trainer = tests.trainer_of(
    tests.make_tokenizer(), sys.argv[2], tests.graded_rows(8), args=args,
    evaluate=tests.graded_rows(8, seed=1), precompute_ref_log_probs=True,
)
trainer.train()
found = trainer.evaluate()
if args.process_index == 0:
    names = ("eval_loss", "eval_rewards/accuracies", "eval_rewards/tier_2")
    print(*(found[name] for name in names), float(tests.weights_of(trainer.model).abs().sum()))
trainer.accelerator.wait_for_everyone()  # a rank that ends while others talk to it takes them along
trainer.accelerator.end_training()
"""


@pytest.mark.slow
def test_two_processes_take_the_steps_of_one(tmp_path):
    (tmp_path / "steps.py").write_text(TWO_STEPS)

    def said(processes, *batches):
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        command += [f"--nproc_per_node={processes}", str(tmp_path / "steps.py")]
        command += [str(Path(__file__).parent), str(tmp_path), *map(str, batches)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return [float(word) for word in done.stdout.splitlines()[-1].split()]

    assert said(2, 2, 2) == pytest.approx(said(1, 8, 1), rel=1e-4)


def test_the_example_of_the_docs_runs(tokenizer, tmp_path, monkeypatch, capsys):
    """With a small model of that name."""
    pytest.importorskip("datasets")
    page = Path(__file__).parents[2] / "docs" / "preference.md"
    (example,) = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    tiny_model().save_pretrained("your-model")
    tokenizer.save_pretrained("your-model")
    exec(compile(example, str(page), "exec"), {})
    assert 0 <= float(capsys.readouterr().out.splitlines()[-1]) <= 1
