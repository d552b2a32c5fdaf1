"""What normal traffic looks like: principal components of its periods, and how far a period is from them.

In normal traffic the features rise and fall together, so few components describe them. An attack breaks that
pattern: what the components cannot explain of a period, its squared residual, is its score.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from pyspark.ml.feature import PCA, StandardScaler
from pyspark.ml.functions import array_to_vector
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from rheostat.apps.ddos.periods import FEATURES
from rheostat.model.documents import Document, parse, read_document
from rheostat.model.errors import FileError

COMPONENTS = 3
QUANTILE, MARGIN = 0.999, 1.1  # a period is an attack above this quantile of normal ones, times the margin
MIN_DEVIATION = 0.05  # keeps a feature that hardly varies from weighing too much
Numbers = NDArray[np.float64]


class ModelDocument(Document):
    """A model file."""

    features: list[str]
    mean: list[float]
    deviation: list[Annotated[float, Field(gt=0)]]
    components: list[list[float]]  # a row per feature
    threshold: float = Field(gt=0)


@dataclass(frozen=True)
class Model:
    """A model of normal traffic."""

    mean: Numbers
    deviation: Numbers
    components: Numbers
    threshold: float

    def spread(self, features: str = "features") -> list[Column]:
        """Return how many deviations each feature is from its mean."""
        statistics = zip(self.mean.tolist(), self.deviation.tolist(), strict=True)
        return [
            (F.get(features, F.lit(n)) - mean) / deviation for n, (mean, deviation) in enumerate(statistics)
        ]

    def score(self, features: str = "features") -> Column:
        """Return the squared residual, as a Spark expression."""
        left = np.eye(len(self.mean)) - self.components @ self.components.T
        spread = self.spread(features)
        rest = [
            _sum(part * weight for part, weight in zip(spread, row, strict=True)) for row in left.tolist()
        ]
        return _sum(residual * residual for residual in rest)

    def save(self, path: Path) -> None:
        """Write it as JSON."""
        document = ModelDocument(
            features=list(FEATURES),
            mean=self.mean.tolist(),
            deviation=self.deviation.tolist(),
            components=self.components.tolist(),
            threshold=self.threshold,
        )
        path.write_text(document.model_dump_json(indent=1) + "\n")


def load_model(path: Path) -> Model:
    """Read a model file."""
    stated = parse(ModelDocument, read_document(path), path)
    if tuple(stated.features) != FEATURES:
        raise FileError(f"{path}: was learned from other features than {', '.join(FEATURES)}: learn it again")
    components = np.array(stated.components)
    if components.shape != (len(FEATURES), COMPONENTS) or not len(stated.mean) == len(
        stated.deviation
    ) == len(FEATURES):
        raise FileError(f"{path}: needs {len(FEATURES)} features and {COMPONENTS} components: learn it again")
    return Model(np.array(stated.mean), np.array(stated.deviation), components, stated.threshold)


def learn(periods: DataFrame) -> Model:
    """Learn from the periods of normal traffic, in a batch."""
    vectors = periods.select("features", array_to_vector(F.col("features")).alias("vector")).cache()
    scaler = StandardScaler(withMean=True, inputCol="vector").fit(vectors)
    deviation = np.maximum(scaler.std.toArray(), MIN_DEVIATION)
    plain = Model(scaler.mean.toArray(), deviation, np.zeros((len(FEATURES), COMPONENTS)), 1.0)
    spread = vectors.select(array_to_vector(F.array(*plain.spread())).alias("spread"))
    components = PCA(k=COMPONENTS, inputCol="spread").fit(spread).pc.toArray()
    model = replace(plain, components=components)
    [normal] = vectors.select(model.score().alias("score")).approxQuantile("score", [QUANTILE], 0.0)
    vectors.unpersist()
    return replace(model, threshold=MARGIN * normal)


def _sum(columns: Iterable[Column]) -> Column:
    return reduce(Column.__add__, columns)
