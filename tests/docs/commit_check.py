#!/usr/bin/env python3
"""The rules of a commit's message (CONTRIBUTING.md). Standard library only.

Usage: commit_check.py FILE          the message in FILE: the hook commit-msg
       commit_check.py --since BASE  every commit from BASE to HEAD but merges; the last one where BASE isn't there
       commit_check.py --self-test
"""
import re
import subprocess
import sys

SUBJECT = 72  # characters


def problems(message):
    lines = [line for line in message.split("\n") if not line.startswith("#")]
    while lines and not lines[0].strip():
        lines.pop(0)
    if not lines:
        yield "the message is empty"
        return
    subject = lines[0]
    if re.match(r"(Merge|Revert) ", subject):
        return
    if len(subject) > SUBJECT:
        yield f"the subject has {len(subject)} characters, at most {SUBJECT}: {subject}"
    if ";" in subject:
        yield f"the subject has a semicolon, so two things: {subject}"
    if subject.endswith("."):
        yield f"the subject ends with a full stop: {subject}"
    if len(lines) > 1 and lines[1].strip():
        yield f"no empty line behind the subject: {subject}"
    body = " ".join(line for line in lines[1:] if not re.match(r"[A-Z][\w-]+: \S", line))  # but trailers
    if len(re.findall(r"[A-Za-z]{2,}", body)) < 4:
        yield f"no body that says why: {subject}"


def git(*arguments):
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)


def since(base):
    """Messages of the commits since `base`, but for those before this file; of the last one where the base isn't there; none
    outside of a repository."""
    start = git("merge-base", "HEAD", base).stdout.strip()
    head = git("rev-parse", "HEAD").stdout.strip()
    first = git("log", "--diff-filter=A", "--format=%H", "--", "tests/docs/commit_check.py").stdout.split()[-1:]
    which = [f"{start}..HEAD", *(f"^{commit}" for commit in first)] if start and start != head else ["-1", "HEAD"]
    listed = git("log", "--no-merges", "--format=%B%x00", *which)
    return [message for message in listed.stdout.split("\0") if message.strip()] if head else []


def self_test():
    good = "What is true now\n\nThe reason is a measured one.\n"
    cases = ((good, 0), ("# comment\n" + good, 0), ("Merge branch x\n", 0), ("x" * 73 + good[16:], 1),
             ("One; two" + good[16:], 1), ("No body\n", 1), ("No body\n\nSigned-off-by: Some Body Or Other <a@b>\n", 1), ("", 1),
             ("A dot." + good[16:], 1), ("Close\nThe reason is a measured one.\n", 1))
    wrong = [message for message, count in cases if len(list(problems(message))) != count]
    print(f"self-test failed: {wrong}" if wrong else "self-test passed")
    return 1 if wrong else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if arguments[:1] == ["--since"]:
        messages = since(arguments[1])
    else:
        with open(arguments[0], encoding="utf-8") as file:
            messages = [file.read()]
    found = [problem for message in messages for problem in problems(message)]
    print("\n".join([*found, f"{len(messages)} messages, {len(found)} problems"]), file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
