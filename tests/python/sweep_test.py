#!/usr/bin/env python3
"""spillway.sweep over executors: a local pool, Dask where Debian's python3-distributed is; SQLite read by pandas.

usage: sweep_test.py SPILLWAY
"""
import concurrent.futures
import json
import os
import sqlite3
import sys
import tempfile
import unittest

import fixture  # noqa: F401 (puts the package on the path)
import spillway

PROGRAM = os.path.abspath(sys.argv[1])
SPACE = {
    "schema": "spillway-sweep", "version": 1, "title": "small",
    "base": {"model": {"name": "gpt2-small", "layers": 2, "sequence": 128, "global_batch": 16},
             "hardware": {"profile": "dgx-a100"}},
    "axes": [{"name": "t", "key": "model.tensor_parallel", "values": [1, 2, 4]},
             {"name": "b", "key": "model.micro_batch", "values": [1, 2, 4]}]}


class Failing:
    """An executor whose every shard fails once before it is done."""

    def __init__(self):
        self.failed = set()

    def submit(self, work, *arguments):
        future = concurrent.futures.Future()
        if arguments[2] in self.failed:
            future.set_result(work(*arguments))
        else:
            self.failed.add(arguments[2])
            future.set_exception(spillway.ProgramError("killed", -9, ""))
        return future


class SweepTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.alone = spillway.sweep(SPACE, program=PROGRAM)

    def same(self, answer):
        self.assertEqual(json.dumps(answer), json.dumps(self.alone))

    def test_a_pool_of_processes_gives_the_undivided_answer(self):
        with concurrent.futures.ProcessPoolExecutor(2) as pool:
            self.same(spillway.sweep(SPACE, program=PROGRAM, executor=pool, shards=4))

    def test_a_shard_that_fails_is_given_again_and_stores_are_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            executor = Failing()
            self.same(spillway.sweep(SPACE, program=PROGRAM, executor=executor, shards=3, stores=folder))
            self.assertEqual(executor.failed, {0, 1, 2})
            self.assertEqual(sorted(os.listdir(folder)), ["0.store", "1.store", "2.store"])
            with self.assertRaises(spillway.ProgramError):
                spillway.sweep(SPACE, program=PROGRAM, executor=Failing(), shards=3, stores=folder, tries=1)

    def test_bad_input_is_told_once(self):
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            with self.assertRaisesRegex(spillway.InputError, "axes"):
                spillway.sweep({**SPACE, "axes": 7}, program=PROGRAM, executor=pool, shards=2)
            for wrong in ({"shards": 0}, {"tries": 0}, {"shard": "0/2"}, {"resume": True}):
                with self.assertRaises(spillway.InputError):
                    spillway.sweep(SPACE, program=PROGRAM, executor=pool, **wrong)
        with self.assertRaisesRegex(spillway.InputError, "executor"):
            spillway.sweep(SPACE, program=PROGRAM, shards=2)

    def test_dask(self):
        try:
            import distributed
        except ImportError:
            self.skipTest("python3-distributed is not installed")
        with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as made:
            with distributed.Client(made) as client:
                self.same(spillway.sweep(SPACE, program=PROGRAM, executor=client, shards=4))
                self.same(spillway.sweep(SPACE, program=PROGRAM, executor=client.get_executor(), shards=4))

    def test_axes_whose_names_differ_in_case_alone(self):
        """SQLite takes them for one name."""
        space = {**SPACE, "axes": [{"name": "b", "key": "model.micro_batch", "values": [1, 2]},
                                   {"name": "B", "key": "model.sequence", "values": [64, 128]}]}
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "points.sqlite")
            answer = spillway.sweep(space, program=PROGRAM, database=path)
            rows = sqlite3.connect(path).execute("select axis_b, axis_B_2 from points order by point").fetchall()
            self.assertEqual(rows, [tuple(str(value) for value in row["settings"].values()) for row in answer["rows"]])

    def test_what_is_no_database_is_left_as_it_is(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "thesis.tex")
            store = os.path.join(folder, "kept.store")
            for content in (b"the only copy", b"SQLite format 3", b"\0" * 4096, b"SQLite format 3\0" + b"x" * 4000):
                with open(path, "wb") as file:
                    file.write(content)
                with self.assertRaisesRegex(spillway.InputError, "thesis.tex"):
                    spillway.sweep(SPACE, program=PROGRAM, database=path, output=store)
                with open(path, "rb") as file:
                    self.assertEqual(file.read(), content)
                self.assertFalse(os.path.exists(store), "refused before the sweep")
            os.truncate(path, 0)
            answer = spillway.sweep(SPACE, program=PROGRAM, database=path)
            self.assertEqual(sqlite3.connect(path).execute("select count(*) from points").fetchone(),
                             (len(answer["rows"]),))

    def test_other_tables_stay_in_a_database(self):
        for journal in ("delete", "wal"):
            with self.subTest(journal), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "results.sqlite")
                base = sqlite3.connect(path)
                base.execute(f"pragma journal_mode = {journal}")
                base.execute("create table runs (name text)")
                base.execute("insert into runs values ('mine')")
                base.commit()
                link = os.path.join(folder, "link")
                os.symlink("results.sqlite", link)
                for _ in range(2):  # the second time over our own tables
                    answer = spillway.sweep(SPACE, program=PROGRAM, database=link)
                    self.assertEqual(base.execute("select * from runs").fetchall(), [("mine",)])
                    self.assertEqual(base.execute("select count(*) from points").fetchone(), (len(answer["rows"]),))
                    self.assertEqual(base.execute("pragma integrity_check").fetchone(), ("ok",))
                base.execute("begin immediate")  # another program writes
                base.execute("insert into runs values ('more')")
                base.commit()
                spillway.sweep(SPACE, program=PROGRAM, database=path)
                self.assertEqual(base.execute("select count(*) from runs").fetchone(), (2,))
                base.close()

    def test_tables_of_our_names_that_are_anothers_stay(self):
        for made in ("create table points (x, y)", "create table SWEEP (name text, value text)",
                     "create table other (x); create view points as select x from other",
                     "create table points (point, label, settings, step_time_ns); create table sweep (name, value)"):
            with self.subTest(made), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "results.sqlite")
                base = sqlite3.connect(path)
                base.executescript(made)
                base.close()
                with open(path, "rb") as file:
                    before = file.read()
                with self.assertRaisesRegex(spillway.InputError, "that no sweep wrote"):
                    spillway.sweep(SPACE, program=PROGRAM, database=path)
                with open(path, "rb") as file:
                    self.assertEqual(file.read(), before)

    def test_the_database_holds_what_json_says(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "points.sqlite")
            answer = spillway.sweep(SPACE, program=PROGRAM, database=path)
            with open(path, "rb") as file:
                first = file.read()
            spillway.sweep(SPACE, program=PROGRAM, database=path)
            with open(path, "rb") as file:
                self.assertEqual(file.read(), first, "the same answer, the same bytes")
            base = sqlite3.connect(path)
            base.row_factory = sqlite3.Row
            rows = [dict(row) for row in base.execute("select * from points order by point")]
            self.assertEqual(len(rows), len(answer["rows"]))
            for row, said in zip(rows, answer["rows"]):
                self.assertEqual(json.loads(row["settings"]), said["settings"])
                self.assertEqual([row["axis_t"], row["axis_b"]], [str(value) for value in said["settings"].values()])
                for key, value in said.items():
                    if key != "settings":
                        self.assertEqual(row[key], value, key)
            self.assertEqual(dict(base.execute("select name, value from sweep"))["title"], "small")
            base.close()
            try:
                import pandas
            except ImportError:
                return
            base = sqlite3.connect(path)
            frame = pandas.read_sql("select point, step_time_ns, on_front from points order by point", base)
            base.close()
            self.assertEqual(list(frame["step_time_ns"]), [said["step_time_ns"] for said in answer["rows"]])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
