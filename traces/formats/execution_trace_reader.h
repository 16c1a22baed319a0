// PyTorch ExecutionTrace JSON (ExecutionTraceObserver), schemas 1.0.1 (flat fields) to 1.1.1-chakra.0.0.4.
//
// The file is a tree of operator calls with their tensors; it has neither times nor frees.
//
//   every call                              -> span, with its record-function id (traces/join.h)
//   a call without calls of its own (leaf)  -> op too, `Ops::span` its call; a kernel, copy or collective when
//                                              its tensors live on a GPU and it does more than describe,
//                                              else host_work
//
// Ops are in call order (node id) over all threads; kernels of one GPU share one stream. Durations are
// unknown. Phases are inferred: Optimizer.* annotations; "## forward ##" and "## backward ##"; the thread
// of autograd::engine::evaluate_function, fw_parent and fw_tid; what is left before is forward.
//
// Tensors. A value is [tensor id, storage id, offset, elements, bytes per element, device]. Both ids stand for
// addresses, and an address that is reused repeats its id: they do not name a tensor for good. A storage begins a new
// life when an op returns it without having been given it, or when it is found with another element size. Storage bytes
// are max((offset + elements) x element bytes) over a life. A storage only ever seen as an input existed before.
//
// Uses: inputs are read; outputs, and inputs that the operator's schema marks with "!", are written.
// Edges, per life of a storage: data from the last writer to each reader; control (inferred) from the last
// writer and the readers since to the next writer.
#pragma once

#include "base/byte_source.h"
#include "traces/formats/read.h"

namespace spillway::traces {

// Throws InputError for broken JSON, files without "nodes" and parents in a circle. O(bytes).
Trace read_execution_trace(ByteSource& source, const ReadOptions& options);

}  // namespace spillway::traces
