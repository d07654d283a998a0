"""Cross-encoders of sentence-transformers, trained on documents in tiers."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor, nn

from tierrank import losses
from tierrank.data.tables.columns import arrow_table
from tierrank.losses.record import find
from tierrank.tiers import Tiers


class TierLoss(nn.Module):
    """A listwise loss for `CrossEncoderTrainer`: exact where documents have the same grade.

    It is called as the listwise losses of that library are: with a list of queries, a list of
    documents for each of them, and a list of grades for each document. Neither the order of the
    documents nor their number makes a difference. A query without two grades has no effect and
    costs nothing (where an objective models ties, as "davidson" does, without two documents); if
    that is so for all queries of a batch, a warning says it.

    Parameters
    ----------
    model : CrossEncoder
        With one output.
    objective : str
        A name of `tierrank.losses.OBJECTIVES`. What an objective learns by itself, the trainer
        trains beside the model.
    activation_fn : Module, optional
        Applied to the model's scores; none without it.
    mini_batch_size : int, optional
        Pairs of query and document in one forward pass: as many as the batch has queries without
        it, all of the batch at once if it is 0 or less.
    **options
        Those of the objective (``alpha=…``, ``k=…``).

    Raises
    ------
    ValueError
        The model has several outputs, or there is no such objective or option.

    See Also
    --------
    listwise : Makes the data set.
    tierrank.losses.pl_partition : The likelihood that it takes.

    Examples
    --------
    ::

        from sentence_transformers.cross_encoder import CrossEncoder, CrossEncoderTrainer
        from tierrank.integrations.sentence_transformers import TierLoss

        model = CrossEncoder("microsoft/mpnet-base", num_labels=1)
        trainer = CrossEncoderTrainer(model, train_dataset=data, loss=TierLoss(model))
        trainer.train()
    """

    def __init__(
        self,
        model: Any,
        objective: str = "pl-partition",
        *,
        activation_fn: nn.Module | None = None,
        mini_batch_size: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        if model.num_labels != 1:
            raise ValueError(
                f"the model has {model.num_labels} outputs, and a ranking needs one: "
                "CrossEncoder(…, num_labels=1)"
            )
        self.model = model
        self.entry = find(objective)
        self.objective = losses.from_name(objective, **options)
        self.options = options
        self.activation_fn = activation_fn or nn.Identity()
        self.mini_batch_size = mini_batch_size

    def forward(
        self,
        inputs: list[list[Any]],
        labels: list[Tensor],
        prompt: str | None = None,
        task: str | None = None,
    ) -> Tensor:
        """Compute the mean loss over the queries that say something.

        Parameters
        ----------
        inputs : list
            Queries, and a list of documents for each.
        labels : list of Tensor
            The grades of each query's documents, higher is better.
        prompt, task : str, optional
            Handed on to the model's preprocessing.

        Returns
        -------
        Tensor
            The loss; 0, and a warning, if no query says something.

        See Also
        --------
        listwise : Makes the data set that it reads.

        Examples
        --------
        ::

            loss = TierLoss(model)
            loss([["what is a bear"], [["an animal", "a city"]]], [torch.tensor([1.0, 0.0])])
        """
        queries, documents = _checked(inputs, labels)
        grades = [torch.as_tensor(each).reshape(-1).double().cpu() for each in labels]
        _refuse_not_finite(grades)
        # a list says something if it has two tiers, or two tied documents where ties are modelled
        modelled = self.entry.tie_parameter is not None
        telling = [
            i for i, g in enumerate(grades) if len(g) > 1 and (modelled or bool((g != g[0]).any()))
        ]
        if not telling:
            warnings.warn(
                f"none of the {len(queries)} queries of a batch has documents of two grades, so "
                "the batch teaches nothing: leave such queries out, or take larger batches",
                stacklevel=2,
            )
            return torch.zeros((), device=self.model.device, requires_grad=True)
        pairs = [(queries[i], document) for i in telling for document in documents[i]]
        size = len(queries) if self.mini_batch_size is None else self.mini_batch_size
        scores = self._scores(pairs, size if size > 0 else len(pairs), prompt, task)
        tiers = Tiers.from_labels(
            torch.cat([grades[i] for i in telling]), lengths=[len(grades[i]) for i in telling]
        )
        loss: Tensor = self.objective(scores, tiers.to(scores.device))
        return loss

    def _scores(
        self, pairs: list[tuple[Any, Any]], size: int, prompt: str | None, task: str | None
    ) -> Tensor:
        """[pairs], `size` of them at a time."""
        found = []
        for start in range(0, len(pairs), size):
            tokens = self.model.preprocess(pairs[start : start + size], prompt=prompt, task=task)
            for name, value in tokens.items():
                if isinstance(value, Tensor):
                    tokens[name] = value.to(self.model.device)
            found.append(self.model(tokens)["scores"].view(-1))
        scores: Tensor = self.activation_fn(torch.cat(found).float())
        return scores

    def get_config_dict(self) -> dict[str, Any]:
        """Say what the model card tells of this loss.

        Returns
        -------
        dict
            The objective, its options, the activation and the size of a mini-batch.

        See Also
        --------
        citation : The paper, for the card too.

        Examples
        --------
        ::

            TierLoss(model).get_config_dict()
        """
        activation = type(self.activation_fn)
        return {
            "objective": self.entry.name,
            **self.options,
            "activation_fn": f"{activation.__module__}.{activation.__qualname__}",
            "mini_batch_size": self.mini_batch_size,
        }

    @property
    def citation(self) -> str:
        """The paper of the likelihood of tied lists, for the model card."""
        return """
