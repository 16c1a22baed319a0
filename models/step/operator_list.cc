#include "models/step/operator_list.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/byte_source.h"
#include "base/field_reader.h"
#include "base/field_schema.h"
#include "base/input_error.h"
#include "models/network/attention_size.h"
#include "models/session/eager_session.h"
#include "models/spec/training_setup_fields.h"
#include "models/step/step_clock.h"
#include "traces/size_check.h"

namespace spillway::models {
namespace {

constexpr std::uint64_t largest_list = std::uint64_t{1} << 30;
constexpr std::int64_t most_bytes = std::int64_t{1} << 50, most_side = std::int64_t{1} << 31;
constexpr std::int64_t most_tensors = std::int64_t{1} << 31;
constexpr std::size_t look_ahead = 4096;
constexpr std::string_view format_name = "operators";

constexpr double as_limit(std::int64_t value) { return static_cast<double>(value); }

const Words& kind_words() {
  static const Words words = {{"gemm", "a matrix product"},
                              {"attention_forward", "fused attention"},
                              {"attention_backward", "its gradients"},
                              {"memory_bound", "all else"},
                              {"copy_to_device", "from host memory"}};
  return words;
}

const Words& type_words() {
  static const Words words = {{"bf16"}, {"fp32"}, {"int64"}, {"byte"}, {"fp16"}, {"fp8"}, {"tf32"}, {"fp4"}};
  return words;
}

const Words& layout_words() {
  static const Words words = {{"tn", "k contiguous in both"},
                              {"nn", "k in the first, n in the second"},
                              {"nt", "m in the first, n in the second"}};
  return words;
}

const Words& memory_words() {
  static const Words words = {{"elementwise"}, {"norm_forward"}, {"norm_backward"},
                              {"softmax"},     {"gather"},       {"optimizer"}};
  return words;
}

const Words& access_words() {
  static const Words words = {
      {"streamed", "16 bytes a thread"}, {"strided", "element by element"}, {"column_sum", "a reduction over rows"}};
  return words;
}

template <class Enum>
Words words_of(int count) {
  std::vector<Word> words;
  for (int i = 0; i < count; ++i) words.push_back({to_string(static_cast<Enum>(i))});
  return Words(std::move(words));
}

const Words& phase_words() {
  static const Words words = words_of<Phase>(traces::phase_count);
  return words;
}

const Words& role_words() {
  static const Words words = words_of<TensorRole>(static_cast<int>(TensorRole::input) + 1);
  return words;
}

void side(FieldVisitor& visitor, std::string_view key, std::int64_t least, std::int64_t& value) {
  fields::integer(visitor, {.key = key, .min = as_limit(least), .max = as_limit(most_side)}, value);
}

void describe(KernelCost& cost, FieldVisitor& visitor) {
  fields::word(visitor, {.key = "kind", .about = "What its time follows."}, cost.kind, kind_words());
  fields::word(visitor, {.key = "type", .about = "Of its operands."}, cost.type, type_words());
  fields::bytes(visitor,
                {.key = "bytes", .max = as_limit(most_bytes), .about = "Read from and written to device memory."},
                cost.bytes);
  fields::word(visitor, {.key = "memory", .about = "Of memory_bound."}, cost.memory, memory_words());
  fields::word(visitor, {.key = "access", .about = "Of memory_bound."}, cost.access, access_words());
  fields::group(visitor, {.key = "product", .about = "Of gemm: C[m,n] = A[m,k] B[k,n], batch times."}, [&] {
    for (const auto& [key, value] :
         {std::pair{"m", &cost.gemm.m}, {"n", &cost.gemm.n}, {"k", &cost.gemm.k}, {"batch", &cost.gemm.batch}})
      side(visitor, key, 1, *value);
    fields::word(visitor, {.key = "layout", .about = "Sides that lie contiguous."}, cost.gemm.layout, layout_words());
  });
  AttentionShape& shape = cost.attention;
  fields::group(visitor, {.key = "attention", .about = "Of attention_forward and attention_backward."}, [&] {
    for (const auto& [key, value] : {std::pair{"batch", &shape.batch},
                                     {"heads", &shape.heads},
                                     {"kv_heads", &shape.kv_heads},
                                     {"sequence", &shape.sequence},
                                     {"head_dim", &shape.head_dim}})
      side(visitor, key, 1, *value);
    side(visitor, "keys", 0, shape.keys);
    fields::flag(visitor, {.key = "causal"}, shape.causal);
    fields::flag(visitor, {.key = "dropout"}, shape.dropout);
    fields::word(visitor, {.key = "kernel"}, shape.kernel, attention_kernel_words());
  });
}

void numbers(FieldVisitor& visitor, std::string_view key, std::string_view about, std::vector<std::int64_t>& values) {
  visitor.integers({.key = key, .max = as_limit(most_tensors), .about = about, .even_empty = true}, values);
}

// What a file may get wrong that its fields alone don't show.
class Lives {
 public:
  Lives(const OperatorList& list, std::string file) : list_(list), file_(std::move(file)) {}

