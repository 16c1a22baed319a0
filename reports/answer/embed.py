#!/usr/bin/env python3
"""Writes the page's shell, style and script as C++ texts, and the policy that lets only these two run.

Usage: embed.py page.html page.css page.js OUT.cc
"""
import base64
import hashlib
import sys


def digest(text):
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        return file.read().replace("\r\n", "\n")


def main():
    shell, style, script = map(read, sys.argv[1:4])
    policy = (f"default-src 'none'; script-src '{digest(script)}'; style-src '{digest(style)}'; img-src data:; "
              "base-uri 'none'; form-action 'none'")
    for name, text in [("policy", policy), ("style", style), ("script", script)]:
        shell = shell.replace("{{" + name + "}}", text)
    # The script names no marks of these itself.
    pieces = []
    for mark in ["{{title}}", "{{noscript}}", "{{data}}"]:
        piece, shell = shell.split(mark, 1)
        pieces.append(piece)
    pieces.append(shell)
    if any(')spillway"' in piece for piece in pieces):
        sys.exit("the page has the end of a C++ raw string in it")
    with open(sys.argv[4], "w", encoding="utf-8", newline="\n") as out:
        out.write('#include "reports/answer_shell.h"\n\nnamespace spillway::reports {\n\n')
        for name, piece in zip(["before_title", "before_noscript", "before_data", "behind_data"], pieces):
            out.write(f'const std::string_view answer_shell_{name} = R"spillway({piece})spillway";\n')
        out.write("\n}  // namespace spillway::reports\n")


if __name__ == "__main__":
    main()
