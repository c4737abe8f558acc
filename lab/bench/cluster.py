# SPDX-License-Identifier: GPL-2.0
"""Where tasks run: one after the other here, or side by side on a cluster of dask.distributed."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import logging
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import dask
import distributed
from distributed.comm.core import connect
from tornado.ioloop import IOLoop

from lab.bench import boot_task
from lab.bench.boot_task import Runner, Task
from lab.machine.hardware import QEMU_MIB
from lab.util import host
from lab.util.errors import LabError

ANSWER_S = 5
# A task whose worker dies is tried again so often; a guest that kills its workers is not tried for ever.
RETRIES = 3
# What dask raises without its scheduler: no connection, what was to run is cancelled, nothing can be sent.
_LOST = (OSError, CancelledError, distributed.client.ClosedClientError)

Job = TypeVar("Job")
Result = TypeVar("Result")


class Crew(Protocol):
    """Runs tasks."""

    @property
    def size(self) -> int:
        """How many tasks run side by side."""

    def run(self, tasks: Sequence[Task], go_on: Callable[[], bool] | None = None) -> Generator[Task]:
        """Run tasks; return each when it is done, in no certain order. To close it ends what still runs.

        Args:
            tasks: what to run, in the order in which they begin.
            go_on: asked whether another one may begin after the first; what runs then is not cut off. None:
                all of them are to be run.
        """


@dataclass(frozen=True)
class InTurn:
    """Runs tasks one after the other, in this process: for guests that are timed by the host."""

    runner: Runner
    size: int = 1

    def run(self, tasks: Sequence[Task], go_on: Callable[[], bool] | None = None) -> Generator[Task]:
        """Run tasks in their order."""
        for number, task in enumerate(tasks):
            if number and go_on is not None and not go_on():
                return
            yield boot_task.run(task, self.runner)


@dataclass(frozen=True)
class SideBySide:
    """Runs tasks on the workers of a cluster.

    Attributes:
        client: a connection to it.
        size: how many workers it has.
        runner: boots a guest.
        scheduler: address of its scheduler, where its workers live on when we end; None: they are ours.
    """

    client: distributed.Client
    size: int
    runner: Runner
    scheduler: str | None = None

    def run(self, tasks: Sequence[Task], go_on: Callable[[], bool] | None = None) -> Generator[Task]:
        """Run tasks; a worker that dies costs what it was running, which is run again."""
        most_mib = max((task.mem_mib for task in tasks), default=0)
        yield from self.each(
            functools.partial(boot_task.run, runner=self.runner), tasks, go_on, mem_mib=most_mib
        )

    def each(
        self,
        work: Callable[[Job], Result],
        jobs: Sequence[Job],
        go_on: Callable[[], bool] | None = None,
        *,
        mem_mib: int,
    ) -> Generator[Result]:
        """Have each job done by some worker; return what comes of it, in no certain order.

        Args:
            work: boots the guest of a job; it and the jobs go to other processes.
            jobs: in the order in which they begin.
            go_on: as for run.
            mem_mib: the memory of a guest.

        Raises:
            LabError: several workers died on one job, or the scheduler was lost.
        """
        waiting = iter(jobs)
        # All at once where nothing may stop them, so that workers which come later have their share.
        begun = list(itertools.islice(waiting, None if go_on is None else self.size))
        # Not pure: a job that is submitted again after its result is gone is a new one.
        futures = self._submit(work, begun)
        done = distributed.as_completed(futures)
        try:
            for future in done:
                ended: Result = self._result(future, mem_mib)
                # What is still wanted is run again when the worker that has it dies.
                future.release()
                yield ended
                may_begin = go_on is None or go_on()
                more = self._submit(work, list(itertools.islice(waiting, 1 if may_begin else 0)))
                futures += more
                done.update(more)
        finally:
            # Without its scheduler there is nobody to ask.
            with contextlib.suppress(*_LOST):
                self.client.cancel(futures, force=True)
                if self.scheduler is not None and self.client.status == "running":
                    self._end({future.key for future in futures})

    def _submit(self, work: Callable[[Job], Result], jobs: list[Job]) -> list[distributed.Future[Any]]:
        # While it is on its way out, a client takes jobs of which nothing is ever heard.
        if self.client.status != "running":
            raise self._lost()
        futures: list[distributed.Future[Any]] = self.client.map(work, jobs, pure=False)
        return futures

    def _result(self, future: distributed.Future[Any], mem_mib: int) -> Any:
        try:
            return future.result()
        except distributed.scheduler.KilledWorker as error:
            raise LabError(
                f"{RETRIES} workers died on one boot; expected room for {mem_mib} MiB each: "
                "see what the kernel's log says of them (dmesg)"
            ) from error
        except _LOST as error:
            # The job's own error may be one of these, too.
            if future.status == "error":
                raise
            raise self._lost() from error

    def _lost(self) -> LabError:
        return LabError(
            f"scheduler {self.scheduler or 'of this machine'} was lost or restarted while guests ran: "
            "expected it to be there until they end; start it and its workers again, and then this command"
        )

    def _end(self, keys: set[object]) -> None:
        """End what workers still execute of ours: to cancel stops nothing that has begun."""
        runs = self.client.run(_executes, keys)
        if busy := [worker for worker, is_ours in runs.items() if is_ours]:
            self.client.restart_workers(busy, raise_for_error=False)


def places(mem_mib: int, boots: int) -> int:
    """Return how many guests this machine has room for at once: by its cores, and by its memory."""
    cores = len(os.sched_getaffinity(0))
    room = host.available_memory_bytes() // ((mem_mib + QEMU_MIB) << 20)
    return max(1, min(cores, room, boots))


@functools.cache
def _event_loop() -> IOLoop:
    """Return an event loop in a thread of its own, for as long as we live.

    Dask gives up one that does not run within 10 s, as may be on a busy host.
    """
    ready: Future[IOLoop] = Future()

    async def run() -> None:
        ready.set_result(IOLoop.current())
        await asyncio.Event().wait()

    threading.Thread(target=asyncio.run, args=(run(),), name="dask", daemon=True).start()
    return ready.result()


@contextmanager
def local(count: int, runner: Runner, *, own_cores: bool = True) -> Iterator[SideBySide]:
    """Hold a cluster of this machine.

    Whatever ends the context ends the workers at once, and with them their guests.

    Args:
        count: workers.
        runner: boots a guest.
        own_cores: whether each worker, and the guests that it starts, keep to cores of their own.
    """
    _quiet()
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(
            distributed.LocalCluster(
                loop=_event_loop(),
                n_workers=count,
                threads_per_worker=1,
                processes=True,
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL + 1,
                # A guest's memory is no memory of the worker.
                memory_limit=0,
            )
        )
        client = stack.enter_context(distributed.Client(cluster))
        stack.callback(_kill, cluster)
        if own_cores:
            client.register_plugin(_OwnCores(sorted(os.sched_getaffinity(0)), count))
        yield SideBySide(client, count, runner)


@contextmanager
def existing(address: str, needed: Sequence[Path], runner: Runner) -> Iterator[SideBySide]:
    """Hold a connection to a cluster that is there already, whose workers share this machine's files.

    Args:
        address: of its scheduler, such as ``tcp://host:8786``.
        needed: files that every worker has to see.
        runner: boots a guest.

    Raises:
        LabError: it does not answer, has no workers, or they do not see the files.
    """
    _quiet()
    with _connected(address) as client:
        try:
            seen = client.run(_sees, [str(path) for path in needed])
        except _LOST as error:
            raise _no_answer(address) from error
        if not seen:
            raise LabError(
                f"scheduler {address} has no workers: start some, each with: ./pwb python -m "
                f"distributed.cli.dask_worker {address} --nthreads 1 --memory-limit 0"
            )
        for worker, missing in seen.items():
            if missing:
                raise LabError(
                    f"worker {worker} of {address} does not see {missing}: expected this machine's files, "
                    "the cache and the clone at the same places"
                )
        yield SideBySide(client, len(seen), runner, address)


def _connected(address: str) -> distributed.Client:
    try:
        asyncio.run(asyncio.wait_for(_greet(address), ANSWER_S))
        return distributed.Client(address, timeout=ANSWER_S)
    # What is there need not be of dask, and then anything may come of what it says, a MemoryError also.
    except Exception as error:
        raise _no_answer(address) from error


async def _greet(address: str) -> None:
    """See whether somebody answers; a client waits for ever for one who takes its call and says nothing."""
    (await connect(address, timeout=ANSWER_S)).abort()


def _no_answer(address: str) -> LabError:
    return LabError(
        f"scheduler {address} does not answer within {ANSWER_S} s: expected the address of a running "
        "dask scheduler, such as tcp://host:8786; without --scheduler guests run on this machine"
    )


def _executes(keys: set[object], dask_worker: distributed.Worker) -> bool:
    """Say whether a worker, which dask names, executes one of these tasks."""
    return not keys.isdisjoint(dask_worker.active_threads.values())


def _sees(paths: list[str]) -> str | None:
    """Return the first of the paths that is not there."""
    return next((path for path in paths if not Path(path).exists()), None)


class _OwnCores(distributed.WorkerPlugin):
    """Gives each worker of a local cluster cores of its own, and with it the guests that it starts."""

    def __init__(self, cores: list[int], count: int) -> None:
        self.cores = cores
        self.count = count

    def setup(self, worker: Any) -> None:
        """Keep the worker's threads, and what they start, on its cores."""
        own = self.cores[int(worker.name) :: self.count] or self.cores
        for thread in os.listdir("/proc/self/task"):
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread), own)