  void check() {
    lives_.assign(list_.tensors.size(), Life::none);
    for (row_ = 0; row_ < list_.operators.size(); ++row_) {
      const ListedOperator& row = list_.operators[row_];
      for (const std::int64_t tensor : row.allocates) pass(tensor, Life::none, Life::there, "is allocated twice");
      for (const auto* used : {&row.reads, &row.writes})
        for (const std::int64_t tensor : *used) pass(tensor, Life::there, Life::there, "is used while it isn't there");
      for (const std::int64_t tensor : row.frees)
        pass(tensor, Life::there, Life::gone, "is freed while it isn't there");
    }
    if (list_.first >= static_cast<std::int64_t>(list_.operators.size())) fail("/first", "no operator has this number");
  }

 private:
  enum class Life : std::uint8_t { none, there, gone };

  void pass(std::int64_t tensor, Life from, Life to, const char* cause) {
    const std::string place = fmt::format("/operators/{}", row_);
    if (tensor >= static_cast<std::int64_t>(lives_.size())) fail(place, fmt::format("there is no tensor {}", tensor));
    Life& life = lives_[static_cast<std::size_t>(tensor)];
    if (life != from) fail(place, fmt::format("tensor {} {}", tensor, cause));
    life = to;
  }
  [[noreturn]] void fail(const std::string& place, const std::string& cause) const {
    throw InputError(file_, place, cause, "write the list again: spillway.fits(.., keep=FILE)");
  }

