"""A site of the Provider's contract on the Workers of a cluster of this machine, scripted or real."""

import os
import signal
import time

from rheostat.control.ports import Provider
from rheostat.services.local_cluster import LocalCluster, Worker

from .provider import Site


def local_site(cluster: LocalCluster, provider: Provider) -> Site:
    """Its nodes are the Workers of the cluster."""

    def worker(name: str) -> Worker:
        return next(worker for worker in cluster.workers() if worker.name == name)

    def address(name: str) -> tuple[str, str]:
        return "127.0.0.1", f"127.0.0.1:{worker(name).port}"

    def kill(name: str) -> None:
        killed, until = worker(name), time.monotonic() + 20
        os.killpg(killed.process.pid, signal.SIGKILL)
        while killed.alive and time.monotonic() < until:
            time.sleep(0.01)

    return Site(provider, address, kill)
