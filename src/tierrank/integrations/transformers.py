"""Language models trained on responses in tiers, by `transformers.Trainer`.

`TieredCollator` makes batches of rows, and `TieredDPOTrainer` minimises
`tierrank.preference.dpo_loss` on them. What TRL does for pairs is done here in the same way (the
tokens of a response, the reference model, the names of metrics), so that on pairs the two trainers
agree.
"""

from __future__ import annotations

import copy
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tierrank.errors import optional
from tierrank.losses.record import find
from tierrank.metrics import pairwise_disagreement
from tierrank.preference import dpo_loss, implicit_rewards, objective_for
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import preview, range_numbers

if TYPE_CHECKING:
    from transformers import Trainer as _Trainer
else:
    _Trainer = object  # the class is finished when it is asked for: see `__getattr__`

COLUMNS = ["prompt", "responses", "ratings", "ref_logps"]


# -- batches ---------------------------------------------------------------------------------------


@dataclass
class TieredCollator:
    """Rows of ``{"prompt", "responses", "ratings"}`` into a padded batch.

    A prompt and its responses are strings, or lists of messages for the tokenizer's chat template.
    Tokens are those of prompt and response together, with the end-of-sequence token behind a
    string, and a response begins where they part from the prompt's; TRL does the same.

    Called with rows, it gives ``input_ids``, ``attention_mask`` and ``completion_mask`` of shape
    [prompts, responses, tokens], and ``ratings`` of shape [prompts, responses], NaN where a prompt
    has fewer responses than others; ``ref_logps`` of the same shape if the rows have them.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerBase
        That of the model.
    max_length : int, optional
        Tokens of a prompt with a response; what is behind is cut off.

    See Also
    --------
    tiers_of : Makes tiers of a batch.
    TieredDPOTrainer : Takes it by itself.

    Examples
    --------
    >>> from tierrank.integrations.transformers import TieredCollator
    >>> class Letters:  # in place of AutoTokenizer.from_pretrained(…)
    ...     eos_token, eos_token_id, pad_token_id = "$", 0, 0
    ...
    ...     def __call__(self, text):
    ...         return {"input_ids": [ord(letter) for letter in text]}
    >>> rows = [{"prompt": "2 + 2 =", "responses": [" 4", " 22"], "ratings": [1, 0]}]
    >>> batch = TieredCollator(Letters())(rows)
    >>> batch["completion_mask"].sum(dim=2)  # tokens of each response
    tensor([[3, 4]])
    """

    tokenizer: Any
    max_length: int | None = None

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
        for place, row in enumerate(rows):
            check_row(row, f"row {place} of the batch")
        tokens = [self._tokens(row) for row in rows]
        shape = (
            len(rows),
            max(map(len, tokens)),
            max(len(ids) for some in tokens for ids, _ in some),
        )
        tokenizer = self.tokenizer
        padding = (
            tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id
        )
        batch = {
            "input_ids": torch.full(shape, padding),
            "attention_mask": torch.zeros(shape, dtype=torch.long),
            "completion_mask": torch.zeros(shape, dtype=torch.long),
            "ratings": torch.full(shape[:2], math.nan, dtype=torch.float64),
        }
        if all(row.get("ref_logps") is not None for row in rows):
            batch["ref_logps"] = torch.zeros(shape[:2])
        for i, (row, some) in enumerate(zip(rows, tokens, strict=True)):
            for j, (ids, begin) in enumerate(some):
                batch["input_ids"][i, j, : len(ids)] = torch.tensor(ids)
                batch["attention_mask"][i, j, : len(ids)] = 1
                batch["completion_mask"][i, j, begin : len(ids)] = 1
            for name in batch.keys() & {"ratings", "ref_logps"}:
                batch[name][i, : len(some)] = torch.tensor(row[name], dtype=batch[name].dtype)
        return batch

    def _tokens(self, row: Mapping[str, Any]) -> list[tuple[list[int], int]]:
        """Tokens of the prompt with each response, and where the response begins."""
        prompt = self._ids(row["prompt"], add_generation_prompt=True)
        both = []
        for response in row["responses"]:
            end = self.tokenizer.eos_token if isinstance(response, str) else None
            if end is not None and not response.endswith(end):
                response = response + end
            both.append(self._ids(row["prompt"] + response))
        begin = min(_common_start(prompt, ids) for ids in both)
        if self.max_length is not None:
            if begin >= self.max_length:
                raise ValueError(
                    f"the prompt {preview(row['prompt'])} has {begin} tokens, which leaves none to "
                    f"its responses: leave it out, or take a max_length above {self.max_length}"
                )
            both = [ids[: self.max_length] for ids in both]
        return [(ids, begin) for ids in both]

    def _ids(self, text: Any, **how: Any) -> list[int]:
        if isinstance(text, str):
            return list(self.tokenizer(text)["input_ids"])
        found = self.tokenizer.apply_chat_template(text, tokenize=True, return_dict=True, **how)
        return list(found["input_ids"])


