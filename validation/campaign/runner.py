"""Runs one command of a step: its output straight into files, a cap on its time, and an end within half a second."""
import os
import signal
import subprocess
import time

GRACE_SECONDS = 0.3  # between asking a command to end and ending it


class Stopped(Exception):
    """The campaign was asked to end (SIGINT or SIGTERM)."""


class Runner:
    """Commands run in process groups of their own, so that an end reaches all that they started. stop() may be called by
    a signal handler at any time; the command in hand ends, and run() raises Stopped."""

    def __init__(self):
        self.stopped = False
        self.child = None

    def stop(self, *_):
        self.stopped = True

    def run(self, command, output, error, seconds, environment=None, folder=None):
        """The exit code; -1 for a command that isn't there, None when its time was over."""
        if self.stopped:
            raise Stopped
        variables = {**os.environ, **(environment or {})}
        with open(output, "wb") as out, open(error, "wb") as err:
            try:
                self.child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=variables,
                                              cwd=folder, start_new_session=True)
            except OSError as problem:
                err.write(f"{command[0]}: {problem.strerror}\n".encode())
                return -1
            try:
                return self._wait(time.monotonic() + seconds)
            finally:
                self._end()

    def _wait(self, until):
        pause = 0.005
        while True:
            code = self.child.poll()
            if code is not None:
                return code
            if self.stopped:
                raise Stopped
            if time.monotonic() >= until:
                return None
            time.sleep(pause)
            pause = min(2 * pause, 0.05)

    def _end(self):
        """Ends what is left of the command's process group."""
        for sign in (signal.SIGINT, signal.SIGKILL):
            try:
                os.killpg(self.child.pid, sign)
            except ProcessLookupError:
                break
            until = time.monotonic() + GRACE_SECONDS
            while sign == signal.SIGINT and self.child.poll() is None and time.monotonic() < until:
                time.sleep(0.01)
        self.child.wait()
        self.child = None