  const OperatorList& list_;
  std::string file_;
  std::vector<Life> lives_;
  std::size_t row_ = 0;
};

KernelCost with_flops(KernelCost cost) {
  constexpr std::int64_t forward_products = 2, backward_products = 5;
  const GemmShape& gemm = cost.gemm;
  if (cost.kind == KernelClass::gemm) cost.flops = Flops(2 * gemm.m * gemm.n * gemm.k * gemm.batch);
  if (cost.kind == KernelClass::attention_forward) cost.flops = flash_flops(cost.attention, forward_products);
  if (cost.kind == KernelClass::attention_backward) cost.flops = flash_flops(cost.attention, backward_products);
  return cost;
}

}  // namespace

void describe(OperatorList& list, FieldVisitor& visitor) {
  visitor.head({.schema = operator_list_schema_name, .noun = "a list of operators"});
  fields::text(visitor, {.key = "title"}, list.title);
  fields::text(visitor, {.key = "producer", .about = "Program and version that noted them."}, list.producer);
  fields::list(visitor,
               {.key = "tensors",
                .about = "Allocations, [name, bytes, role] each; elsewhere they are known by their number.",
                .required = true,
                .as_tuple = true},
               list.tensors, [&](ListedTensor& tensor) {
                 fields::text(visitor, {.key = "name", .even_empty = true}, tensor.name);
                 fields::integer(visitor, {.key = "bytes", .min = 1, .max = as_limit(most_bytes)}, tensor.bytes);
                 fields::word(visitor, {.key = "role"}, tensor.role, role_words());
               });
  fields::integer(visitor,
                  {.key = "first",
                   .max = as_limit(most_tensors),
                   .about = "The step's first operator; of those before it the allocations alone count."},
                  list.first);
  fields::list(visitor, {.key = "operators", .about = "In the program's order.", .required = true}, list.operators,
               [&](ListedOperator& row) {
                 fields::text(visitor, {.key = "name", .about = "Of the kernel; absent: there is none."}, row.name);
                 fields::word(visitor, {.key = "phase"}, row.phase, phase_words());
                 fields::integer(visitor, {.key = "layer", .min = -1, .max = 0xfffe, .about = "-1: none."}, row.layer);
                 fields::integer(visitor, {.key = "micro_batch", .min = -1, .max = 0xfffe, .about = "-1: none."},
                                 row.micro_batch);
                 numbers(visitor, "allocates", "Tensors allocated before it.", row.allocates);
                 numbers(visitor, "reads", "Tensors it reads.", row.reads);
                 numbers(visitor, "writes", "Tensors it writes.", row.writes);
                 numbers(visitor, "frees", "Tensors freed behind it.", row.frees);
                 describe(row.cost, visitor);
               });
}

std::string operator_list_schema() {
  OperatorList list;
  FieldSchema schema;
  describe(list, schema);
  return schema.document("spillway-operators.v1", "spillway list of operators",
                         "One training step on one GPU as a program noted its operators, without times: `spillway run "
                         "FILE --on MACHINE` says what they take there (docs/how-to/apply-a-plan-in-pytorch.md).");
}

bool is_operator_list(const std::string& path) {
  try {
    ByteSource source = ByteSource::open(path, largest_list);
    const auto bytes = source.peek(look_ahead);
    const std::string_view head(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return head.find('"' + std::string(operator_list_schema_name) + '"') != std::string_view::npos;
  } catch (const InputError&) {
    return false;  // who reads it says why
  }
}

OperatorList read_operator_list(const std::string& path) {
  OperatorList list;
  ByteSource source = ByteSource::open(path, largest_list);
  read_document(source.read_all(largest_list), path, [&](FieldVisitor& visitor) { describe(list, visitor); });
  Lives(list, path).check();
  return list;
}

Trace priced_step(const OperatorList& list, const CostModel& cost) {
  EagerSession session(cost, cost.gpu().title);
  session.merge_free_events();
  std::vector<Tensor> tensors(list.tensors.size());
  const auto at = [](std::int64_t number) { return static_cast<std::size_t>(number); };
  const auto handles = [&](const std::vector<std::int64_t>& numbers) {
    std::vector<Tensor> found;
    for (const std::int64_t number : numbers) found.push_back(tensors[at(number)]);
    return found;
  };
  for (std::size_t r = 0; r < list.operators.size(); ++r) {
    const ListedOperator& row = list.operators[r];
    const bool is_of_step = r >= at(list.first);
    if (r == at(list.first)) session.begin_step("step 0");
    session.set_phase(row.phase);
    session.set_layer(row.layer);
    session.set_micro_batch(row.micro_batch);
    for (const std::int64_t number : row.allocates) {
      const ListedTensor& tensor = list.tensors[at(number)];
      tensors[at(number)] = session.empty(tensor.name, DataType::byte, tensor.bytes, tensor.role);
    }
    if (is_of_step && !row.name.empty()) {
      const bool is_copy = row.cost.kind == KernelClass::copy_to_device;
      session.kernel({.name = row.name,
                      .reads = handles(row.reads),
                      .writes = handles(row.writes),
                      .cost = with_flops(row.cost),
                      .bytes = row.cost.bytes,
                      .kind = is_copy ? OpKind::copy_host_to_device : OpKind::kernel});
    }
    for (const std::int64_t number : row.frees) tensors[at(number)] = {};
  }
  Trace step = session.finish();
  const std::vector<DrawingOp> drawing = session.take_drawing();
  settle_clock(step, {.shown = drawing, .before = drawing}, step.steps.back().duration, cost);
  step.provenance.push_back({.format = std::string(format_name), .producer = list.producer});
  traces::check_sizes(step);
  return step;
}

bool is_priced(const Trace& trace) {
  return !trace.provenance.empty() && trace.provenance.front().format == format_name;
}

}  // namespace spillway::models
