"""Commands for huge label sets: `tierrank extreme train`, `predict` and `evaluate`."""
