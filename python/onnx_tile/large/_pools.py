"""Who runs tasks: processes of this machine, an executor of the caller's, Dask, or this process itself. All of them are asked the same."""
import concurrent.futures
import multiprocessing
import multiprocessing.connection
import os
import threading
from typing import Any, Callable, Iterable, Optional, Set, Tuple, Type

from .._errors import UsageError
from ._packages import need


class Pool:
    """Runs functions of tasks, several at a time."""

    # Exceptions of a task whose worker died: the task can be given to another one.
    lost: Tuple[Type[BaseException], ...] = (concurrent.futures.BrokenExecutor, concurrent.futures.CancelledError)

    def __init__(self, workers: int) -> None:
        """workers: tasks that run at the same time."""
        self.workers = workers

    def share(self, job: Any) -> Any:
        """The job as `submit` takes it."""
        return job

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """A future."""
        raise NotImplementedError

    def first_done(self, futures: Iterable[Any]) -> Set[Any]:
        """Wait until some are done: which ones."""
        return set(concurrent.futures.wait(futures, return_when=concurrent.futures.FIRST_COMPLETED).done)

    def revive(self) -> bool:
        """Workers died: whether there are others now."""
        return False

    def close(self) -> None:
        """End what was begun here."""


class OwnProcess(Pool):
    """This process, one task after the other."""

    def __init__(self) -> None:
        super().__init__(1)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """See Pool."""
        future: "concurrent.futures.Future[Any]" = concurrent.futures.Future()
        try:
            future.set_result(function(*arguments))
        except Exception as why:
            future.set_exception(why)
        return future


def _end_with_parent() -> None:
    """In a worker: do not outlive the process that gives the tasks, even where that one is killed."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def wait() -> None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)
    threading.Thread(target=wait, daemon=True).start()


class Executor(Pool):
    """Any executor of concurrent.futures. make: makes a new one when workers died; None: it is the caller's."""

    def __init__(self, executor: Any, workers: int, make: "Optional[Callable[[], Any]]" = None) -> None:
        """executor: may be None where there is `make`."""
        super().__init__(workers)
        self._make = make
        self._executor = executor if make is None else make()

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """See Pool. What cannot even be submitted is a future that failed."""
        try:
            return self._executor.submit(function, *arguments)
        except concurrent.futures.BrokenExecutor as why:
            future: "concurrent.futures.Future[Any]" = concurrent.futures.Future()
            future.set_exception(why)
            return future

    def revive(self) -> bool:
        """See Pool."""
        if self._make is None:
            return False
        self._executor.shutdown(wait=True, cancel_futures=True)
        self._executor = self._make()
        return True

    def close(self) -> None:
        """See Pool."""
        if self._make is not None:
            self._executor.shutdown(wait=True, cancel_futures=True)


class Dask(Pool):
    """A Client of Dask's distributed scheduler, with its own futures; the job goes to each worker once."""

    def __init__(self, client: Any, retries: int) -> None:
        """retries: of a task whose worker died."""
        self._distributed = need("distributed")
        super().__init__(sum(w["nthreads"] for w in client.scheduler_info(n_workers=-1)["workers"].values()))
        if not self.workers:
            raise UsageError("the scheduler of Dask has no workers")
        self._client, self._retries = client, retries
        self.lost = (self._distributed.scheduler.KilledWorker, concurrent.futures.CancelledError,
                     self._distributed.client.FutureCancelledError)

    def share(self, job: Any) -> Any:
        """See Pool."""
        return self._client.scatter(job, broadcast=True, hash=False)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """See Pool."""
        return self._client.submit(function, *arguments, pure=False, retries=self._retries)

    def first_done(self, futures: Iterable[Any]) -> Set[Any]:
        """See Pool."""
        return set(self._distributed.wait(list(futures), return_when="FIRST_COMPLETED").done)

    def revive(self) -> bool:
        """See Pool: the scheduler has given the task to others already, as often as it does."""
        return True


def processes(workers: int) -> Pool:
    """Processes of this machine that begin with nothing of this one's."""
    context = multiprocessing.get_context("spawn")

    def make() -> Any:
        return concurrent.futures.ProcessPoolExecutor(workers, mp_context=context, initializer=_end_with_parent)
    return Executor(None, workers, make)


def usable_processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0))


def open_pool(executor: Any, workers: Optional[int], retries: int) -> Pool:
    """executor: None, one of concurrent.futures, a function that makes one, or a Client of Dask; workers: how many tasks at a time."""
    if workers is not None and not 0 <= workers <= 4096:
        raise UsageError(f"workers {workers!r}: from 0, this process, to 4096")
    if executor is None:
        count = usable_processors() if workers is None else workers
        return processes(count) if count else OwnProcess()
    if type(executor).__module__.split(".")[0] == "distributed" and hasattr(executor, "scatter"):
        return Dask(executor, retries)
    count = workers or getattr(executor, "_max_workers", None) or usable_processors()
    if hasattr(executor, "submit"):
        return Executor(executor, count)
    if callable(executor):
        return Executor(None, count, executor)
    raise UsageError(f"an executor has submit, or makes one that has: not {type(executor).__name__}")
