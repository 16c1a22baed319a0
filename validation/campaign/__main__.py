"""One command that has a GPU machine say all it can within some minutes.

    validation/gpu_campaign.sh PHASE[,PHASE...] --minutes N --work DIR --out DIR [--resume DIR]...

Steps run one after the other, the most valuable first; what a machine can't do is skipped, with the reason. Results are
packed into --out as they are made, in few files of bounded size, with campaign.json, which says what was done and holds
predicted against measured: `spillway validate results DIR` reads it. Nothing of the GPU's settings is changed. Exit code
0: everything was done or skipped; 1: something failed or was left; 130: interrupted.
"""
import argparse
import math
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import manifest  # noqa: E402
import steps  # noqa: E402
from campaign import Campaign, say  # noqa: E402
from pack import STEM  # noqa: E402
from runner import Stopped  # noqa: E402


def parse():
    parser = argparse.ArgumentParser(prog="gpu_campaign.sh", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("phases", metavar="PHASE", help=f"all, or of: {', '.join(steps.PHASES)}")
    parser.add_argument("--minutes", type=float, required=True, metavar="N", help="everything has ended by then")
    parser.add_argument("--work", required=True, metavar="DIR", help="scratch, on the drive to offload to")
    parser.add_argument("--out", required=True, metavar="DIR", help="where results go: a new or an empty folder")
    parser.add_argument("--resume", action="append", default=[], metavar="DIR",
                        help="what an earlier call wrote to --out (campaign.json is enough); its finished steps are passed over")
    parser.add_argument("--max-files", type=int, default=8, metavar="N", help="in --out (8)")
    parser.add_argument("--max-file-mib", type=int, default=15, metavar="N", help="size of each (15)")
    parser.add_argument("--spillway", metavar="PROGRAM", help="the program, where it isn't beside this script")
    arguments = parser.parse_args()
    words = arguments.phases.split(",")
    unknown = [word for word in words if word not in steps.PHASES + ["all"]]
    if unknown:
        parser.error(f"no phase is called {unknown[0]}; name all, or of {', '.join(steps.PHASES)}")
    arguments.phases = steps.PHASES if "all" in words else words
    if not math.isfinite(arguments.minutes) or arguments.minutes <= 0:
        parser.error("--minutes takes a number above zero")
    if arguments.max_files < 3 or arguments.max_file_mib < 1:
        parser.error("--max-files takes at least 3 (the manifest, its successor, a pack), --max-file-mib at least 1")
    return arguments


def prepare(folder, must_be_empty):
    try:
        os.makedirs(folder, exist_ok=True)
        if must_be_empty and os.listdir(folder):
            hint = "pass it by --resume, and name a new one" if manifest.NAME in os.listdir(folder) else "name a new one"
            raise manifest.Unreadable(f"{folder}: is not empty; {hint}")
    except OSError as error:
        raise manifest.Unreadable(f"{folder}: {error.strerror}; name a folder that can be written") from None


def main():
    arguments = parse()
    try:
        prepare(arguments.out, True)
        prepare(arguments.work, False)
        earlier = [manifest.read(folder) for folder in reversed(arguments.resume)]
        campaign = Campaign(os.path.abspath(arguments.work), os.path.abspath(arguments.out), arguments.minutes,
                            arguments.max_files, arguments.max_file_mib << 20, arguments.spillway, earlier)
        for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(sign, campaign.runner.stop)
        try:
            campaign.look_around()
            campaign.run(arguments.phases)
        except Stopped:
            campaign.write()
            say(f"interrupted; what was done is in {arguments.out}")
            return 130
    except manifest.Unreadable as error:
        print(f"gpu_campaign.sh: {error}", file=sys.stderr)
        return 2
    counts = {}
    for step in campaign.document["steps"]:
        counts[step["status"]] = counts.get(step["status"], 0) + 1
    say(f"in {arguments.out}: {manifest.NAME} and {len(campaign.pack.parts)} parts of {STEM}; steps: "
        + ", ".join(f"{count} {status}" for status, count in counts.items()))
    return 0 if set(counts) <= {manifest.DONE, manifest.SKIPPED} else 1


if __name__ == "__main__":
    sys.exit(main())