@inproceedings{ma2021partitioned,
    title = {Learning-to-Rank with Partitioned Preference:
        Fast Estimation for the Plackett-Luce Model},
    author = {Ma, Jiaqi and Yi, Xinyang and Tang, Weijing and Zhao, Zhe and Hong, Lichan
        and Chi, Ed and Mei, Qiaozhu},
    booktitle = {AISTATS},
    year = {2021}
}
"""


def _checked(inputs: list[list[Any]], labels: Any) -> tuple[list[Any], list[Any]]:
    """Queries and lists of documents, which the labels fit."""
    if len(inputs) != 2:
        raise ValueError(
            f"TierLoss takes two columns, a query and a list of documents, not {len(inputs)}"
        )
    queries, documents = inputs
    if isinstance(labels, Tensor) and labels.dim() < 2:
        raise ValueError(
            "TierLoss takes a list of grades for each query, but got one number: give lists, as "
            "listwise(table) makes them of a table with a row a document"
        )
    for place, (known, given) in enumerate(zip(documents, labels, strict=True)):
        if len(known) != len(given):
            raise ValueError(
                f"query {place} of the batch has {len(known)} documents and {len(given)} grades: "
                "give a grade for each document"
            )
    return queries, documents


def _refuse_not_finite(grades: list[Tensor]) -> None:
    for place, each in enumerate(grades):
        bad = ~each.isfinite()
        if bad.any():
            at = int(bad.nonzero()[0])
            raise ValueError(
                f"the grade of document {at} of query {place} of the batch is {float(each[at])}: "
                "leave the document out, or give it a finite grade"
            )


def listwise(
    table: Any, *, query: str = "query", document: str = "document", grade: str = "grade"
) -> Any:
    """Make a data set for `TierLoss` of a table with a row a document: one row a query.

    Parameters
    ----------
    table : Dataset, DataFrame or Table
        A `datasets.Dataset`, a pandas or polars frame, or a pyarrow table; rows of a query may
        stand anywhere.
    query, document, grade : str
        Names of its columns; grades are numbers, higher is better.

    Returns
    -------
    Dataset
        The query, the list of its documents and their grades (``labels``), queries in order of
        first appearance: what `CrossEncoderTrainer` takes.

    Raises
    ------
    ValueError
        A column is not there or a cell is missing (the row is named), or grades are no numbers.

    See Also
    --------
    TierLoss : Learns from it.

    Examples
    --------
    >>> import pandas as pd
    >>> from tierrank.integrations.sentence_transformers import listwise
    >>> frame = pd.DataFrame(
    ...     {
    ...         "query": ["pandas", "paris", "pandas"],
    ...         "document": ["a bear", "a city", "a fish"],
    ...         "grade": [2, 1, 0],
    ...     }
    ... )
    >>> listwise(frame)[0]
    {'query': 'pandas', 'document': ['a bear', 'a fish'], 'labels': [2.0, 0.0]}
    """
    try:
        import pyarrow as pa
        from datasets import Dataset
        from pyarrow import compute
    except ImportError as error:
        raise ImportError(
            "listwise needs the library datasets, which is not installed: "
            'pip install "tierrank[sentence-transformers]"'
        ) from error

    rows = arrow_table(table)
    if len({query, document, grade}) < 3:
        raise ValueError(
            f"query, document and grade are three columns, not {query!r}, {document!r}, {grade!r}"
        )
    for name in (query, document, grade):
        if name not in rows.column_names:
            raise ValueError(f"there is no column {name!r} among {rows.column_names}")
        missing = compute.is_null(rows[name], nan_is_null=True)
        at = compute.index(missing, True).as_py()
        if at >= 0:
            raise ValueError(f"row {at}: {name} is missing; leave the row out, or fill it")
    try:
        grades = rows[grade].cast(pa.float64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise ValueError(
            f"the column {grade!r} is of type {rows[grade].type}: grades are numbers"
        ) from None
    texts = [rows[name] for name in (query, document)]
    texts = [t.cast(t.type.value_type) if pa.types.is_dictionary(t.type) else t for t in texts]
    one = pa.table([*texts, grades], names=[query, document, "labels"])
    # without threads, groups and what is in them stay in the order of the rows
    lists = one.group_by(query, use_threads=False).aggregate(
        [(document, "list"), ("labels", "list")]
    )
    return Dataset(
        lists.select([query, f"{document}_list", "labels_list"]).rename_columns(one.column_names)
    )
