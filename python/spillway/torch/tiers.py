"""Where tensors are while they are away: host memory or files, written and read in the background.

A storage is away from `put` until `get`; it is stored once, whoever saves it. Its device memory is given back when it
has been written and the forward holds it no longer. Asked for while it is still being written, it never left
(forwarding, as SSDTrain has it: arXiv 2408.10013, section IV).
"""
import ctypes
import os
import shutil
import tempfile
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import torch

from ..errors import InputError, SpillwayError
from .storages import StorageKey, as_bytes, shape_of, view_like

HOST, DISK = "host", "disk"
AT_ONCE = 1 << 27  # bytes of one read or write call


def _row(flat):
    """The memory of a row of bytes on the CPU, without a copy."""
    return memoryview((ctypes.c_char * flat.numel()).from_address(flat.data_ptr())).cast("B")


class Statistics:
    """Counts of what was done; bytes are of storages."""

    def __init__(self):
        self.lock = threading.RLock()  # a collected graph may count from within
        self.counts = {"stored_bytes": 0, "loaded_bytes": 0, "forwarded_bytes": 0, "stores": 0, "loads": 0,
                       "store_wait_seconds": 0.0, "load_wait_seconds": 0.0, "away_peak_bytes": 0, "away_bytes": 0,
                       "kept_small_bytes": 0, "not_dropped_bytes": 0, "recomputed_tensors": 0, "recomputations": 0}

    def add(self, **amounts):
        with self.lock:
            for name, amount in amounts.items():
                self.counts[name] += amount
            self.counts["away_peak_bytes"] = max(self.counts["away_peak_bytes"], self.counts["away_bytes"])

    def snapshot(self):
        with self.lock:
            counts = dict(self.counts)
        counts["waiting_seconds"] = counts["store_wait_seconds"] + counts["load_wait_seconds"]
        return counts


class Pass:
    """One forward of one layer: what it sent away, and the layer before it."""

    def __init__(self, before):
        self.before = weakref.ref(before) if before is not None else lambda: None
        self.entries = []  # weak references, in the order in which they were saved
        self.has_begun_backward = False


class Remains:
    """What is left of an entry when nothing holds it any more."""

    def __init__(self, size):
        self.bytes, self.path, self.is_away = size, None, False


class Entry:
    """One storage that is or was away. Lives as long as something that saved it.

    It has no __del__: a thread could take it up again by a weak reference while that runs.
    """

    def __init__(self, tensor, key, tier, place, of_pass):
        self.key, self.tier, self.place, self.of_pass = key, tier, place, of_pass
        self.flat = as_bytes(tensor.detach())  # None while away
        self.bytes = self.flat.numel()
        self.device = self.flat.device
        self.host = self.ready = None
        self.remains = Remains(self.bytes)
        self.is_wanted = False  # asked for back before it had left
        self.writing = self.reading = None  # futures
        self.lock = threading.Lock()
        weakref.finalize(self, place.forget, self.remains).atexit = False


class Saved:
    """What autograd holds instead of a tensor: its storage's entry and its place therein."""
    __slots__ = ("entry", "like")

    def __init__(self, entry, tensor):
        self.entry, self.like = entry, shape_of(tensor)


