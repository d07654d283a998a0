"""Rankers with features: linear, neural and boosted, as scikit-learn estimators."""
