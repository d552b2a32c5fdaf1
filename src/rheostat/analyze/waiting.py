"""Which part of its slot time an operator waits itself, as for a remote service, in micro-batch."""

from rheostat.model.observation import Observation


def waiting_shares(observation: Observation) -> dict[str, float]:
    """The share of each operator whose rows hold their slots for longer than their CPU could take there.

    A core that many tasks share explains the time for which their CPU lasts on a slot's part of the node.
    What is beyond it passes no faster where a task is alone on its node.

    >>> from rheostat.model.observation import ApplicationMeasures, NodeMeasures, OperatorMeasures
    >>> asks = OperatorMeasures(1, processed=100, cpu_seconds=0.1, busy_seconds=1.0)
    >>> computes = OperatorMeasures(1, processed=100, cpu_seconds=0.5, busy_seconds=1.0)
    >>> node = NodeMeasures("n1", slots=2, cores=1.0)
    >>> window = Observation(0, 10, {"ask": asks, "sum": computes}, (node,), ApplicationMeasures())
    >>> waiting_shares(window)
    {'ask': 0.8, 'sum': 0.0}
    """
    cores, slots = (
        sum(node.cores for node in observation.nodes),
        sum(node.slots for node in observation.nodes),
    )
    shares = {}
    for name, measures in observation.operators.items():
        held, cpu = measures.row_busy_seconds, measures.row_cpu_seconds
        if held and cpu is not None and cores:
            shares[name] = max(0.0, 1 - cpu * slots / cores / held)
    return shares
