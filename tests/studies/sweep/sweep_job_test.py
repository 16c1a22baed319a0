#!/usr/bin/env python3
"""Sweeps as jobs: killed at random, over MPI ranks, with a rank that dies, without room, without what they name.

Usage: sweep_job_test.py SPILLWAY SOURCE_ROOT MPIRUN ("" where there is none) [unittest arguments]
"""
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM, ROOT, MPIRUN = sys.argv[1:4]
SWEEP = {
    "schema": "spillway-sweep", "version": 1, "title": "job",
    "base": {"model": {"name": "gpt2-small", "sequence": 512, "global_batch": 64}, "hardware": {"profile": "dgx-a100"}},
    "axes": [{"name": "t", "key": "model.tensor_parallel", "values": [1, 2, 4]},
             {"name": "p", "key": "model.pipeline_parallel", "values": [1, 2, 3, 4]},
             {"name": "b", "key": "model.micro_batch", "values": [1, 2, 4]},
             {"name": "recompute", "key": "model.recompute", "values": ["none", "selective", "full"]}],
    "derived": [{"name": "d", "key": "model.data_parallel", "value": "96 / (t * p)"}],
    "where": [{"is": "divides(d * b, 64 * 3)", "reason": "uneven"}],
    "objectives": ["step_time", "peak_memory"], "margin": 0.5, "memory_margin": 0.5,
}
SWEEP["base"]["model"]["global_batch"] = 192


def run(*arguments, timeout=300, **options):
    return subprocess.run(list(arguments), capture_output=True, text=True, timeout=timeout, check=False, **options)


def spillway(*arguments, **options):
    return run(PROGRAM, *arguments, **options)


def records(store):
    with open(store, "rb") as lines:
        return lines.read().count(b"\n")


class SweepJobTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def sweep(self, **changes):
        path = self.path("sweep.json")
        with open(path, "w", encoding="utf-8") as out:
            json.dump({**SWEEP, **changes}, out)
        return path

    def whole(self, path):
        result = spillway("sweep", path, "--format", "json")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertGreater(json.loads(result.stdout)["replayed"], 20)
        return result.stdout

    def refused(self, *arguments, says, **options):
        result = spillway(*arguments, **options)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(result.stdout, "")
        for word in says:
            self.assertIn(word, result.stderr)