class Place:
    """Both tiers of one model. `folder`: of the disk tier, made there a folder of its own; None: no disk tier."""

    def __init__(self, folder, store_workers, load_workers, in_flight_bytes, prefetched_passes, statistics):
        self.folder = _own_folder(folder) if folder is not None else None
        self.in_flight_limit, self.prefetched = in_flight_bytes, prefetched_passes
        self.statistics = statistics
        self.writers = ThreadPoolExecutor(store_workers, "spillway-store")
        self.readers = ThreadPoolExecutor(load_workers, "spillway-load")
        self.entries = weakref.WeakValueDictionary()  # by StorageKey
        self.living = 0
        self.is_closing = False
        self.error = None
        self.in_flight = self.in_hand = 0  # bytes of stores that have begun; stores that a thread is at
        self.landed = threading.Condition()
        self.numbers = 0
        self.streams = {}  # by device: of stores, of loads
        self.at_exit = weakref.finalize(self, _remove, self.folder) if self.folder else None

    # Stores.

    def put(self, tensor, tier, of_pass):
        """A Saved that stands for the tensor, whose storage begins to leave for `tier`."""
        self.raise_error()
        key = StorageKey(tensor)
        entry = self.entries.get(key)
        if entry is None:
            entry = self._begin_store(tensor, key, tier, of_pass)
        return Saved(entry, tensor)

    def known(self, key):
        return self.entries.get(key)

    def _begin_store(self, tensor, key, tier, of_pass):
        entry = Entry(tensor, key, tier, self, of_pass)
        with self.landed:
            self.living += 1
            self.numbers += 1
            number = self.numbers
        self.entries[key] = entry
        of_pass.entries.append(weakref.ref(entry))
        if tier == DISK:
            entry.remains.path = os.path.join(self.folder, f"{number}.tensor")
        self._wait_for_room(entry.bytes)
        event = self._copy_to_host(entry)
        entry.writing = self.writers.submit(self._store, weakref.ref(entry), event, entry.bytes)
        return entry

    def _wait_for_room(self, size):
        """The host waits while unfinished stores hold more than the limit, unless it is one store alone."""
        begin = time.perf_counter()
        with self.landed:
            self.landed.wait_for(lambda: self.error is not None or self.in_flight_limit == 0 or self.in_flight == 0
                                 or self.in_flight + size <= self.in_flight_limit)
            self.in_flight += size
        self.statistics.add(store_wait_seconds=time.perf_counter() - begin)

    def _side_streams(self, device):
        if device not in self.streams:
            self.streams[device] = (torch.cuda.Stream(device), torch.cuda.Stream(device))
        return self.streams[device]

    def _copy_to_host(self, entry):
        """On a GPU the copy runs on a stream of its own, behind what has been launched so far."""
        if entry.device.type != "cuda":
            return None
        stream, _ = self._side_streams(entry.device)
        entry.host = torch.empty(entry.bytes, dtype=torch.uint8, pin_memory=True)
        stream.wait_stream(torch.cuda.current_stream(entry.device))
        with torch.cuda.stream(stream):
            entry.host.copy_(entry.flat, non_blocking=True)
            event = torch.cuda.Event()
            event.record(stream)
        return event

    def _store(self, reference, event, size):
        with self.landed:
            self.in_hand += 1
        try:
            if event is not None:
                event.synchronize()
            entry = reference()
            if entry is None or self.error is not None:  # the graph went meanwhile, or there is no folder any more
                return
            if event is None and entry.tier == HOST:
                entry.host = entry.flat.clone()
            if entry.tier == DISK:
                _write(entry.remains.path, entry.host if entry.host is not None else entry.flat)
                entry.host = None
            with entry.lock:
                if entry.is_wanted:
                    entry.host = None
                else:
                    entry.flat = None
                    entry.remains.is_away = True
                    self.statistics.add(away_bytes=size)
            self.statistics.add(stored_bytes=size, stores=1)
        except Exception as error:  # nobody waits for a store: the next one to come tells
            self._fail(error)
        finally:
            entry = None  # a graph that went meanwhile has gone when its stores have landed
            with self.landed:
                self.in_hand -= 1
                self.in_flight -= size
                self.landed.notify_all()
                self._remove_if_failed()

    # Loads.

    def get(self, saved):
        """The tensor again; the layers before it in the forward are asked for as well."""
        self.raise_error()
        entry = saved.entry
        self._prefetch(entry.of_pass)
        self._begin_load(entry)
        if entry.reading is not None:
            begin = time.perf_counter()
            entry.reading.result()
            self.statistics.add(load_wait_seconds=time.perf_counter() - begin)
            self.raise_error()
        if entry.ready is not None:
            torch.cuda.current_stream(entry.device).wait_event(entry.ready)
        return view_like(entry.flat, saved.like)

    def _prefetch(self, of_pass):
        if of_pass.has_begun_backward:
            return
        of_pass.has_begun_backward = True
        for _ in range(self.prefetched + 1):
            for reference in reversed(of_pass.entries):
                entry = reference()
                if entry is not None:
                    self._begin_load(entry)
            of_pass = of_pass.before()
            if of_pass is None:
                return

    def _begin_load(self, entry):
        with entry.lock:
            if entry.is_wanted:
                return
            entry.is_wanted = True
            if entry.flat is not None:
                if entry.writing.cancel():
                    with self.landed:
                        self.in_flight -= entry.bytes
                        self.landed.notify_all()
                self.statistics.add(forwarded_bytes=entry.bytes)
                return
            entry.remains.is_away = False
            self.statistics.add(loaded_bytes=entry.bytes, loads=1, away_bytes=-entry.bytes)
            if entry.device.type != "cuda":
                entry.reading = self.readers.submit(self._load, entry)
                return
            # Memory of the stream that will use it; the copy comes behind whoever had it before.
            flat = torch.empty(entry.bytes, dtype=torch.uint8, device=entry.device)
            free = torch.cuda.Event()
            free.record(torch.cuda.current_stream(entry.device))
            if entry.tier == HOST:
                self._copy_back(entry, flat, entry.host, free)
            else:
                entry.reading = self.readers.submit(self._load_to_gpu, entry, flat, free)

    def _load(self, entry):
        try:
            if entry.tier == HOST:
                entry.flat, entry.host = entry.host, None
            else:
                flat = torch.empty(entry.bytes, dtype=torch.uint8)
                _read(entry.remains.path, flat)
                entry.flat = flat
        except OSError as error:
            self._fail(error)

    def _load_to_gpu(self, entry, flat, free):
        try:
            host = torch.empty(entry.bytes, dtype=torch.uint8, pin_memory=True)
            _read(entry.remains.path, host)
            self._copy_back(entry, flat, host, free)
        except OSError as error:
            self._fail(error)

    def _copy_back(self, entry, flat, host, free):
        _, stream = self._side_streams(entry.device)
        with torch.cuda.stream(stream):
            stream.wait_event(free)
            flat.copy_(host, non_blocking=True)
            ready = torch.cuda.Event()
            ready.record(stream)
        flat.record_stream(stream)
        entry.flat, entry.ready, entry.host = flat, ready, None

    # Ends.

    def _fail(self, error):
        with self.landed:
            if self.error is None:
                self.error = SpillwayError(_sentence(error, self.folder))
            self.landed.notify_all()
            self._remove_if_failed()

    def _remove_if_failed(self):
        """A folder can be removed once, when no thread can make a file there any more."""
        if self.error is not None and self.in_hand == 0 and self.at_exit is not None:
            self.at_exit()

    def raise_error(self):
        if self.error is not None:
            raise self.error

    def forget(self, remains):
        if remains.is_away:
            self.statistics.add(away_bytes=-remains.bytes)
        if remains.path is not None:
            try:
                os.unlink(remains.path)
            except OSError:
                pass  # never written, or gone with its folder
        with self.landed:
            self.living -= 1
        if self.is_closing:
            self.close()

    def settle(self):
        """Waits for all stores that have begun."""
        with self.landed:
            self.landed.wait_for(lambda: self.in_flight == 0)

    def close(self):
        """Ends threads and removes the folder when nothing is away any more; until then graphs made before can still
        be run."""
        self.is_closing = True
        if self.living > 0 and self.error is None:
            return
        self.writers.shutdown(wait=False)
        self.readers.shutdown(wait=False)
        if self.error is None and self.at_exit is not None:
            self.at_exit()


def _own_folder(folder):
    folder = os.fspath(folder)
    if not os.path.isdir(folder):
        raise InputError(f"{folder}: there is no such folder for the disk tier; make it, or name another one")
    try:
        return tempfile.mkdtemp(prefix="spillway-", dir=folder)
    except OSError as error:
        raise InputError(f"{folder}: nothing can be written there ({error.strerror}); name another folder") from None


def _remove(folder):
    shutil.rmtree(folder, ignore_errors=True)


def _sentence(error, folder):
    if isinstance(error, OSError) and folder is not None:
        return (f"{folder}: the disk tier failed: {error.strerror or error}; make room there or name another folder, "
                "then run the step again")
    return f"a tensor could not leave the device: {error}"


def _write(path, flat):
    row = _row(flat)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        at = 0
        while at < len(row):
            at += os.write(handle, row[at:at + AT_ONCE])
    finally:
        os.close(handle)


def _read(path, flat):
    row = _row(flat)
    handle = os.open(path, os.O_RDONLY)
    try:
        at = 0
        while at < len(row):
            got = os.readv(handle, [row[at:at + AT_ONCE]])
            if got == 0:
                raise OSError(0, f"{path} has {at} of {len(row)} bytes")
            at += got
    finally:
        os.close(handle)
