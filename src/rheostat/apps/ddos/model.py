"""What normal traffic looks like: principal components of its periods, and how far a period is from them.

In normal traffic the features rise and fall together, so few components describe them. An attack breaks that
pattern: what the components cannot explain of a period, its squared residual, is its score.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from pyspark.ml.feature import PCA, StandardScaler
from pyspark.ml.functions import array_to_vector, vector_to_array
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from rheostat.apps.ddos.periods import FEATURES
from rheostat.model.documents import Document, parse, read_document
from rheostat.model.errors import FileError

COMPONENTS = 2
QUANTILE, MARGIN = 0.999, 1.5  # a period is an attack above this quantile of normal ones, times the margin
Numbers = NDArray[np.float64]


class ModelDocument(Document):
    """A model as it lies in a file."""

    features: list[str]
    mean: list[float]
    deviation: list[Annotated[float, Field(gt=0)]]
    components: list[list[float]]  # a row per feature
    threshold: float = Field(gt=0)


@dataclass(frozen=True)
class Model:
    """Normal traffic."""

    mean: Numbers
    deviation: Numbers
    components: Numbers
    threshold: float

    @property
    def residual(self) -> Numbers:
        """The matrix that takes away what the components explain."""
        return np.eye(len(self.mean)) - self.components @ self.components.T

    def score(self, features: str = "features") -> Column:
        """What the components do not explain, as an expression of Spark's own."""
        spread = [
            (F.get(features, n) - float(self.mean[n])) / float(self.deviation[n])
            for n in range(len(self.mean))
        ]
        left = [
            sum((part * float(weight) for part, weight in zip(spread, row, strict=True)), F.lit(0.0))
            for row in self.residual
        ]
        return sum((one * one for one in left), F.lit(0.0))

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
    vectors = periods.select(array_to_vector(F.col("features")).alias("vector")).cache()
    scaler = StandardScaler(withMean=True, withStd=True, inputCol="vector", outputCol="scaled").fit(vectors)
    scaled = scaler.transform(vectors)
    components = PCA(k=COMPONENTS, inputCol="scaled", outputCol="reduced").fit(scaled).pc.toArray()
    deviation = np.maximum(scaler.std.toArray(), 1e-6)
    model = Model(scaler.mean.toArray(), deviation, components, 1.0)
    arrays = vectors.select(vector_to_array(F.col("vector")).alias("features"))
    [quantile] = arrays.select(model.score().alias("score")).approxQuantile("score", [QUANTILE], 0.0)
    return Model(model.mean, model.deviation, components, MARGIN * quantile)
