"""A network with one hidden layer, trained by resilient propagation (P2, section 5.1, as in its Encog)."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rheostat.workloads.curve import FloatArray

GROW, SHRINK = 1.2, 0.5
BATCH = 512  # so few rows are multiplied on one thread: on a busy machine, more threads wait for each other
FIRST_STEP, LEAST_STEP, MOST_STEP = 0.01, 1e-6, 1.0


@dataclass(frozen=True, eq=False)
class Perceptron:
    """Inputs, tanh, tanh: the activations that the paper chose."""

    hidden: FloatArray  # inputs and a constant, x hidden
    output: FloatArray  # hidden and a constant, x outputs

    def __call__(self, inputs: FloatArray) -> FloatArray:
        """The outputs of each row of inputs."""
        outputs: FloatArray = np.tanh(_with_one(np.tanh(_with_one(inputs) @ self.hidden)) @ self.output)
        return outputs

    def error(self, inputs: FloatArray, wanted: FloatArray) -> float:
        """The sum of the squared errors."""
        pairs = _batches(inputs, wanted)
        return sum(float(np.sum((self(some) - right) ** 2)) for some, right in pairs)

    def slopes(self, inputs: FloatArray, wanted: FloatArray) -> FloatArray:
        """By how much the error changes with each weight, in one row."""
        parts = [self._slopes(*pair) for pair in _batches(inputs, wanted)]
        slopes: FloatArray = np.sum(parts, axis=0)
        return slopes

    def _slopes(self, inputs: FloatArray, wanted: FloatArray) -> FloatArray:
        rows = _with_one(inputs)
        inner = _with_one(np.tanh(rows @ self.hidden))
        outputs = np.tanh(inner @ self.output)
        outer_error = (outputs - wanted) * (1 - outputs**2)
        inner_error = (outer_error @ self.output[:-1].T) * (1 - inner[:, :-1] ** 2)
        return np.concatenate([(rows.T @ inner_error).ravel(), (inner.T @ outer_error).ravel()])

    def moved(self, by: FloatArray) -> "Perceptron":
        """The network with every weight moved."""
        size = self.hidden.size
        return Perceptron(
            self.hidden + by[:size].reshape(self.hidden.shape),
            self.output + by[size:].reshape(self.output.shape),
        )


def fresh(inputs: int, hidden: int, outputs: int, seed: int) -> Perceptron:
    """A network with small random weights."""
    draw = np.random.default_rng(seed)
    first = draw.normal(0.0, 1 / np.sqrt(inputs), (inputs + 1, hidden))
    return Perceptron(first, draw.normal(0.0, 1 / np.sqrt(hidden), (hidden + 1, outputs)))


def train(
    network: Perceptron, inputs: FloatArray, wanted: FloatArray, held_back: float, epochs: int
) -> Perceptron:
    """Train on the first rows; the weights that are best on the last `held_back` share are returned.

    Riedmiller, Braun: A direct adaptive method for faster backpropagation learning: the RPROP algorithm.
    ICNN 1993. Only the sign of a slope counts; a step grows while the sign stays.
    """
    split = max(1, round(len(inputs) * (1 - held_back)))
    known, judged = (inputs[:split], wanted[:split]), (inputs[split:], wanted[split:])
    judged = judged if len(judged[0]) else known
    best, least = network, network.error(*judged)
    size = network.hidden.size + network.output.size
    steps, before = np.full(size, FIRST_STEP), np.zeros(size)
    for _ in range(epochs):
        slopes = network.slopes(*known)
        turned = slopes * before
        steps = np.where(turned > 0, steps * GROW, np.where(turned < 0, steps * SHRINK, steps))
        steps = np.clip(steps, LEAST_STEP, MOST_STEP)
        slopes = np.where(turned < 0, 0.0, slopes)
        network, before = network.moved(-np.sign(slopes) * steps), slopes
        if (error := network.error(*judged)) < least:
            best, least = network, error
    return best


def _batches(inputs: FloatArray, wanted: FloatArray) -> Iterator[tuple[FloatArray, FloatArray]]:
    for start in range(0, len(inputs), BATCH):
        yield inputs[start : start + BATCH], wanted[start : start + BATCH]


def _with_one(rows: FloatArray) -> FloatArray:
    return np.column_stack([rows, np.ones(len(rows))])
