"""Has Spark rewrite the state of a query, and keeps the nodes up meanwhile."""

from concurrent.futures import Future, wait
from dataclasses import dataclass
from threading import Thread

from rheostat.control.ports import Clock
from rheostat.engines.spark.actuate.waiting import POLL_SECONDS
from rheostat.engines.spark.machines import Machines
from rheostat.engines.spark.observe.monitor import Monitor
from rheostat.engines.spark.protocol import Channel, Rescale, Rescaled
from rheostat.model.errors import RheostatError

RESCALE_SECONDS = 600.0


@dataclass(frozen=True)
class StateRewrite:
    """One rewrite; without executors it would wait for ever, so lost nodes are replaced while it runs."""

    channel: Channel
    monitor: Monitor
    machines: Machines
    clock: Clock

    def run(self, request: Rescale) -> Rescaled:
        """Ask for it and wait, without the clock, which lets others poll: one request can be open."""
        wanted, added = len(self.machines.names()), list[str]()
        answer = Future[Rescaled]()
        Thread(target=self._ask, args=(request, answer), name="rescale", daemon=True).start()
        try:
            while not wait([answer], POLL_SECONDS).done:
                added += self._replace_nodes(wanted)
            return answer.result()
        except BaseException:
            self.channel.hang_up()  # a late answer must not reach the next request
            raise
        finally:
            for name in added:
                if name in self.machines.names():
                    self.machines.settle(name)

    def _ask(self, request: Rescale, answer: "Future[Rescaled]") -> None:
        try:
            answer.set_result(self.channel.ask(request, RESCALE_SECONDS))
        except Exception as error:
            answer.set_exception(error)

    def _replace_nodes(self, wanted: int) -> tuple[str, ...]:
        """Replace nodes that were lost; their executors come by themselves."""
        if self.machines.scratch is None:  # not ours to replace
            return ()
        lost = self.machines.check(())
        missing = wanted - len(self.machines.names())
        if missing <= 0:
            return ()
        try:
            added = self.machines.add(missing)
        except RheostatError as error:
            self.monitor.note(self.clock.now(), "node", f"{missing} missing: {error}; retrying")
            return ()
        words = f"{', '.join(lost) or 'a node'} ended by itself, {', '.join(added)} replaced it"
        self.monitor.note(self.clock.now(), "node", words)
        return added
