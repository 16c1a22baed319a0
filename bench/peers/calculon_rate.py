#!/usr/bin/env python3
"""How many executions Calculon looks at in a CPU-second of one core, as its own exhaustive search does.

usage: calculon_rate.py CHECKOUT [CPU_SECONDS]

gpt3-175B on 512 A100 at batch 1,536, the search's own order of layouts; stops after CPU_SECONDS (20). Prints the executions, how
many were sound, and the CPU seconds, as JSON. Needs pandas and psutil (python3-pandas and python3-psutil).
"""
import itertools
import json
import os
import random
import sys
import time


def layouts(calculon_llm, app, processors, batch):
    for tensor in calculon_llm.get_all_tensor_parallelisms(processors, app.hidden, app.attn_heads):
        for pipeline in calculon_llm.get_all_pipeline_parallelisms(processors, tensor, app.num_blocks):
            data = calculon_llm.get_data_parallelism(processors, tensor, pipeline)
            if batch % data:
                continue
            chunks = calculon_llm.get_valid_pipeline_interleavings(app.num_blocks, pipeline)
            for options in itertools.product(chunks, ["full", "attn_only", "none"],
                                             [True, False] if data > 1 else [False], ["ar", "p2p_rs_ag", "rs_ag"]):
                yield tensor, pipeline, data, *options


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    checkout, limit = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 20.0
    sys.path.insert(0, checkout)
    import calculon
    from calculon.llm import Llm
    from calculon.llm.optimal_execution import OptimalExecution
    from calculon.system import System

    read = calculon.io.read_json_file
    app = Llm.Application(read(os.path.join(checkout, "models/gpt3-175B.json")))
    system = System(read(os.path.join(checkout, "systems/a100_80g.json")))
    processors, batch = 512, 1536
    work = list(layouts(Llm, app, processors, batch))
    random.Random(1).shuffle(work)  # of all layouts some, not the first ones
    executions = sound = 0
    begin = time.process_time()
    for tensor, pipeline, data, chunks, recompute, shard, communication in work:
        _, tried, good, _, _, _ = OptimalExecution.search(False, 1, False, processors, batch, "float16", app, system, tensor,
                                                          pipeline, data, chunks, batch, recompute, shard, communication,
                                                          [True], False, True, True)
        executions, sound = executions + tried, sound + good
        if time.process_time() - begin > limit:
            break
    print(json.dumps({"executions": executions, "sound": sound, "cpu_seconds": time.process_time() - begin}))


if __name__ == "__main__":
    main()