def _kill(cluster: distributed.LocalCluster) -> None:
    """Kill all workers; a guest ends with the worker that started it."""
    for nanny in cluster.workers.values():
        nanny.auto_restart = False
        if nanny.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(nanny.pid, signal.SIGKILL)


def _quiet() -> None:
    """Let dask say nothing, for what goes wrong is said by an exception, and do nothing while guests run."""
    dask.config.set(
        {
            "distributed.scheduler.allowed-failures": RETRIES - 1,
            # Its watching of itself takes a twentieth of a core in each process.
            "distributed.worker.profile.enabled": False,
            "distributed.admin.tick.interval": "1s",
            "distributed.admin.system-monitor.interval": "10s",
        }
    )
    # Dask gives its client a level of its own.
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def hand_over(
    work: Callable[[Job], Result],
    jobs: Sequence[Job],
    take: Callable[[Result], None],
    go_on: Callable[[], bool] | None = None,
    *,
    mem_mib: int,
    runner: Runner,
    crew: SideBySide | None,
    own_cores: bool = True,
) -> None:
    """Have jobs done side by side, and hand over what comes of each as soon as it is known.

    Args:
        work: as for :meth:`SideBySide.each`, like the jobs and the memory.
        jobs: at least one.
        take: is given each result; what it raises ends all guests.
        go_on: as for :meth:`SideBySide.each`.
        mem_mib: the memory of a guest.
        runner: as for :func:`local`.
        crew: does the jobs; None: this machine, as many at once as it has room for.
        own_cores: as for local.

    Raises:
        LabError: as for each.
    """
    with contextlib.ExitStack() as stack:
        workers = crew or stack.enter_context(local(places(mem_mib, len(jobs)), runner, own_cores=own_cores))
        for result in stack.enter_context(
            contextlib.closing(workers.each(work, jobs, go_on, mem_mib=mem_mib))
        ):
            take(result)
