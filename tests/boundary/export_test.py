#!/usr/bin/env python3
"""What the program exports, read again by the published formats alone: pickles as PyTorch's viewer takes them, and the
Trace Event Format.

Usage: export_test.py SPILLWAY SOURCE_ROOT [unittest arguments]
"""
import collections
import json
import os
import pickle
import subprocess
import sys
import tempfile
import unittest

PROGRAM, ROOT = os.path.abspath(sys.argv[1]), sys.argv[2]
ROUNDED = 512  # PyTorch's allocator hands out multiples of it


class History:
    """One device of a snapshot, followed as memory_viz does: from the segments back to the beginning, and forward."""

    def __init__(self, snapshot, device):
        self.events = snapshot["device_traces"][device]
        self.segments = {each["address"]: each["total_size"] for each in snapshot["segments"] if each["device"] == device}
        self.blocks = {}
        for segment in snapshot["segments"]:
            if segment["device"] != device:
                continue
            at = segment["address"]
            for block in segment["blocks"]:
                assert block["address"] == at, "blocks tile their segment"
                at += block["size"]
                if block["state"] != "inactive":
                    self.blocks[block["address"]] = block["size"]
            assert at == segment["address"] + segment["total_size"], "blocks tile their segment"

    def rewind(self):
        segments, blocks = dict(self.segments), dict(self.blocks)
        for event in reversed(self.events):
            action, address, size = event["action"], event.get("addr"), event["size"]
            if action == "alloc":
                del blocks[address]
            elif action == "free_completed":
                assert address not in blocks, "a block is freed once"
                blocks[address] = size
            elif action == "segment_alloc":
                assert segments.pop(address) == size
            elif action == "segment_free":
                segments[address] = size
            elif action == "segment_map":
                begin = max(each for each in segments if each <= address)
                assert begin + segments[begin] == address + size, "mapped at the end"
                segments[begin] -= size
                if segments[begin] == 0:
                    del segments[begin]
        return segments, blocks

    def peaks(self):
        """Most bytes of live blocks as asked for, and of segments; every block lies in a segment, and no two overlap."""
        segments, blocks = self.rewind()
        before = len(blocks)
        live, reserved = sum(blocks.values()), sum(segments.values())
        most_live, most_reserved = live, reserved
        requested = set()
        for event in self.events:
            action, address, size = event["action"], event.get("addr"), event["size"]
            if action == "alloc":
                assert any(begin <= address and address + size <= begin + total for begin, total in segments.items()), event
                assert address not in blocks, "a block is there once"
                blocks[address] = size
                live += size
            elif action == "free_requested":
                assert address in blocks and address not in requested
                requested.add(address)
            elif action == "free_completed":
                requested.remove(address)
                live -= blocks.pop(address)
            elif action == "segment_alloc":
                segments[address] = size
                reserved += size
            elif action == "segment_free":
                reserved -= segments.pop(address)
            elif action == "segment_map":
                before_it = [each for each in segments if each + segments[each] == address and each in self.segments
                             and address not in self.segments]
                segments[before_it[0] if before_it else address] = size + (segments[before_it[0]] if before_it else 0)
                reserved += size
            most_live, most_reserved = max(most_live, live), max(most_reserved, reserved)
        assert segments == self.segments
        return most_live, most_reserved, before


class ExportTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def scenario(self, name="s.json", **more):
        document = {"schema": "spillway-scenario", "version": 1,
                    "model": {"name": "gpt2-small", "sequence": 256, "micro_batch": 2},
                    "hardware": {"profile": "h100-80gb-1gpu"}, **more}
        with open(self.path(name), "w", encoding="utf-8") as out:
            json.dump(document, out)
        return self.path(name)

    def answer(self, *arguments, codes=(0,)):
        result = subprocess.run([PROGRAM, *arguments, "--format", "json"], capture_output=True, text=True, check=False)
        self.assertIn(result.returncode, codes, result.stderr)
        return json.loads(result.stdout)

    def snapshot_of(self, scenario, codes=(0,)):
        answer = self.answer("run", scenario, "--memory-snapshot", self.path("s.pickle"), codes=codes)
        with open(self.path("s.pickle"), "rb") as file:
            return answer, pickle.load(file)

    def test_a_snapshot_is_what_the_allocator_did(self):
        for allocator in ("torch", "torch-expandable"):
            answer, snapshot = self.snapshot_of(self.scenario(memory={"allocator": allocator}))
            self.assertEqual(set(snapshot), {"segments", "device_traces", "allocator_settings", "external_annotations"})
            history = History(snapshot, 0)
            allocations = sum(event["action"] == "alloc" for event in history.events)
            self.assertGreater(allocations, 100)
            self.assertEqual(len({id(event) for event in history.events}), len(history.events))
            live, reserved, _ = history.peaks()
            self.assertEqual(reserved, answer["peak_reserved_bytes"], allocator)
            self.assertLessEqual(live, answer["peak_allocated_bytes"])
            self.assertGreater(live, answer["peak_allocated_bytes"] * 0.98)
            # Our own reader sees the same.
            again = self.answer("memory", self.path("s.pickle"), "--allocator", allocator)
            self.assertEqual(again["recorded"]["peak_reserved_bytes"], reserved)
            self.assertEqual(again["addresses"]["matched"], again["addresses"]["total"])

    def test_every_rank_has_its_own_time_and_peaks(self):
        scenario = self.scenario(model={"name": "gpt2-small", "sequence": 256, "micro_batch": 1, "pipeline_parallel": 4,
                                        "gradient_accumulation": 4}, hardware={"profile": "dgx-a100"})
        answer, snapshot = self.snapshot_of(scenario)
        self.assertEqual(len(snapshot["device_traces"]), 4)
        for device, rank in enumerate(answer["ranks"]):
            self.assertEqual(History(snapshot, device).peaks()[1], rank["peak_reserved_bytes"], device)
            times = [event["time_us"] for event in snapshot["device_traces"][device]]
            self.assertEqual(times, sorted(times))
            self.assertLess(times[0], answer["step_time_ns"] / 1000 * 0.1, device)
            self.assertLessEqual(times[-1], answer["step_time_ns"] / 1000 * 1.2, device)
            self.assertGreater(len(set(times)), 50, device)
        timeline = self.path("t.json")
        self.answer("run", scenario, "--timeline", timeline)
        with open(timeline, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
        for device, rank in enumerate(answer["ranks"]):
            counted = [event for event in events if event["ph"] == "C" and event["name"] == f"GPU {device} allocated bytes"]
            self.assertEqual({names[event["pid"]] for event in counted}, {f"rank {device} GPU {device}"})
            # A rank's peak may be of the iteration before, in which the optimizer's state was made.
            peak = max(event["args"]["bytes"] for event in counted)
            self.assertLessEqual(peak, rank["peak_allocated_bytes"])
            self.assertGreater(peak, rank["peak_allocated_bytes"] * 0.99)
            placed = {names[event["pid"]] for event in events
                      if event["name"] == "[memory]" and event["args"]["Device Id"] == device}
            self.assertEqual(placed, {f"rank {device} host"})

    def test_moved_tensors_are_there_when_the_replay_has_them(self):
        with open(os.path.join(ROOT, "cli/scenarios/ssdtrain-gpt-h12288.json"), encoding="utf-8") as file:
            scenario = json.load(file)
        answer, snapshot = self.snapshot_of(self.scenario(**scenario))
        live, reserved, _ = History(snapshot, 0).peaks()
        self.assertEqual(reserved, answer["peak_reserved_bytes"])
        self.assertGreater(live, answer["peak_allocated_bytes"] * 0.99)
        timeline = self.path("t.json")
        self.answer("run", self.path("s.json"), "--timeline", timeline)
        with open(timeline, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        memory = [event["args"] for event in events if event["name"] == "[memory]"]
        self.assertEqual(max(each["Total Reserved"] for each in memory), answer["peak_reserved_bytes"])
        # Several transfers are under way at a time, and slices of a thread may not cross.
        names = {(event["pid"], event["tid"]): event["args"]["name"] for event in events if event["name"] == "thread_name"}
        moves = collections.defaultdict(list)
        for event in events:
            if event["ph"] == "X" and names[event["pid"], event["tid"]].startswith(("stores", "loads")):
                moves[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
        self.assertEqual(sum(len(spans) for spans in moves.values()),
                         sum(event["ph"] == "X" and event["name"].startswith("offload") for event in events))
        self.assertGreater(len(moves), 2)
        for spans in moves.values():
            spans.sort()
            for (_, end), (begin, _) in zip(spans, spans[1:]):
                self.assertLessEqual(end, begin + 1e-6)

    def test_every_allocator_can_be_looked_at(self):
        for allocator in ("ideal", "layout", "stalloc", "gmlake"):
            answer, snapshot = self.snapshot_of(self.scenario(memory={"allocator": allocator}))
            live, reserved, before = History(snapshot, 0).peaks()
            self.assertEqual((reserved, before), (answer["peak_reserved_bytes"], 0), allocator)
            self.assertLessEqual(live, answer["peak_allocated_bytes"], allocator)
            self.assertEqual(list(snapshot["allocator_settings"]), ["allocator"])

    def test_a_block_of_several_pieces_is_refused(self):
        scenario = self.scenario(model={"name": "gpt2-small", "sequence": 512, "micro_batch": 16},
                                 memory={"allocator": "gmlake", "config": "fragLimit:2097152"})
        result = subprocess.run([PROGRAM, "run", scenario, "--memory-snapshot", self.path("s.pickle")],
                                capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("stitched", result.stderr)
        self.assertFalse(os.path.exists(self.path("s.pickle")))

    def test_settings_are_those_of_the_run(self):
        config = "max_split_size_mb:64,garbage_collection_threshold:0.5"
        _, snapshot = self.snapshot_of(self.scenario(memory={"allocator": "torch-expandable", "config": config}))
        self.assertEqual(snapshot["allocator_settings"],
                         {"PYTORCH_CUDA_ALLOC_CONF": config, "max_split_size": 64 << 20,
                          "garbage_collection_threshold": 0.5, "expandable_segments": True})

    def test_frames_say_whose_a_block_is(self):
        _, snapshot = self.snapshot_of(self.scenario())
        seen = collections.defaultdict(set)
        for event in snapshot["device_traces"][0]:
            for frame in event["frames"]:
                self.assertEqual(set(frame), {"name", "filename", "line"})
                seen[frame["filename"]].add(frame["name"])
        held = {}
        for event in snapshot["device_traces"][0]:
            if event["action"] in ("alloc", "segment_alloc"):
                held[event["action"], event["addr"]] = event["frames"]
                self.assertTrue(event["frames"])
        for segment in snapshot["segments"]:
            self.assertEqual(segment["frames"], held["segment_alloc", segment["address"]])
            for block in segment["blocks"]:
                self.assertEqual(block["frames"],
                                 [] if block["state"] == "inactive" else held["alloc", block["address"]])
        self.assertLessEqual({"forward", "backward", "optimizer"}, seen["phase"])
        self.assertLessEqual({f"layer {i}" for i in range(12)}, seen["layer"])
        self.assertLessEqual({"weight", "gradient", "optimizer_state", "activation"}, seen["role"])
        self.assertGreater(len(seen["tensor"]), 50)
        self.assertGreater(len(seen["operator"]), 5)

    def test_what_does_not_fit_shows_what_it_would_take(self):
        answer, snapshot = self.snapshot_of(self.scenario(memory={"capacity_bytes": 2 << 30}), codes=(1,))
        self.assertEqual(History(snapshot, 0).peaks()[1], answer["peak_reserved_bytes"])

    def test_a_converted_snapshot_keeps_its_stacks(self):
        source = os.path.join(ROOT, "traces/data/ran-out/snapshot.pickle")
        subprocess.run([PROGRAM, "trace", "convert", source, self.path("again.pickle")], check=True, capture_output=True)
        with open(source, "rb") as first, open(self.path("again.pickle"), "rb") as second:
            before, after = pickle.load(first), pickle.load(second)
        for key in ("action", "size", "stream", "frames", "device_free"):
            self.assertEqual([event.get(key) for event in after["device_traces"][0]],
                             [event.get(key) for event in before["device_traces"][0]], key)
        blocks = [[block["frames"] for segment in each["segments"] for block in segment["blocks"]]
                  for each in (before, after)]
        self.assertEqual(*blocks)

    def test_without_memory_no_peak_is_known(self):
        timeline = self.path("t.json")
        self.answer("run", self.scenario(), "--timeline", timeline)
        with open(timeline, encoding="utf-8") as file:
            document = json.load(file)
        document["traceEvents"] = [event for event in document["traceEvents"] if event["name"] != "[memory]"]
        with open(timeline, "w", encoding="utf-8") as out:
            json.dump(document, out)
        info = self.answer("trace", "info", timeline)
        self.assertEqual(info["device_memory_events"], 0)
        self.assertIsNone(info["peak_allocated_bytes"])

    def test_what_binds_reads_back(self):
        """Of steps bound by arithmetic as well: kernels carry the operations that tell."""
        timeline = self.path("t.json")
        scenario = os.path.join(ROOT, "cli/scenarios/gpt2-xl-1k-h100.json")
        answer = self.answer("run", scenario, "--timeline", timeline)
        again = self.answer("run", timeline)
        self.assertEqual(again["binding_resource"], answer["binding_resource"])
        for resource in ("compute_ns", "hbm_ns"):
            self.assertAlmostEqual(again["breakdown"][resource], answer["breakdown"][resource],
                                   delta=0.02 * answer["step_time_ns"], msg=resource)

    def test_a_timeline_reads_back(self):
        """Trace Event Format: complete events that do not overlap on a thread, counters, memory as torch.profiler has it."""
        timeline = self.path("t.json")
        answer = self.answer("run", self.scenario(), "--timeline", timeline)
        with open(timeline, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        threads = collections.defaultdict(list)
        for event in events:
            if event["ph"] == "X":
                threads[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
        for spans in threads.values():
            spans.sort()
            for (_, end), (begin, _) in zip(spans, spans[1:]):
                self.assertLessEqual(end, begin + 1e-6)
        ends = [end for spans in threads.values() for _, end in spans]
        self.assertAlmostEqual(max(ends) * 1000, answer["step_time_ns"], delta=answer["step_time_ns"] * 0.2)
        memory = [event["args"] for event in events if event["name"] == "[memory]"]
        live, most = {}, 0
        for each in memory:
            if each["Bytes"] < 0:
                self.assertEqual(live.pop(each["Addr"]), -each["Bytes"])
            else:
                self.assertNotIn(each["Addr"], live)
                live[each["Addr"]] = each["Bytes"]
            most = max(most, sum(live.values()))
        self.assertLessEqual(most, answer["peak_allocated_bytes"])
        self.assertEqual(max(each["Total Reserved"] for each in memory), answer["peak_reserved_bytes"])
        self.assertEqual(max(each["Total Allocated"] for each in memory), answer["peak_allocated_bytes"])
        counted = [event["args"]["bytes"] for event in events
                   if event["ph"] == "C" and event["name"].endswith(" allocated bytes")]
        self.assertEqual(max(counted), answer["peak_allocated_bytes"])
        again = self.answer("run", timeline)
        for key in ("step_time_ns", "binding_resource"):
            self.assertEqual(again[key], answer[key], key)
        self.assertEqual(again["diagnosis"]["recorded_peak_reserved_bytes"], answer["peak_reserved_bytes"])
        info = self.answer("trace", "info", timeline)
        for key in ("peak_allocated_bytes", "peak_reserved_bytes"):
            self.assertEqual(info[key], answer[key], key)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
