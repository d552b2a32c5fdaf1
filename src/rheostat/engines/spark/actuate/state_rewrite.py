"""Has Spark rewrite the state of a query, and keeps the nodes up meanwhile."""

from concurrent.futures import Future, wait
from dataclasses import dataclass
from threading import Thread

from rheostat.control.ports import Clock
from rheostat.engines.spark.actuate.ordering import order
from rheostat.engines.spark.actuate.truths import Size, Truths
from rheostat.engines.spark.actuate.waiting import POLL_SECONDS
from rheostat.engines.spark.observe.monitor import Monitor
from rheostat.engines.spark.protocol import Channel, Rescale, Rescaled
from rheostat.model.errors import RheostatError

RESCALE_SECONDS = 600.0


@dataclass(frozen=True)
class StateRewrite:
    """One rewrite; without executors it would wait for ever, so lost nodes are replaced while it runs."""

    channel: Channel
    monitor: Monitor
    truths: Truths
    clock: Clock

    def run(self, request: Rescale) -> Rescaled:
        """Ask for it and wait, without the clock, which lets others poll: one request can be open."""
        wanted, added = self.truths.observed, list[str]()
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
                if name in self.truths.names:
                    self.truths.provider.settle(name)

    def _ask(self, request: Rescale, answer: "Future[Rescaled]") -> None:
        try:
            answer.set_result(self.channel.ask(request, RESCALE_SECONDS))
        except Exception as error:
            answer.set_exception(error)

    def _replace_nodes(self, wanted: Size) -> tuple[str, ...]:
        """Replace nodes that were lost; their executors come by themselves."""
        provider = self.truths.provider
        if not provider.owned:
            return ()
        lost = provider.refresh(())
        missing = self.truths.lacking(wanted)
        if not missing:
            return ()
        try:
            added = order(provider, missing)
        except RheostatError as error:
            self.monitor.note(self.clock.now(), "node", f"{len(missing)} missing: {error}; retrying")
            return ()
        words = f"{', '.join(lost) or 'a node'} ended by itself, {', '.join(added)} replaced it"
        self.monitor.note(self.clock.now(), "node", words)
        return added