def _common_start(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens are the same from the start."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def check_row(row: Mapping[str, Any], where: str, *, several_tiers: bool = False) -> None:
    """Refuse a row that is not whole, by its place.

    Parameters
    ----------
    row : mapping
        ``{"prompt", "responses", "ratings"}``, and "ref_logps" if it has them.
    where : str
        How a message calls it: "row 3 of train_dataset".
    several_tiers : bool
        Whether one tier is not enough.

    Raises
    ------
    ValueError
        What is missing, of another length, not finite, or all tied.

    See Also
    --------
    TieredCollator : Checks the rows of a batch.

    Examples
    --------
    >>> from tierrank.integrations.transformers import check_row
    >>> row = {"prompt": "2 + 2 =", "responses": [" 4", " 5"], "ratings": [1]}
    >>> check_row(row, "row 0")
    Traceback (most recent call last):
        ...
    ValueError: row 0: 2 responses, but 1 ratings (prompt '2 + 2 ='); give one for each response
    """
    for name in COLUMNS[:3]:
        if row.get(name) is None:
            raise ValueError(f"{where} has no {name}: rows have a prompt, responses and ratings")
    prompt, responses, ratings = (row[name] for name in COLUMNS[:3])
    for name in ("ratings", "ref_logps"):
        given = row.get(name)
        if given is not None and len(given) != len(responses):
            raise ValueError(
                f"{where}: {len(responses)} responses, but {len(given)} {name} (prompt "
                f"{preview(prompt)}); give one for each response"
            )
    if not len(responses):
        raise ValueError(f"{where} has no responses (prompt {preview(prompt)}): leave it out")
    if any(isinstance(each, str) != isinstance(prompt, str) for each in responses):
        raise ValueError(
            f"{where}: the prompt is {'a string' if isinstance(prompt, str) else 'messages'}, and "
            f"not all responses are (prompt {preview(prompt)}); give strings, or lists of messages"
        )
    for place, rating in enumerate(ratings):
        if rating is None or not math.isfinite(rating):
            raise ValueError(
                f"{where}: ratings[{place}] is {rating} (prompt {preview(prompt)}); give a finite "
                "number, or leave the response out"
            )
    if several_tiers and len(set(ratings)) < 2:
        raise ValueError(
            f"{where}: all {len(ratings)} responses are rated {ratings[0]} (prompt "
            f"{preview(prompt)}), and one tier says nothing about their order; leave it out. (For "
            'pairs that may tie there are objective="davidson" and "rao-kupper".)'
        )


def tiers_of(batch: Mapping[str, Tensor]) -> tuple[Tiers, Tensor]:
    """Make tiers of a batch's responses, one after another.

    Parameters
    ----------
    batch : mapping
        What `TieredCollator` gave; its ``ratings`` are looked at.

    Returns
    -------
    tiers : Tiers
        A list a prompt.
    real : Tensor
        [prompts, responses] booleans: which responses exist.

    See Also
    --------
    TieredCollator : Makes batches.
    tierrank.preference.dpo_loss : A loss of tiers.

    Examples
    --------
    >>> import torch
    >>> from tierrank.integrations.transformers import tiers_of
    >>> tiers, real = tiers_of({"ratings": torch.tensor([[1.0, 0.0], [3.0, float("nan")]])})
    >>> tiers
    Tiers(2 lists, 3 rows, 1 to 2 tiers a list)
      list 0: 0 > 1
      list 1: 2
    """
    ratings = batch["ratings"]
    real = ~ratings.isnan()
    return Tiers.from_labels(ratings[real], lengths=real.sum(dim=1)), real


# -- the trainer -----------------------------------------------------------------------------------


class _TieredDPO(_Trainer):  # type: ignore[misc]
    """Direct preference optimisation for responses in tiers, on `transformers.Trainer`.

    The loss is `tierrank.preference.dpo_loss`, a mean over prompts, however many responses each
    has and however many batches a step accumulates. Saving, loading and resuming, devices and
    precision are the trainer's own.

    The reference model is, as in TRL: `ref_model`; or a frozen copy of the model as it is given;
    or, for a model of PEFT, the model with its adapters switched off; or none, where each row has
    ``ref_logps``, which ``precompute_ref_log_probs=True`` computes before training. So to resume a
    run, give the model that it began with.

    Metrics have TRL's names, with the best tier of a prompt for "chosen" and the last one for
    "rejected": ``rewards/chosen``, ``rewards/rejected``, ``rewards/margins``, ``logps/chosen``,
    ``logps/rejected``; ``rewards/tier_1``, ``rewards/tier_2``, … are the mean rewards of the best
    tier, the second, …, and ``rewards/accuracies`` is the share of pairs of a prompt's responses
    from different tiers that rewards put in the right order. All are means over prompts.

    Parameters
    ----------
    model : Module
        The model to train.
    ref_model : Module, optional
        The reference; see above.
    args : TrainingArguments, optional
        As in `transformers.Trainer`. It may be a `trl.DPOConfig`: its beta, label_smoothing,
        max_length and precompute_ref_log_probs count where they are not given here.
    data_collator : callable, optional
        As in `transformers.Trainer`; without it, a `TieredCollator`.
    train_dataset, eval_dataset : Dataset or sequence, optional
        Rows of ``{"prompt", "responses", "ratings"}``.
    processing_class : PreTrainedTokenizerBase, optional
        The tokenizer.
    beta : float, optional
        As in `tierrank.preference.dpo_loss`; 0.1 without it.
    objective : str, optional
        As there. Without it, `objective_for` chooses by the training data: "davidson" for pairs of
        which some tie, else "pl-partition".
    objective_params : dict, optional
        The objective's options.
    label_smoothing : float, optional
        As in `dpo_loss`.
    margin : float
        As in `dpo_loss`.
    reference_free : bool
        Without a reference; by tokens and with `margin`, that is SimPO for tiers.
    by_length : bool
        Divide log-probabilities by the number of tokens.
    max_length : int, optional
        Tokens of a prompt with a response.
    precompute_ref_log_probs : bool, optional
        Compute the reference's log-probabilities once, before training, and keep no second model.
    disable_dropout : bool
        Train without dropout, so that the policy begins with rewards of 0.
    **others
        As in `transformers.Trainer`.

    Raises
    ------
    ValueError
        A row has ratings of another number than responses, one that is not finite, or one tier
        only.

    See Also
    --------
    tierrank.preference.dpo_loss : The loss.
    TieredCollator : Makes its batches.

    Examples
    --------
    ::

        from tierrank.integrations.transformers import TieredDPOTrainer

        rows = [{"prompt": "2 + 2 =", "responses": [" 4", " 5", " 22"], "ratings": [2, 1, 1]}]
        trainer = TieredDPOTrainer(model, train_dataset=rows, processing_class=tokenizer)
        trainer.train()
    """

    # compute_loss divides by the prompts of all batches that a step accumulates
    loss_is_scaled_for_ga = True

    def __init__(
        self,
        model: nn.Module,
        ref_model: nn.Module | None = None,
        args: Any = None,
        data_collator: Any = None,
        train_dataset: Any = None,
        eval_dataset: Any = None,
        processing_class: Any = None,
        *,
        beta: float | None = None,
        objective: str | None = None,
        objective_params: dict[str, Any] | None = None,
        label_smoothing: float | None = None,
        margin: float = 0.0,
        reference_free: bool = False,
        by_length: bool = False,
        max_length: int | None = None,
        precompute_ref_log_probs: bool | None = None,
        disable_dropout: bool = True,
        **others: Any,
    ) -> None:
        def setting(given: Any, name: str, otherwise: Any) -> Any:
            return getattr(args, name, otherwise) if given is None else given

        if ref_model is model:
            raise ValueError("ref_model is the model itself, which changes: give a copy, or none")
        if processing_class is None and data_collator is None:
            raise ValueError("give the tokenizer: TieredDPOTrainer(…, processing_class=tokenizer)")
        data_collator = data_collator or TieredCollator(
            processing_class, setting(max_length, "max_length", None)
        )
        self.objective = objective or _objective_for(train_dataset)
        several = find(self.objective).tie_parameter is None
        for dataset in (train_dataset, *_parts(eval_dataset).values()):
            if dataset is not None and hasattr(dataset, "__len__"):
                for place, row in enumerate(dataset):
                    check_row(row, f"row {place}", several_tiers=several)
        self.beta = setting(beta, "beta", 0.1)
        self.loss_options = {
            "objective_params": objective_params,
            "label_smoothing": setting(label_smoothing, "label_smoothing", 0.0),
            "margin": margin,
        }
        self.reference_free, self.by_length = reference_free, by_length
        if disable_dropout:
            for module in model.modules():
                if isinstance(module, nn.Dropout):
                    module.p = 0.0
        # (rewards, logps, ratings, responses of prompts) of batches since metrics were logged last
        self._seen: dict[str, list[tuple[Tensor, ...]]] = {"train": [], "eval": []}
        super().__init__(
            model=model, args=args, data_collator=data_collator, train_dataset=train_dataset,
            eval_dataset=eval_dataset, processing_class=processing_class, **others,
        )  # fmt: skip
        precompute = setting(precompute_ref_log_probs, "precompute_ref_log_probs", False)
        self.ref_model = None if reference_free else self._reference_model(ref_model, precompute)
        if precompute and not reference_free:
            self.train_dataset = self._with_ref_logps(train_dataset)
            parts = {name: self._with_ref_logps(d) for name, d in _parts(eval_dataset).items()}
            self.eval_dataset = parts if isinstance(eval_dataset, Mapping) else parts[""]

    def _reference_model(self, given: nn.Module | None, precompute: bool) -> nn.Module | None:
        """The frozen reference, where its log-probabilities come from a second model."""
        has_adapters = hasattr(self.model, "disable_adapter")
        known = "ref_logps" in next(iter(self.train_dataset or ()), {})
        if given is None and (has_adapters or precompute or known):
            return None
        if self.is_deepspeed_enabled or self.is_fsdp_enabled:
            raise ValueError(
                "a reference model beside one that DeepSpeed or FSDP cuts into parts is not "
                "supported: give rows with ref_logps, computed in a run of one process by "
                "precompute_ref_log_probs=True"
            )
        reference = (copy.deepcopy(self.model) if given is None else given).eval()
        reference.requires_grad_(False)
        prepared: nn.Module = self.accelerator.prepare_model(reference, evaluation_mode=True)
        return prepared

    def _with_ref_logps(self, dataset: Any) -> Any:
        """The rows of a data set with the reference's log-probabilities of their responses."""
        from accelerate.utils import gather_object

        if not dataset or "ref_logps" in next(iter(dataset)):
            return dataset
        if not hasattr(dataset, "__len__"):
            raise ValueError(
                "a data set that streams has no place for precomputed log-probabilities: leave out "
                "precompute_ref_log_probs, or give a datasets.Dataset"
            )
        size, found = self.args.per_device_eval_batch_size, []
        processes, own = self.accelerator.num_processes, self.accelerator.process_index
        self.model.eval()
        for start in range(own * size, len(dataset), processes * size):
            rows = [dataset[i] for i in range(start, min(start + size, len(dataset)))]
            batch = self._prepare_inputs(self.data_collator(rows))
            real = ~batch["ratings"].isnan()
            flat = self._reference_logps(_only(batch, real)).cpu()
            parts = flat.split(real.sum(dim=1).tolist())
            found.append((start, [part.tolist() for part in parts]))
        logps = [each for _, some in sorted(gather_object(found)) for each in some]
        if hasattr(dataset, "add_column"):
            return dataset.add_column("ref_logps", logps)
        return [{**row, "ref_logps": each} for row, each in zip(dataset, logps, strict=True)]

    def _set_signature_columns_if_needed(self) -> None:
        self._signature_columns = COLUMNS  # what a data set keeps on its way to the collator

    def _get_num_items_in_batch(self, batch_samples: list[Any], device: torch.device) -> Tensor:
        """Prompts of the batches that one step accumulates; of all processes, their mean."""
        prompts = torch.tensor(float(sum(len(b["ratings"]) for b in batch_samples)), device=device)
        found: Tensor = self.accelerator.gather(prompts).mean()
        return found

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, Tensor],
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Any:
        """Compute the sum over prompts, by their number in a step; their mean without that.

        `Trainer` calls it.

        Parameters
        ----------
        model : Module
            The policy.
        inputs : dict
            A batch, as the collator makes it.
        return_outputs : bool
            Whether to give the outputs as well.
        num_items_in_batch : Tensor or int, optional
            How many prompts a step has.

        Returns
        -------
        Tensor
            The loss; a pair of it and the outputs with `return_outputs`.

        See Also
        --------
        tierrank.preference.dpo_loss : The loss of prompts.

        Examples
        --------
        ::

            trainer.compute_loss(model, collator(rows))
        """
        tiers, real = tiers_of(inputs)
        tokens = _only(inputs, real)
        policy = response_logps(model, tokens)
        reference = None
        if not self.reference_free:
            if "ref_logps" in inputs:
                reference = inputs["ref_logps"][real].to(policy)
            else:
                reference = self._reference_logps(tokens)
        lengths = tokens["completion_mask"][:, 1:].sum(dim=1) if self.by_length else None
        losses = dpo_loss(
            policy, reference, tiers, beta=self.beta, objective=self.objective, lengths=lengths,
            reduction="none", **self.loss_options,
        )  # fmt: skip
        rewards = implicit_rewards(policy.detach(), reference, beta=self.beta, lengths=lengths)
        batch = rewards, policy.detach(), inputs["ratings"][real], real.sum(dim=1)
        self._seen["train" if self.model.training else "eval"].append(batch)
        loss = losses.sum() / (len(losses) if num_items_in_batch is None else num_items_in_batch)
        return (loss, {}) if return_outputs else loss

    def _reference_logps(self, tokens: Mapping[str, Tensor]) -> Tensor:
        model, switched_off = self.ref_model, nullcontext()
        if model is None:
            model = self.model
            if hasattr(model, "disable_adapter"):
                switched_off = model.disable_adapter()
            elif self.state.global_step:
                raise ValueError(
                    "these rows have no ref_logps, and the reference model was not kept: give "
                    "them as eval_dataset when the trainer is made, or give ref_model"
                )
        with torch.no_grad(), switched_off, self.compute_loss_context_manager():
            return response_logps(model, tokens)

    def prediction_step(
        self, model: nn.Module, inputs: Any, prediction_loss_only: bool, ignore_keys: Any = None
    ) -> tuple[Tensor, None, None]:
        """Compute the loss alone: its inputs have no labels, by which the trainer would know it.

        `Trainer` calls it.

        Parameters
        ----------
        model : Module
            The policy.
        inputs : dict
            A batch, as the collator makes it.
        prediction_loss_only : bool
            It is always so.
        ignore_keys : list, optional
            Not looked at.

        Returns
        -------
        tuple
            The loss, None and None.

        See Also
        --------
        compute_loss : In training.

        Examples
        --------
        ::

            loss, _, _ = trainer.prediction_step(model, collator(rows), prediction_loss_only=True)
        """
        with torch.no_grad(), self.compute_loss_context_manager():
            return self.compute_loss(model, self._prepare_inputs(inputs)), None, None

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log, and the metrics since the last time with it.

        `Trainer` calls it.

        Parameters
        ----------
        logs : dict of float
            What is logged.
        start_time : float, optional
            When training began.

        See Also
        --------
        tier_metrics : Those metrics.

        Examples
        --------
        ::

            trainer.log({"loss": 0.69})
        """
        from accelerate.utils import gather_object

        mode, prefix = "train" if self.model.training else "eval", ""
        if mode == "eval":  # the name of the data set stands in that of its loss
            prefix = next((name[:-4] for name in logs if name.endswith("_loss")), "eval_")
        sums = {}
        if self._seen[mode]:
            rewards, logps, ratings, sizes = (
                torch.cat(parts).cpu() for parts in zip(*self._seen[mode], strict=True)
            )
            found = tier_metrics(rewards, logps, Tiers.from_labels(ratings, lengths=sizes))
            sums = {name: (float(each.sum()), len(each)) for name, each in found.items()}
        totals: dict[str, Any] = defaultdict(lambda: [0.0, 0])
        for name, (total, number) in gather_object(list(sums.items())):
            totals[name][0] += total
            totals[name][1] += number
        logs.update({f"{prefix}{k}": total / n for k, (total, n) in totals.items() if n})
        self._seen[mode].clear()
        super().log(logs, start_time)


def response_logps(model: nn.Module, tokens: Mapping[str, Tensor]) -> Tensor:
    """Compute log-probabilities of responses: sums over the tokens of `completion_mask`.

    Parameters
    ----------
    model : Module
        A causal language model.
    tokens : mapping
        [responses, tokens] ``input_ids``, ``attention_mask`` and ``completion_mask``.

    Returns
    -------
    Tensor
        [responses] log-probabilities, in float32 at least.

    See Also
    --------
    tierrank.preference.dpo_loss : Takes them.

    Examples
    --------
    >>> import torch
    >>> from types import SimpleNamespace
    >>> from tierrank.integrations.transformers import response_logps
    >>> def model(input_ids, **_):  # in place of a network: all of 4 tokens alike
    ...     return SimpleNamespace(logits=torch.zeros(*input_ids.shape, 4))
    >>> tokens = {
    ...     "input_ids": torch.tensor([[3, 1, 2]]),
    ...     "attention_mask": torch.tensor([[1, 1, 1]]),
    ...     "completion_mask": torch.tensor([[0, 1, 1]]),
    ... }
    >>> response_logps(model, tokens)  # 2 · log ¼
    tensor([-2.7726])
    """
    ids, attention = tokens["input_ids"], tokens["attention_mask"]
    logits = model(input_ids=ids, attention_mask=attention, use_cache=False).logits[:, :-1]
    of_response = tokens["completion_mask"][:, 1:].bool()
    wanted, scores = ids[:, 1:][of_response], logits[of_response]
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    each = -F.cross_entropy(scores, wanted, reduction="none")
    return each.new_zeros(len(ids)).index_add(0, of_response.nonzero()[:, 0], each)


def tier_metrics(rewards: Tensor, logps: Tensor, tiers: Tiers) -> dict[str, Tensor]:
    """Compute metrics of prompts by name; one tier has nothing to be compared with.

    Parameters
    ----------
    rewards, logps : Tensor
        [responses] of each.
    tiers : Tiers
        A list a prompt.

    Returns
    -------
    dict of Tensor
        Values, one a prompt that the metric is defined for, by the names that `TieredDPOTrainer`
        logs.

    See Also
    --------
    TieredDPOTrainer : Logs their means.

    Examples
    --------
    >>> import torch, tierrank as tr
    >>> from tierrank.integrations.transformers import tier_metrics
    >>> tiers = tr.Tiers.from_labels([1, 0, 0])
    >>> found = tier_metrics(torch.tensor([0.3, 0.1, 0.5]), torch.zeros(3), tiers)
    >>> found["rewards/accuracies"].tolist()
    [0.5]
    """
    sizes, firsts = tiers.tier_sizes, tiers.list_offsets[:-1]
    several = tiers.n_tiers > 1
    best, worst = firsts[several], (tiers.list_offsets[1:] - 1)[several]

    def by_tier(values: Tensor) -> Tensor:
        sums = values.new_zeros(len(sizes))
        return sums.index_add_(0, range_numbers(sizes), values[tiers.items]) / sizes

    reward, logp = by_tier(rewards.double()), by_tier(logps.double())
    wrong = pairwise_disagreement(
        rewards, tiers.to_labels(), lengths=tiers.lengths, weight="one", normalize=True,
        empty="skip", reduction="none",
    )[several.numpy()]  # fmt: skip
    values = {
        "rewards/chosen": reward[best],
        "rewards/rejected": reward[worst],
        "rewards/accuracies": torch.from_numpy(1 - wrong),
        "rewards/margins": reward[best] - reward[worst],
        "logps/chosen": logp[best],
        "logps/rejected": logp[worst],
    }
    place = torch.arange(len(sizes)) - firsts[range_numbers(tiers.n_tiers)]
    for number in range(int(tiers.n_tiers.max())):
        values[f"rewards/tier_{number + 1}"] = reward[place == number]
    return values


def _only(batch: Mapping[str, Tensor], real: Tensor) -> dict[str, Tensor]:
    """[responses, tokens] of the responses that exist."""
    return {name: batch[name][real] for name in ("input_ids", "attention_mask", "completion_mask")}


def _parts(dataset: Any) -> dict[str, Any]:
    return dict(dataset) if isinstance(dataset, Mapping) else {"": dataset}


def _objective_for(dataset: Any) -> str:
    """`objective_for` all rows; of a data set that streams, nothing is known."""
    if dataset is None or not hasattr(dataset, "__len__"):
        return "pl-partition"
    ratings = [row["ratings"] for row in dataset]
    if any(len(each) != 2 for each in ratings):
        return "pl-partition"
    return objective_for(Tiers.from_labels(torch.tensor(ratings)))


def __getattr__(name: str) -> Any:
    """`TieredDPOTrainer`, made when it is asked for: it takes the library to inherit from it."""
    if name != "TieredDPOTrainer":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    library = optional("transformers", name, "transformers")
    kind = type(
        name, (_TieredDPO, library.Trainer), {"__doc__": _TieredDPO.__doc__, "__module__": __name__}
    )
    globals()[name] = kind
    return kind
