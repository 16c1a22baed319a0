"""A sweep in shards over an executor of concurrent.futures, or anything with the same submit()."""
import concurrent.futures
import os
import tempfile

from .errors import InputError, SpillwayError
from .program import call


def run_shard(program, path, number, shards, store, jobs, tried):  # pylint: disable=unused-argument
    """One shard into its store, from where it was: what an executor's worker does. Returns the store's path. `tried`
    makes a second try another call, as executors that keep results by their arguments would hand the first one back."""
    call("sweep", path, "--quiet", "--resume", "--jobs", str(jobs), "--shard", f"{number}/{shards}", "--output", store,
         "--format", "json", program=program)
    return store


def run_shards(executor, program, path, shards, stores, jobs, tries):
    """All shards through executor.submit(run_shard, ...); one that ends badly is given again, and goes on where its
    store ends. Returns the stores in order. Raises what the last try of a shard raised; bad input is not tried again."""
    if shards < 1 or tries < 1:
        raise InputError("a sweep has one shard at least, and one try; give shards=1, tries=1 or more")
    names = [os.path.join(stores, f"{number}.store") for number in range(shards)]

    def submit(number, tried):
        return executor.submit(run_shard, program, path, number, shards, names[number], jobs, tried)

    waiting = {number: (submit(number, 1), 1) for number in range(shards)}
    while waiting:
        for number, (future, tried) in list(waiting.items()):
            try:
                future.result()
            except InputError:
                raise
            except concurrent.futures.CancelledError:
                raise
            except (SpillwayError, OSError, RuntimeError) as error:
                # A pool whose worker was killed takes no more work: that is its owner's to mend.
                broken = isinstance(error, concurrent.futures.BrokenExecutor)
                if broken or tried >= tries:
                    raise
                waiting[number] = (submit(number, tried + 1), tried + 1)
                continue
            del waiting[number]
    return names


def folder_of(stores):
    """A context that gives the stores' folder: the caller's, kept, or one that goes when it is left."""
    if stores is None:
        return tempfile.TemporaryDirectory(prefix="spillway-")
    os.makedirs(stores, exist_ok=True)
    return _Kept(os.fspath(stores))


class _Kept:
    def __init__(self, path):
        self.path = path

    def __enter__(self):
        return self.path

    def __exit__(self, *_):
        return None
