#!/usr/bin/env python3
"""spillway.mcp, the server that agents ask, as a client sees it: a process, lines in, lines out.

usage: mcp_test.py SPILLWAY
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import fixture

PROGRAM = os.path.abspath(sys.argv[1])
SCENARIO = os.path.join(fixture.ROOT, "cli/scenarios/gpt2-xl-1k-h100.json")
LAUNCH = os.path.join(fixture.ROOT, "tests/launch/data/megatron-llama3-8b.sh")


class McpTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def lines(self, *lines):
        """Answers of a server that is started for these lines."""
        environment = dict(os.environ, PYTHONPATH=os.path.join(fixture.ROOT, "python"))
        done = subprocess.run([sys.executable, "-S", "-m", "spillway.mcp", PROGRAM], input="".join(line + "\n" for line in lines),
                              capture_output=True, text=True, env=environment, cwd=self.folder, timeout=300, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return [json.loads(line) for line in done.stdout.splitlines()]

    def ask(self, method, **parameters):
        message = {"jsonrpc": "2.0", "id": 7, "method": method, "params": parameters}
        answer, = self.lines(json.dumps(message))
        self.assertEqual((answer["jsonrpc"], answer["id"]), ("2.0", 7))
        return answer

    def tool(self, tool, **arguments):
        return self.ask("tools/call", name=tool, arguments=arguments)["result"]

    def test_a_session_begins(self):
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-03-26", "capabilities": {}}}
        first, second = self.lines(json.dumps(hello), '{"jsonrpc": "2.0", "method": "notifications/initialized"}', "",
                                   '{"jsonrpc": "2.0", "id": "two", "method": "ping"}')
        self.assertEqual(first["result"]["protocolVersion"], "2025-03-26")
        self.assertEqual(first["result"]["serverInfo"]["name"], "spillway")
        self.assertIn(first["result"]["serverInfo"]["version"],
                      subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True).stdout)
        self.assertEqual(second, {"jsonrpc": "2.0", "id": "two", "result": {}})
        self.assertEqual(self.ask("initialize", protocolVersion="1")["result"]["protocolVersion"], "2025-06-18")

    def test_tools_have_the_options_of_the_commands(self):
        listed = {tool["name"]: tool for tool in self.ask("tools/list")["result"]["tools"]}
        self.assertEqual(set(listed), {"fit", "run", "explain", "import"})
        manual = json.loads(subprocess.run([PROGRAM, "manual", "--format", "json"], capture_output=True, text=True,
                                           check=True).stdout)["commands"]
        for command in manual:
            if command["path"] not in listed:
                continue
            schema = listed[command["path"]]["inputSchema"]
            options = {option["names"][-1].lstrip("-") for option in command["options"]} - {"help"}
            self.assertLessEqual(options, schema["properties"].keys())
            self.assertEqual(schema["required"], [one["names"][0].lower() for one in command["arguments"] if one["required"]])
            self.assertIn(command["page"], listed[command["path"]]["description"])

    def test_a_run_answers_in_text_and_in_json(self):
        result = self.tool("run", scenario=SCENARIO, set={"model.micro_batch": 2}, json=True)
        self.assertFalse(result["isError"])
        self.assertIn("Fits with", result["content"][0]["text"])
        self.assertTrue(result["content"][0]["text"].endswith("exit code 0: yes, or done"))
        self.assertTrue(result["structuredContent"]["fits"])
        no = self.tool("run", scenario=SCENARIO, set={"model.micro_batch": 64})
        self.assertFalse(no["isError"])
        self.assertIn("Does not fit", no["content"][0]["text"])
        self.assertTrue(no["content"][0]["text"].endswith("exit code 1: the answer is no"))
        self.assertNotIn("structuredContent", no)

    def test_a_launch_is_imported_then_searched(self):
        target = os.path.join(self.folder, "step.json")
        self.assertFalse(self.tool("import", launch=LAUNCH, output=target)["isError"])
        self.assertTrue(os.path.exists(target))
        found = self.tool("fit", what=SCENARIO, effort=0.02, **{"keep-numerics": True})
        self.assertIn("Fits in", found["content"][0]["text"])
        self.assertIn("limited by", self.tool("explain", scenario=SCENARIO)["content"][0]["text"])

    def test_what_is_wrong_is_said(self):
        wrong = self.tool("run", scenario="nothing.json")
        self.assertTrue(wrong["isError"])
        self.assertIn("nothing.json", wrong["content"][0]["text"])
        self.assertTrue(self.tool("run", scenario="--help")["isError"], "an argument is no option")
        for parameters, words in (({"name": "sweep"}, "no tool sweep"), ({"name": ["run"]}, "no tool"),
                                  ({"name": "run"}, "run needs scenario"),
                                  ({"name": "run", "arguments": {"scenario": SCENARIO, "speed": 1}}, "no argument speed"),
                                  ({"name": "run", "arguments": {"scenario": SCENARIO, "set": "a=1"}}, "set takes an object"),
                                  ({"name": "run", "arguments": {"scenario": {}}}, "takes a text"),
                                  ({"name": "run", "arguments": 3}, "arguments is an object")):
            error = self.ask("tools/call", **parameters)["error"]
            self.assertEqual(error["code"], -32602)
            self.assertIn(words, error["message"])
        self.assertEqual(self.ask("resources/list")["error"]["code"], -32601)
        bad, worse, fine = self.lines("{", "[" * 100_000, '{"jsonrpc": "2.0", "id": 1, "method": "ping"}')
        self.assertEqual([bad["error"]["code"], worse["error"]["code"], fine["result"]], [-32700, -32700, {}])
        self.assertEqual(self.lines('{"id": 1}')[0]["error"]["code"], -32600)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
