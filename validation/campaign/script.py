"""What scripts that judge a campaign's results share: their arguments, and the rows that they write."""
import argparse
import json


def parser_of(doc):
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="RESULTS_FOLDER")
    parser.add_argument("--spillway", default="build/cli/spillway", metavar="PROGRAM")
    parser.add_argument("--output", metavar="FILE.json")
    return parser


def add_profile(parser):
    parser.add_argument("--profile", default="h100-sxm5-80gb", metavar="NAME")
    return parser


def write_rows(rows, path):
    if path:
        with open(path, "w", encoding="utf-8") as out:
            json.dump(rows, out, indent=1)
