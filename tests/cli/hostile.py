"""Names of files as somebody would write them who wants a page to run them."""
import os
import pickle

NAME = ("</script><script>window.ran=1</script><img src=\"https://127.0.0.1:9/x.png\" onerror=\"window.ran=2\">"
        "\u2028\u202ekcab\"'&amp;<svg onload=window.ran=3>")


def snapshot(root, folder):
    """A memory snapshot with such names for all functions; its path."""
    with open(os.path.join(root, "traces/data/ran-out/snapshot.pickle"), "rb") as file:
        recorded = pickle.load(file)
    for trace in recorded["device_traces"]:
        for event in trace:
            for frame in event["frames"]:
                frame["name"] += NAME
    path = os.path.join(folder, "hostile.pickle")
    with open(path, "wb") as file:
        pickle.dump(recorded, file)
    return path
