"""campaign.json: what a campaign has done so far, written anew after every step; `spillway validate results` reads it."""
import json
import os

NAME = "campaign.json"
DONE, FAILED, SKIPPED, STOPPED, LEFT = "done", "failed", "skipped", "stopped", "left"


class Unreadable(Exception):
    pass


NOTHING_KNOWN = {"measured": None, "blind": None, "blind_profile": "", "from_trace": None}


def empty():
    return {"schema": "spillway-campaign", "version": 1, "spillway": "", "machine": {}, "finished": False, "steps": [],
            "comparisons": [], "allocator": [], "packs": [], "left_out": [], "kept": {}}


def without_unknown(document):
    """What isn't known has no key."""
    rows = [{key: value for key, value in row.items() if value not in (None, "")} for row in document["comparisons"]]
    steps = [{key: value for key, value in step.items() if value != ""} for step in document["steps"]]
    return {**document, "comparisons": rows, "steps": steps}


def write(folder, document):
    path = os.path.join(folder, NAME)
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump(without_unknown(document), file, indent=1)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".part", path)


def read(folder):
    path = os.path.join(folder, NAME)
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except OSError as error:
        raise Unreadable(f"{path}: {error.strerror}; name the folder that a campaign wrote to (--out)") from None
    except ValueError:
        raise Unreadable(f"{path}: is cut off; name a folder that a campaign left whole") from None
    if not isinstance(document, dict) or document.get("schema") != "spillway-campaign" or document.get("version") != 1:
        raise Unreadable(f"{path}: is no campaign of this version")
    return document


def resume(document, earlier):
    """Takes over what earlier calls have done, what later steps need of it, and their comparisons."""
    known = {step["name"] for step in document["steps"]}
    for step in earlier["steps"]:
        if step["status"] == DONE and step["name"] not in known:
            document["steps"].append({"reason": "", **step, "earlier": True})
    cases = {(row["case"], row["metric"]) for row in document["comparisons"]}
    document["comparisons"] += [{**NOTHING_KNOWN, **row} for row in earlier["comparisons"] if (row["case"], row["metric"]) not in cases]
    checks = {verdict["check"] for verdict in document["allocator"]}
    document["allocator"] += [verdict for verdict in earlier.get("allocator", []) if verdict["check"] not in checks]
    for name, kept in earlier["kept"].items():
        document["kept"].setdefault(name, kept)
