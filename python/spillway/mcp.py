"""A server of the Model Context Protocol over standard input and output, so that agents can ask spillway.

    python3 -m spillway.mcp [PROGRAM]

Four tools: fit, run, explain, import. Their arguments are those of the commands, as the program itself describes them
(`spillway manual --format json`). A message is one line of JSON-RPC 2.0. Needs the standard library alone; opens no
network connection. Files that a tool names are read and written with this user's rights.
"""
import json
import sys

from .errors import InputError, SpillwayError
from .program import ANSWER_IS_NO, BAD_INPUT, NOT_KNOWN, call

TOOLS = ("fit", "run", "explain", "import")
VERSIONS = ("2025-06-18", "2025-03-26", "2024-11-05")  # of the protocol, newest first
NOT_JSON, NOT_A_REQUEST, NO_METHOD, BAD_PARAMETERS = -32700, -32600, -32601, -32602
MEANINGS = {0: "yes, or done", ANSWER_IS_NO: "the answer is no", NOT_KNOWN: "the answer is not known"}
LONGEST = 64 << 20  # bytes of a message


class Fault(Exception):
    """An error of the protocol: its code and its words."""

    def __init__(self, code, words):
        super().__init__(words)
        self.code = code


def property_of(option):
    """The JSON Schema of one argument or option."""
    words = {"description": option["about"]}
    if option["names"][-1] == "--set":
        return {**words, "type": "object", "additionalProperties": {"type": ["string", "number", "boolean", "null"]}}
    if not option["value"] and option["names"][-1].startswith("-"):
        return {**words, "type": "boolean"}
    if option["choices"]:
        return {**words, "type": "string", "enum": option["choices"]}
    return {**words, "type": ["string", "number", "array"], "items": {"type": ["string", "number"]}}


def name_of(option):
    return option["names"][-1].lstrip("-").lower()


class Tool:
    """A command of the program."""

    def __init__(self, command):
        self.name, self._about, self._page, self._examples = (command[key] for key in ("path", "about", "page", "examples"))
        self._arguments = {name_of(one): one for one in command["arguments"]}
        self._options = {name_of(one): one for one in command["options"] if one["names"][-1] != "--help"}

    def description(self):
        return {"name": self.name,
                "description": "\n".join([self._about + ".", "Examples:", *self._examples, "More: " + self._page]),
                "inputSchema": {"type": "object", "additionalProperties": False,
                                "properties": {name: property_of(one) for name, one in
                                               {**self._arguments, **self._options, "json": JSON}.items()},
                                "required": [name for name, one in self._arguments.items() if one["required"]]}}

    def words(self, given):
        """The command line of a call."""
        known = {**self._arguments, **self._options}
        unknown = sorted(given.keys() - known.keys() - {"json"})
        if unknown:
            raise Fault(BAD_PARAMETERS, f"{self.name} has no argument {unknown[0]}; it has {', '.join(known)}")
        missing = [name for name, one in self._arguments.items() if one["required"] and name not in given]
        if missing:
            raise Fault(BAD_PARAMETERS, f"{self.name} needs {missing[0]}: {self._arguments[missing[0]]['about']}")
        words, places = [], []
        for name, value in given.items():
            if name == "json":
                continue
            if name in self._arguments:
                places += [text_of(name, one) for one in (value if isinstance(value, list) else [value])]
            else:
                words += self._option(name, value)
        return [self.name, *words, *["./" + word if word.startswith("-") else word for word in places]]

    def _option(self, name, value):
        option = self._options[name]
        flag = option["names"][-1]
        if flag == "--set":
            if not isinstance(value, dict):
                raise Fault(BAD_PARAMETERS, 'set takes an object, such as {"model.micro_batch": 4}')
            return [f"--set={key}={setting_of(one)}" for key, one in value.items()]
        if not option["value"]:
            if not isinstance(value, bool):
                raise Fault(BAD_PARAMETERS, f"{name} is true or false")
            return [flag] if value else []
        return [f"{flag}={text_of(name, one)}" for one in (value if isinstance(value, list) else [value])]


