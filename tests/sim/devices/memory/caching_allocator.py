"""PyTorch's CUDA caching allocator, written a second time: from c10/cuda/CUDACachingAllocator.cpp's behaviour, for
comparison with sim/devices/memory/torch_*.cc, with which it shares nothing but the source it follows.

Covers the default allocator, expandable segments, max_split_size_mb, roundup_power2_divisions (one number),
garbage_collection_threshold with a memory fraction, several streams, blocks other streams still use, and a device that
runs out. Starts cold; addresses count up and are never given twice.
"""
from bisect import bisect_left, insort

MIB = 1 << 20
MIN_BLOCK, SMALL_LIMIT, SMALL_SEGMENT, LARGE_SEGMENT = 512, MIB, 2 * MIB, 20 * MIB
DIRECT_FROM, DIRECT_STEP = 10 * MIB, 2 * MIB
UNLIMITED = 1 << 62


def round_up(size, step):
    return -(-size // step) * step


class Stat:
    def __init__(self):
        self.current = self.peak = self.allocated = self.freed = 0

    def add(self, amount):
        self.current += amount
        self.peak = max(self.peak, self.current)
        if amount > 0:
            self.allocated += amount
        else:
            self.freed -= amount


POOL_STATS = ('allocation', 'allocated_bytes', 'active', 'active_bytes', 'requested_bytes', 'segment', 'reserved_bytes',
              'inactive_split', 'inactive_split_bytes')


class Block:
    def __init__(self, pool, stream, address, size, base=None):
        self.pool, self.stream, self.address, self.size = pool, stream, address, size
        self.base = base  # of the expandable segment it lies in
        self.prev = self.next = None
        self.allocated = self.in_use_elsewhere = False
        self.mapped = True
        self.requested = 0
        self.born = 0  # searches of its pool when it became free

    def key(self):
        return (self.stream, self.size, self.address)

    def is_split(self):
        return self.prev is not None or self.next is not None

    def is_idle(self):
        return not self.allocated and not self.in_use_elsewhere

    def cut(self, size):
        """Keeps the first `size` bytes; returns the rest, linked behind."""
        rest = Block(self.pool, self.stream, self.address + size, self.size - size, self.base)
        rest.mapped = self.mapped
        rest.prev, rest.next = self, self.next
        if self.next:
            self.next.prev = rest
        self.next, self.size = rest, size
        return rest


class Pool:
    def __init__(self, name):
        self.name = name
        self.is_small = name == 'small_pool'
        self.page = SMALL_SEGMENT if self.is_small else LARGE_SEGMENT
        self.keys, self.blocks = [], {}  # free: sorted keys, block by key
        self.unmapped = []               # sorted (stream, address, block)
        self.searches = 0

    def insert(self, block):
        block.born = self.searches
        insort(self.keys, block.key())
        self.blocks[block.key()] = block

    def erase(self, block):
        del self.keys[bisect_left(self.keys, block.key())]
        del self.blocks[block.key()]

    def insert_unmapped(self, block):
        insort(self.unmapped, (block.stream, block.address, block), key=lambda row: row[:2])

    def erase_unmapped(self, block):
        self.unmapped = [row for row in self.unmapped if row[2] is not block]


class CachingAllocator:
    def __init__(self, expandable=False, max_split=UNLIMITED, divisions=0, gc_threshold=0.0, fraction=1.0,
                 memory=UNLIMITED):
        self.expandable, self.max_split, self.divisions = expandable, max_split, divisions
        self.memory = memory
        self.allowed = int(fraction * memory) if fraction < 1 and memory < UNLIMITED else UNLIMITED
        self.gc_threshold = gc_threshold if fraction < 1 else 0.0
        self.small, self.large = Pool('small_pool'), Pool('large_pool')
        self.next_address = 1 << 50
        self.waiting = []  # freed, but another stream has yet to finish with them
        self.reserved = 0
        self.pool_stats = {pool: {name: Stat() for name in POOL_STATS} for pool in ('all', 'small_pool', 'large_pool')}
        self.oversize = {'oversize_allocations': Stat(), 'oversize_segments': Stat()}
        self.counts = dict.fromkeys(('num_alloc_retries', 'num_ooms', 'num_sync_all_streams', 'num_device_alloc',
                                     'num_device_free'), 0)

    def count(self, pool, **changes):
        for where in ('all', pool.name):
            for name, amount in changes.items():
                self.pool_stats[where][name].add(amount)

    def statistics(self):
        """Under torch.cuda.memory_stats()'s names."""
        stats = dict(self.counts)
        named = {f'{name}.{pool}': stat for pool, row in self.pool_stats.items() for name, stat in row.items()}
        for name, stat in {**named, **self.oversize}.items():
            stats.update({f'{name}.{part}': getattr(stat, part) for part in ('current', 'peak', 'allocated', 'freed')})
        return stats

    # allocate

    def round(self, size):
        if size < MIN_BLOCK:
            return MIN_BLOCK
        if self.divisions > 1 and size > MIN_BLOCK * self.divisions:
            floor = 1 << (size.bit_length() - 1)
            return size if size == floor else round_up(size, floor // self.divisions)
        return round_up(size, MIN_BLOCK)

    def malloc(self, requested, stream):
        """A block, or nothing when memory is out."""
        size = self.round(requested)
        pool = self.small if size <= SMALL_LIMIT else self.large
        block = self.search(pool, size, stream) or self.miss(pool, size, stream)
        if block is None:
            self.counts['num_ooms'] += 1
            return None
        was_split, rest = block.is_split(), block.size - size
        splits = rest >= MIN_BLOCK if pool.is_small or self.expandable else size < self.max_split and rest > SMALL_LIMIT
        if splits:
            pool.insert(block.cut(size))
        if block.base is None:
            if splits and was_split:
                self.count(pool, inactive_split_bytes=-size)
            elif splits:
                self.count(pool, inactive_split_bytes=rest, inactive_split=1)
            elif was_split:
                self.count(pool, inactive_split_bytes=-block.size, inactive_split=-1)
        block.allocated, block.requested = True, requested
        self.count(pool, allocation=1, allocated_bytes=block.size, active=1, active_bytes=block.size,
                   requested_bytes=requested)
        if block.size >= self.max_split:
            self.oversize['oversize_allocations'].add(1)
        return block

    def search(self, pool, size, stream):
        if self.gc_threshold > 0:
            pool.searches += 1
        at = bisect_left(pool.keys, (stream, size, 0))

        def found(i):
            return pool.blocks[pool.keys[i]] if i < len(pool.keys) and pool.keys[i][0] == stream else None

        def reach(block):
            return block.size + (block.next.size if block.next and not block.next.mapped else 0)

        best = found(at)
        if best is None:
            return None
        if self.expandable:  # a block that can grow counts as large as it can become
            while best.base is not None and found(at + 1) and reach(found(at + 1)) < reach(best):
                at += 1
                best = found(at)
        if size < self.max_split <= best.size:
            return None
        if size >= self.max_split and best.size >= size + 20 * MIB:
            return None
        pool.erase(best)
        return best

    def miss(self, pool, size, stream):
        if self.gc_threshold > 0:
            self.collect_garbage()
        block = self.from_driver(pool, size, stream)
        if block is None and self.release_oversize(pool, size, stream):
            block = self.from_driver(pool, size, stream)
        if block is None:
            self.release_cached()
            self.counts['num_alloc_retries'] += 1
            block = self.from_driver(pool, size, stream)
        return block

    def from_driver(self, pool, size, stream):
        if size <= SMALL_LIMIT:
            segment = SMALL_SEGMENT
        else:
            segment = LARGE_SEGMENT if size < DIRECT_FROM else round_up(size, DIRECT_STEP)
        if self.reserved + segment > self.allowed:
            return None
        if self.expandable:
            return self.from_pages(pool, size, stream)
        if self.reserved + segment > self.memory:
            return None
        block = Block(pool, stream, self.take_addresses(segment), segment)
        self.reserved += segment
        self.count(pool, segment=1, reserved_bytes=segment)
        self.counts['num_device_alloc'] += 1
        if segment >= self.max_split:
            self.oversize['oversize_segments'].add(1)
        return block

    def take_addresses(self, size):
        self.next_address += round_up(size, DIRECT_STEP)
        return self.next_address - round_up(size, DIRECT_STEP)

    # free

    def free(self, block, done=True):
        """`done`: no other stream is still at work on it; else finish() follows."""
        self.count(block.pool, allocation=-1, allocated_bytes=-block.size)
        if block.size >= self.max_split:
            self.oversize['oversize_allocations'].add(-1)
        block.allocated = False
        if done:
            self.make_reusable(block)
        else:
            block.in_use_elsewhere = True
            self.waiting.append(block)

    def finish(self, block):
        if block in self.waiting:
            self.waiting.remove(block)
            block.in_use_elsewhere = False
            self.make_reusable(block)

    def make_reusable(self, block):
        pool, freed, requested = block.pool, block.size, block.requested
        blocks = size = 0
        for neighbour in (block.prev, block.next):
            taken = self.merge(block, neighbour)
            blocks -= taken > 0
            size -= taken
        pool.insert(block)
        if block.is_split():
            blocks += 1
            size += block.size
        if block.base is None:
            self.count(pool, inactive_split=blocks, inactive_split_bytes=size)
        self.count(pool, active=-1, active_bytes=-freed, requested_bytes=-requested)

    def merge(self, block, other):
        """Takes an idle neighbour in, if it is mapped as the block is. Returns its size."""
        if other is None or not other.is_idle() or other.mapped != block.mapped:
            return 0
        (other.pool.erase if other.mapped else other.pool.erase_unmapped)(other)
        if other is block.prev:
            block.address, block.prev = other.address, other.prev
            if block.prev:
                block.prev.next = block
        else:
            block.next = other.next
            if block.next:
                block.next.prev = block
        block.size += other.size
        return other.size

    # give back

    def release(self, block):
        block.pool.erase(block)
        self.reserved -= block.size
        self.count(block.pool, segment=-1, reserved_bytes=-block.size)
        self.counts['num_device_free'] += 1
        if block.size >= self.max_split:
            self.oversize['oversize_segments'].add(-1)

    def release_oversize(self, pool, size, stream):
        if self.max_split == UNLIMITED:
            return False
        wanted = max(size, self.max_split)
        at = bisect_left(pool.keys, (stream, wanted, 0))
        if at < len(pool.keys) and pool.keys[at][0] == stream and pool.blocks[pool.keys[at]].base is None:
            self.release(pool.blocks[pool.keys[at]])
            return True
        released = 0
        for key in reversed(pool.keys[:at]):
            if released >= wanted or key[0] != stream or key[1] < self.max_split:
                break
            if pool.blocks[key].base is None:
                self.release(pool.blocks[key])
                released += key[1]
        return released >= wanted

    def release_cached(self):
        self.counts['num_sync_all_streams'] += 1
        while self.waiting:
            self.finish(self.waiting[0])
        for pool in (self.large, self.small):
            cached = [pool.blocks[key] for key in pool.keys]
            for block in cached:
                if block.base is None and not block.is_split():
                    self.release(block)
            for block in cached:
                if block.base is not None:
                    self.unmap(block)

    def collect_garbage(self):
        threshold = int(self.gc_threshold * self.allowed)
        if self.reserved <= threshold:
            return
        target, reclaimed = self.reserved - threshold, 0
        age = lambda block: self.large.searches - block.born
        while reclaimed < target:
            blocks = [block for block in map(self.large.blocks.get, self.large.keys)
                      if not block.is_split() and block.base is None]
            old = [block for block in blocks if age(block) * len(blocks) >= sum(map(age, blocks))]
            if not old:
                return
            for block in old:
                reclaimed += block.size
                self.release(block)

    # expandable segments

    def from_pages(self, pool, size, stream):
        block = self.find_addresses(pool, size, stream)
        if not block.mapped:
            block = self.map(block, min(block.size, size))
        while block is not None and block.size < size:
            block = self.map(block.next, min(size - block.size, block.next.size))
        if block is not None:
            pool.erase(block)
        return block

    def find_addresses(self, pool, size, stream):
        """The lowest run of idle blocks, mapped or not, with an unmapped one among the first two."""
        for owner, _, block in pool.unmapped:
            if owner != stream:
                continue
            first = block.prev if block.prev and block.prev.is_idle() else block
            room, at = 0, first
            while at and at.is_idle() and room < size:
                room += at.size
                at = at.next
            if room >= size:
                return first
        memory = min(self.memory, 512 << 30)
        span = max(round_up(memory + memory // 8, pool.page), round_up(size, pool.page))
        base = self.take_addresses(span)
        block = Block(pool, stream, base, span, base)
        block.mapped = False
        pool.insert_unmapped(block)
        return block

    def map(self, block, size):
        pool = block.pool
        size = min(round_up(size, pool.page), block.size)
        if self.reserved + size > self.memory:
            return None
        pool.erase_unmapped(block)
        if size < block.size:
            pool.insert_unmapped(block.cut(size))
        block.mapped = True
        for neighbour in (block.prev, block.next):
            self.merge(block, neighbour)
        pool.insert(block)
        self.reserved += size
        self.count(pool, reserved_bytes=size)
        self.counts['num_device_alloc'] += 1
        return block

    def unmap(self, block):
        pool, page = block.pool, block.pool.page
        begin = round_up(block.address - block.base, page)
        end = (block.address - block.base + block.size) // page * page
        if begin >= end:
            return
        pool.erase(block)
        if block.base + begin > block.address:
            before, block = block, block.cut(block.base + begin - block.address)
            pool.insert(before)
        if end - begin < block.size:
            pool.insert(block.cut(end - begin))
        block.mapped = False
        for neighbour in (block.prev, block.next):
            self.merge(block, neighbour)
        if block.is_split():
            pool.insert_unmapped(block)
        self.reserved -= end - begin
        self.count(pool, reserved_bytes=begin - end)
        self.counts['num_device_free'] += 1