class KillTest(SweepJobTest):
    def test_twenty_kills_at_random(self):
        """Killed at twenty random moments, and its store cut at random besides: the bytes of an undisturbed run."""
        path, store, chance = self.sweep(), self.path("killed.store"), random.Random(8)
        whole = self.whole(path)
        started = time.monotonic()
        spillway("sweep", path, "--output", self.path("timed.store"))
        seconds = time.monotonic() - started
        progressed = 0
        for _ in range(20):
            with subprocess.Popen([PROGRAM, "sweep", path, "--output", store, "--resume", "--jobs", "1"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as job:
                try:
                    job.wait(chance.uniform(0, 1.2 * seconds))
                except subprocess.TimeoutExpired:
                    job.send_signal(signal.SIGKILL)
            if os.path.exists(store) and chance.random() < 0.5:
                with open(store, "r+b") as file:
                    size = file.seek(0, os.SEEK_END)
                    file.truncate(max(0, size - chance.randrange(150)))
            progressed += os.path.exists(store) and records(store) > 2
        self.assertGreater(progressed, 0)
        again = spillway("sweep", path, "--output", store, "--resume", "--format", "json")
        self.assertEqual(again.stdout, whole, again.stderr)
        merged = spillway("merge", store, "--format", "json")
        self.assertEqual(merged.stdout, whole, merged.stderr)


@unittest.skipUnless(MPIRUN, "no mpirun, or built without it")
class MpiTest(SweepJobTest):
    def mpi(self, *arguments, ranks=4):
        return [MPIRUN, "--allow-run-as-root", "--oversubscribe", "-n", str(ranks), PROGRAM, *arguments]

    def setUp(self):
        super().setUp()
        # Open MPI's sockets and shared memory, out of the way of long paths.
        self.environment = {**os.environ, "TMPDIR": "/tmp", "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}

    def test_four_ranks_give_the_bytes_of_one_process(self):
        path = self.sweep()
        whole = self.whole(path)
        result = run(*self.mpi("sweep", path, "--format", "json", "--output", self.path("mpi.store")),
                     env=self.environment)
        self.assertEqual(result.stdout, whole, result.stderr)
        # One process finds every record there.
        before = records(self.path("mpi.store"))
        again = spillway("sweep", path, "--output", self.path("mpi.store"), "--resume", "--format", "json")
        self.assertEqual(again.stdout, whole)
        self.assertEqual(records(self.path("mpi.store")), before)

    def test_a_rank_that_dies_loses_nothing_that_is_stored(self):
        code, message = self.loses_a_rank({})
        self.assertNotEqual(code, 0, message)

    def test_a_launcher_that_goes_on_without_a_rank_does_not_wait_for_ever(self):
        """Such a launcher ends with 0 though rank 0 aborts the job: what is said, and that it ends, is what counts."""
        _, message = self.loses_a_rank({"OMPI_MCA_orte_enable_recovery": "1"})
        self.assertIn("has died", message)
        self.assertIn("--resume", message)

    def loses_a_rank(self, more):
        path, store = self.sweep(), self.path("mpi.store")
        whole = self.whole(path)
        with subprocess.Popen(self.mpi("sweep", path, "--output", store), stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, env={**self.environment, **more}) as job:
            until = time.monotonic() + 240
            while (not os.path.exists(store) or records(store) < 6) and time.monotonic() < until and job.poll() is None:
                time.sleep(0.01)
            worker = self.workers(job.pid)
            if worker:
                os.kill(worker[-1], signal.SIGKILL)
            try:
                message = job.communicate(timeout=240)[1].decode(errors="replace")
            except subprocess.TimeoutExpired:
                job.kill()  # else leaving the block waits for it
                raise
        self.assertTrue(worker, "the job was over before a rank could be killed")
        self.assertGreaterEqual(records(store), 6)
        finished = run(*self.mpi("sweep", path, "--output", store, "--resume", "--format", "json", ranks=3),
                       env=self.environment)
        self.assertEqual(finished.stdout, whole, finished.stderr)
        return job.returncode, message

    @staticmethod
    def workers(launcher):
        """Ranks but the first, by the environment the launcher gave them."""
        found = {}
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8") as stat:
                    parent = int(stat.read().rsplit(")", 1)[1].split()[1])
                with open(f"/proc/{name}/environ", "rb") as variables:
                    rank = dict(line.split(b"=", 1) for line in variables.read().split(b"\0") if b"=" in line).get(
                        b"OMPI_COMM_WORLD_RANK")
            except (OSError, IndexError):
                continue
            if parent == launcher and rank is not None and int(rank) > 0:
                found[int(rank)] = int(name)
        return [found[rank] for rank in sorted(found)]

    def test_mistakes_are_said_once(self):
        result = run(*self.mpi("sweep", self.path("no.json")), env=self.environment)
        self.assertNotEqual(result.returncode, 0)
        self.assertEqual(result.stderr.count("error: "), 1, result.stderr)
        self.assertIn("no.json", result.stderr)


class VerdictTest(SweepJobTest):
    def test_a_billion_points_without_limits(self):
        """Conditions that name the first axes leave most of them out before they cost anything."""
        many = {"from": 1, "to": 1000, "step": 1}
        axes = [{"name": "t", "key": "model.tensor_parallel", **many}, {"name": "b", "key": "model.micro_batch", **many},
                {"name": "k", "key": "model.gradient_accumulation", **many}]
        base = {"model": {"name": "gpt2-small", "sequence": 512}, "hardware": {"profile": "dgx-a100"}}
        result = spillway("sweep", self.sweep(axes=axes, base=base, derived=[], where=["t == 2", "b <= 2", "k <= 2"],
                                             objectives=["gpu_time_per_token"]))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("1000000000 configurations", result.stdout)
        self.assertIn("core hours", result.stderr)

    def test_more_points_than_a_lifetime_has(self):
        axes = [{"name": name, "key": f"model.{name}", "from": 1, "to": 10_000, "step": 1}
                for name in ("sequence", "micro_batch", "layers", "bucket_bytes")]
        self.refused("sweep", self.sweep(axes=axes, derived=[], where=[], objectives=["peak_memory"]),
                     says=["/axes", "too many to estimate", "fewer"])

    def test_contradictions_are_a_verdict(self):
        result = spillway("sweep", self.sweep(where=["t > 4", "t < 2"]), "--explain-pruning")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("no configuration meets the requirements", result.stdout)
        self.assertIn("left out: t > 4", result.stdout)

    def test_empty_axes_and_missing_profiles(self):
        self.refused("sweep", self.sweep(axes=[{"name": "t", "key": "model.tensor_parallel", "values": []}]),
                     says=["/axes/0", "an empty list"])
        base = {**SWEEP["base"], "hardware": {"profile": "dgx-a101"}}
        self.refused("sweep", self.sweep(base=base), says=["dgx-a101", "dgx-a100"])

    def test_no_room_on_the_disk(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        self.refused("sweep", self.sweep(), "--output", "/dev/full", "--resume", says=["no regular file"])
        limited = ["bash", "-c", 'trap "" XFSZ; ulimit -f 4; exec "$@"', "bash", PROGRAM, "sweep", self.sweep(), "--output",
                   self.path("small.store")]
        result = run(*limited)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("can't be written", result.stderr)
        self.assertIn("--resume", result.stderr)
        again = spillway("sweep", self.sweep(), "--output", self.path("small.store"), "--resume", "--format", "json")
        self.assertEqual(again.stdout, self.whole(self.sweep()), again.stderr)

    def test_pictures(self):
        path = self.sweep()
        plots = {kind: self.path(kind.split(":", maxsplit=1)[0] + ".svg")
                 for kind in ("front:step_time,gpus", "map:t,p", "tornado")}
        result = spillway("sweep", path, *(word for kind, file in plots.items() for word in ("--plot", f"{kind}={file}")))
        self.assertEqual(result.returncode, 0, result.stderr)
        for file in plots.values():
            with open(file, encoding="utf-8") as svg:
                self.assertTrue(svg.read().endswith("</svg>\n"))
        self.refused("sweep", path, "--plot", "pie=x.svg", says=["pie", "front"])
        self.refused("sweep", path, "--plot", "map:t=x.svg", says=["two axes"])
        self.refused("sweep", path, "--plot", "map:t,q=" + self.path("x.svg"), says=["no axis"])
        self.refused("sweep", path, "--plot", "front", says=["no file"])

    def test_the_screen_is_checked(self):
        result = spillway("sweep", self.sweep(), "--check-screen", "30", "--format", "json")
        self.assertEqual(result.returncode, 0, result.stderr)
        document = json.loads(result.stdout)
        self.assertEqual(document["wrongly_pruned"], [])
        self.assertGreater(document["on_front"], 0)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=1)
