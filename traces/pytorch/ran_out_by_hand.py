#!/usr/bin/env python3
"""Writes a CUDA memory snapshot by hand, in the format of torch.cuda.memory._dump_snapshot, of a step that ran out.

A small training program on a GPU of 8 GiB: weights and Adam's states, the activations of twelve layers, a buffer that is
made once, given back and used again in part, and logits that no longer fit. No GPU was there: sizes and places are chosen,
addresses and segments follow PyTorch's rules for requests of 10 MiB and more (a segment each, in multiples of 2 MiB).

Usage: ran_out_by_hand.py FILE
"""
import pickle
import sys

MIB = 1 << 20
GPU_FREE = 900 * MIB
LIBRARY = [("/usr/lib/python3/dist-packages/torch/nn/modules/linear.py", 116, "forward"),
           ("/usr/lib/python3/dist-packages/torch/nn/modules/module.py", 1511, "_wrapped_call_impl")]
MAIN = ("train.py", 88, "main")


class Recorder:
    """Segments by address, blocks in them in order, and the history."""

    def __init__(self):
        self.next_address = 0x7F0000000000
        self.time = 1_700_000_000_000_000
        self.segments, self.history, self.frames = [], [], {}

    def stack(self, *places):
        """Innermost first, as PyTorch has it; stacks that are alike are one list, as in a recorded file."""
        if places not in self.frames:
            self.frames[places] = [{"filename": file, "line": line, "name": name} for file, line, name in places]
        return self.frames[places]

    def event(self, action, address, size, frames):
        self.time += 10
        key = "device_free" if action == "oom" else "addr"
        self.history.append({"action": action, key: address, "size": size, "stream": 0, "time_us": self.time,
                             "frames": frames})

    def allocate(self, size, *places):
        frames = self.stack(*places)
        for segment in self.segments:
            for block in segment["blocks"]:
                if block["state"] == "inactive" and block["size"] >= size:
                    if block["size"] > size:
                        rest = dict(block, address=block["address"] + size, size=block["size"] - size)
                        segment["blocks"].insert(segment["blocks"].index(block) + 1, rest)
                    block.update(size=size, requested_size=size, state="active_allocated", frames=frames)
                    self.event("alloc", block["address"], size, frames)
                    return block
        total = (size + 2 * MIB - 1) // (2 * MIB) * (2 * MIB)
        block = {"address": self.next_address, "size": size, "requested_size": size, "state": "active_allocated",
                 "frames": frames}
        blocks = [block]
        if total > size:
            blocks.append({"address": self.next_address + size, "size": total - size, "requested_size": 0,
                           "state": "inactive", "frames": []})
        self.segments.append({"address": self.next_address, "total_size": total, "stream": 0, "device": 0,
                              "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False,
                              "frames": frames, "blocks": blocks})
        self.event("segment_alloc", self.next_address, total, frames)
        self.event("alloc", self.next_address, size, frames)
        self.next_address += total
        return block

    def free(self, block, *places):
        frames = self.stack(*places)
        self.event("free_requested", block["address"], block["size"], frames)
        self.event("free_completed", block["address"], block["size"], frames)
        block.update(state="inactive", requested_size=0, frames=[])

    def snapshot(self):
        for segment in self.segments:
            active = [b for b in segment["blocks"] if b["state"] == "active_allocated"]
            segment["allocated_size"] = segment["active_size"] = sum(b["size"] for b in active)
            segment["requested_size"] = sum(b["requested_size"] for b in active)
        return {"segments": self.segments, "device_traces": [self.history], "external_annotations": [],
                "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1,
                                       "expandable_segments": False}}


def record():
    recorder = Recorder()
    for layer in range(12):
        recorder.allocate(96 * MIB, ("model.py", 14, "__init__"), ("train.py", 61, "build"), MAIN)
    for layer in range(12):
        recorder.allocate(192 * MIB, ("/usr/lib/python3/dist-packages/torch/optim/adam.py", 132, "_init_group"),
                          ("train.py", 64, "build"), MAIN)
    for layer in range(12):
        forward = (("model.py", 22, "forward"), *LIBRARY, ("train.py", 77, "step"), MAIN)
        recorder.allocate(128 * MIB, *LIBRARY[:1], *forward)
        recorder.allocate(56 * MIB, ("model.py", 25, "forward"), *LIBRARY, ("train.py", 77, "step"), MAIN)
    scratch = recorder.allocate(640 * MIB, ("data.py", 27, "pack"), ("train.py", 77, "step"), MAIN)
    recorder.free(scratch, ("data.py", 31, "pack"), ("train.py", 77, "step"), MAIN)
    recorder.allocate(440 * MIB, ("data.py", 44, "mask"), ("train.py", 77, "step"), MAIN)
    recorder.event("oom", GPU_FREE, 1024 * MIB,
                   recorder.stack(("loss.py", 9, "cross_entropy"), ("train.py", 78, "step"), MAIN))
    return recorder.snapshot()


def main(path):
    with open(path, "wb") as file:
        pickle.dump(record(), file, protocol=4)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
