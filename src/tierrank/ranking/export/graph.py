"""A graph of ONNX operators, written node by node."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import onnx
from onnx import helper, numpy_helper

Array = np.ndarray[Any, Any]
Dtype = Literal["float32", "float64"]

OPSET = 17  # of 2022, the first with LayerNormalization: runtimes that are not new take it too
IR_VERSION = 8  # of the same time
TREES = "ai.onnx.ml"
IR_VERSION_OF_TREES = {3: IR_VERSION, 5: 10}


class Graph:
    """Operators from `features` [rows, n_features] to `scores` [rows].

    Values are called by name: every method that adds an operator gives the name of its result.

    Parameters
    ----------
    n_features
        columns of the input
    dtype
        of the input and of the scores. Feature steps take and give it, as in `predict`.
    """

    def __init__(self, n_features: int, dtype: Dtype) -> None:
        self.n_features = n_features
        self.dtype = np.dtype(dtype)
        self.features = "features"
        self.trees_version: int | None = None  # of `ai.onnx.ml`, if there are trees
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._named: dict[tuple[Any, ...], str] = {}

    def op(self, kind: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add an operator of one result."""
        return self.op_of_several(kind, *inputs, results=1, domain=domain, **attributes)[0]

    def op_of_several(
        self, kind: str, *inputs: str, results: int, domain: str = "", **attributes: Any
    ) -> list[str]:
        """Add an operator of several results."""
        number = len(self._nodes)
        names = [f"{kind}_{number}" + (f"_{i}" if i else "") for i in range(results)]
        node = helper.make_node(
            kind, inputs, names, name=f"{kind}_{number}", domain=domain, **attributes
        )
        self._nodes.append(node)
        return names

    def constant(self, value: Any, dtype: Any = np.float64) -> str:
        """Add an array that is part of the model; small ones that are equal are kept once."""
        array = np.ascontiguousarray(value, dtype=dtype).reshape(np.shape(value))
        key = (array.dtype.str, array.shape, array.tobytes()) if array.size <= 4 else (object(),)
        if key not in self._named:
            name = f"constant_{len(self._constants)}"
            self._constants.append(numpy_helper.from_array(array, name))
            self._named[key] = name
        return self._named[key]

    def cast(self, x: str, dtype: Any) -> str:
        """Convert to another type."""
        return self.op("Cast", x, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def widened(self, x: str) -> str:
        """A value of the graph's dtype as float64, in which all rankers but the neural compute."""
        return x if self.dtype == np.float64 else self.cast(x, np.float64)

    def narrowed(self, x: str) -> str:
        """A float64 value in the graph's dtype."""
        return x if self.dtype == np.float64 else self.cast(x, self.dtype)

    def model(self, column: str, about: str, notes: dict[str, str]) -> onnx.ModelProto:
        """The whole: scores from a value [rows, 1] of any float type, a text, and notes."""
        from tierrank import __version__

        column = self.op("Squeeze", column, self.constant([1], np.int64))
        kind = helper.np_dtype_to_tensor_dtype(self.dtype)
        self._nodes.append(helper.make_node("Cast", [column], ["scores"], name="scores", to=kind))
        opsets, ir_version = [helper.make_opsetid("", OPSET)], IR_VERSION
        if self.trees_version is not None:
            opsets.append(helper.make_opsetid(TREES, self.trees_version))
            ir_version = IR_VERSION_OF_TREES[self.trees_version]
        graph = helper.make_graph(
            self._nodes,
            "tierrank",
            [helper.make_tensor_value_info(self.features, kind, ["rows", self.n_features])],
            [helper.make_tensor_value_info("scores", kind, ["rows"])],
            self._constants,
            doc_string=about,
        )
        model = helper.make_model(
            graph,
            opset_imports=opsets,
            ir_version=ir_version,
            producer_name="tierrank",
            producer_version=__version__,
            doc_string=about,
        )
        helper.set_model_props(model, notes)
        return model