JSON = {"names": ["--json"], "value": "", "choices": [], "about": "the whole answer as JSON too, with its keys"}


def text_of(name, value):
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise Fault(BAD_PARAMETERS, f"{name} takes a text or a number")
    return str(value)


def setting_of(value):
    return value if isinstance(value, str) else json.dumps(value)


def tools_of(program):
    out, _, _ = call("manual", "--format", "json", program=program)
    commands = {command["path"]: command for command in json.loads(out)["commands"]}
    return {name: Tool(commands[name]) for name in TOOLS}


class Server:
    def __init__(self, program=None):
        self._program = program
        self._tools = tools_of(program)

    def answer(self, message):
        """The answer to a message; None to a notification."""
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            return failed(None, NOT_A_REQUEST, "no message of JSON-RPC 2.0")
        if "id" not in message or "method" not in message:
            return None
        try:
            parameters = message.get("params") or {}
            if not isinstance(parameters, dict):
                raise Fault(BAD_PARAMETERS, "params is an object")
            return {"jsonrpc": "2.0", "id": message["id"], "result": self._result(message["method"], parameters)}
        except Fault as fault:
            return failed(message["id"], fault.code, str(fault))

    def _result(self, method, parameters):
        if method == "initialize":
            wanted = parameters.get("protocolVersion")
            return {"protocolVersion": wanted if wanted in VERSIONS else VERSIONS[0], "capabilities": {"tools": {}},
                    "serverInfo": {"name": "spillway", "version": self._version()},
                    "instructions": "Predicts GPU memory and step time of training runs. Ask before a job starts: import a "
                                    "launch script, run the scenario, and use fit if it does not fit."}
        if method == "ping":
            return {}
        if method == "tools/list":
            return {"tools": [tool.description() for tool in self._tools.values()]}
        if method == "tools/call":
            return self._call(parameters.get("name"), parameters.get("arguments") or {})
        raise Fault(NO_METHOD, f"no method {method}")

    def _version(self):
        out, _, _ = call("--version", program=self._program)
        return out.split()[1]

    def _call(self, name, given):
        tool = self._tools.get(name) if isinstance(name, str) else None
        if tool is None:
            raise Fault(BAD_PARAMETERS, f"no tool {name}; there are {', '.join(self._tools)}")
        if not isinstance(given, dict):
            raise Fault(BAD_PARAMETERS, "arguments is an object")
        words = tool.words(given)
        try:
            out, notes, code = call(*words, program=self._program)
            result = {"content": [{"type": "text", "text": f"{notes}{out}exit code {code}: {MEANINGS[code]}"}],
                      "isError": False}
            if given.get("json"):
                out, _, _ = call(*words, "--format", "json", program=self._program)
                result["structuredContent"] = json.loads(out)
            return result
        except SpillwayError as error:
            code = f"exit code {BAD_INPUT}: " if isinstance(error, InputError) else ""
            return {"content": [{"type": "text", "text": code + str(error)}], "isError": True}


def failed(identifier, code, words):
    return {"jsonrpc": "2.0", "id": identifier, "error": {"code": code, "message": words}}


def serve(source, target, program=None):
    """Answers the messages of `source`, a binary stream, until its end."""
    server = Server(program)
    while line := source.readline(LONGEST):
        if not line.strip():
            continue
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            answer = failed(None, NOT_JSON, "no line of JSON")
        else:
            answer = server.answer(message)
        if answer is not None:
            target.write(json.dumps(answer).encode() + b"\n")
            target.flush()


def main(arguments):
    try:
        serve(sys.stdin.buffer, sys.stdout.buffer, arguments[0] if arguments else None)
    except SpillwayError as error:
        print(f"spillway.mcp: {error}", file=sys.stderr)
        return 2
    except (BrokenPipeError, KeyboardInterrupt):
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
