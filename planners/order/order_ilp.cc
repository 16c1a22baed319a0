#include "planners/order/order_ilp.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "base/input_error.h"
#include "planners/order/integer_program.h"
#include "planners/order/order_links.h"

namespace spillway::planners {
namespace {

using Column = IntegerProgram::Column;

class Model {
 public:
  explicit Model(const OrderGraph& graph) : graph_(graph), links_(graph) {
    find_spans();
    for (const OrderTensor& tensor : graph.tensors) unit_ = std::gcd(unit_, tensor.size);
    unit_ = std::max<std::int64_t>(unit_, 1);
    // In units all peaks are whole, between what one operator reads and makes and the peak of a legal order.
    std::int64_t least = 0;
    for (OperatorIndex op = 0; op < n_; ++op) {
      std::int64_t beside = links_.made(op);
      for (const TensorIndex t : links_.in(op)) beside += links_.size(t);
      least = std::max(least, beside);
    }
    const std::int64_t most = peak_of_order(graph, legal_order(graph)) - graph.constant_bytes;
    peak_ = program_.add_column(in_units(least), in_units(most), 1, false);
    add_operators();
    for (TensorIndex t = 0; t < links_.tensors(); ++t) {
      add_precedence(t);
      if (links_.size(t) > 0) add_life(t);
    }
    for (std::size_t step = 0; step < n_; ++step) add_step(step);
  }

  OrderIlpResult solve(int node_limit) const {
    const IntegerProgramResult found = program_.solve(node_limit, 0.99);
    OrderIlpResult result;
    if (found.values.empty()) return result;
    result.proven = found.proven;
    result.order.resize(n_);
    for (OperatorIndex op = 0; op < n_; ++op) {
      std::size_t step = first_[op];
      while (step < last_[op] && found.values[at(done_[op]) + step - first_[op]] < 0.5) ++step;
      result.order[step] = op;
    }
    result.peak_bytes = peak_of_order(graph_, result.order);
    return result;
  }

 private:
  static std::size_t at(Column column) { return static_cast<std::size_t>(column); }
  [[nodiscard]] double in_units(std::int64_t bytes) const {
    return static_cast<double>(bytes) / static_cast<double>(unit_);
  }

  // A row that is being put together: sum of terms, and what is known of it beforehand.
  struct Row {
    IntegerProgram::Terms terms;
    double known = 0;
  };
  // Adds `factor` if the operator has run by the end of a step; step -1 is before the first.
  void add_done(Row& row, OperatorIndex op, std::int64_t step, double factor) const {
    if (step < static_cast<std::int64_t>(first_[op])) return;
    if (step >= static_cast<std::int64_t>(last_[op])) {
      row.known += factor;
      return;
    }
    row.terms.emplace_back(done_[op] + static_cast<Column>(step - static_cast<std::int64_t>(first_[op])), factor);
  }
  void add_row(const Row& row, double lower, double upper) {
    if (!row.terms.empty()) program_.add_row(lower - row.known, upper - row.known, row.terms);
  }

  // First and last step of each operator: as many as it has ancestors, and all but its descendants.
  void find_spans() {
    std::vector<std::vector<bool>> before(n_, std::vector<bool>(n_, false));
    for (const OperatorIndex op : legal_order(graph_)) {
      for (const TensorIndex t : links_.in(op)) {
        const OperatorIndex source = links_.source(t);
        before[op][source] = true;
        for (std::size_t i = 0; i < n_; ++i)
          if (before[source][i]) before[op][i] = true;
      }
    }
    first_.assign(n_, 0);
    last_.assign(n_, n_ - 1);
    for (OperatorIndex op = 0; op < n_; ++op) {
      for (OperatorIndex ancestor = 0; ancestor < n_; ++ancestor) {
        if (!before[op][ancestor]) continue;
        ++first_[op];
        --last_[ancestor];
      }
    }
  }

  // Once run, an operator stays so.
  void add_operators() {
    done_.resize(n_);
    for (OperatorIndex op = 0; op < n_; ++op) {
      for (std::size_t step = first_[op]; step < last_[op]; ++step) {
        const Column column = program_.add_column(0, 1, 0, true);
        if (step == first_[op]) done_[op] = column;
        if (step > first_[op]) program_.add_row(0, IntegerProgram::infinity, {{column, 1.0}, {column - 1, -1.0}});
      }
    }
  }

  // A sink has run by a step only if the source had by the one before.
  void add_precedence(TensorIndex t) {
    for (const OperatorIndex sink : links_.sinks(t)) {
      for (std::size_t step = first_[sink]; step <= last_[sink]; ++step) {
        Row row;
        add_done(row, links_.source(t), static_cast<std::int64_t>(step) - 1, 1);
        add_done(row, sink, static_cast<std::int64_t>(step), -1);
        add_row(row, 0, IntegerProgram::infinity);
      }
    }
  }

  // A tensor is kept at a step if its source has run before it and some sink has not.
  void add_life(TensorIndex t) {
    const OperatorIndex source = links_.source(t);
    std::size_t end = 0;
    for (const OperatorIndex sink : links_.sinks(t)) end = std::max(end, last_[sink]);
    for (std::size_t step = first_[source] + 1; step <= end && !links_.sinks(t).empty(); ++step) {
      const Column kept = program_.add_column(0, 1, 0, false);
      kept_[step].emplace_back(kept, in_units(links_.size(t)));
      for (const OperatorIndex sink : links_.sinks(t)) {
        Row row{{{kept, 1.0}}};
        add_done(row, source, static_cast<std::int64_t>(step) - 1, -1);
        add_done(row, sink, static_cast<std::int64_t>(step) - 1, 1);
        add_row(row, 0, IntegerProgram::infinity);
      }
    }
  }

  // As many have run as there were steps, and what is kept and what is made stays below the peak.
  void add_step(std::size_t step) {
    const auto now = static_cast<std::int64_t>(step);
    Row count, live{kept_[step]};
    live.terms.emplace_back(peak_, -1.0);
    for (OperatorIndex op = 0; op < n_; ++op) {
      add_done(count, op, now, 1);
      if (links_.made(op) == 0) continue;
      add_done(live, op, now, in_units(links_.made(op)));
      add_done(live, op, now - 1, -in_units(links_.made(op)));
    }
    add_row(count, static_cast<double>(step + 1), static_cast<double>(step + 1));
    add_row(live, -IntegerProgram::infinity, 0);
  }

  const OrderGraph& graph_;
  const OrderLinks links_;
  const std::size_t n_ = graph_.operators.size();
  IntegerProgram program_;
  std::int64_t unit_ = 0;
  Column peak_ = 0;
  std::vector<std::size_t> first_, last_;
  std::vector<Column> done_;  // by operator: whether it has run by the end of its first step, and so on
  std::vector<IntegerProgram::Terms> kept_ = std::vector<IntegerProgram::Terms>(n_);  // by step
};

}  // namespace

OrderIlpResult solve_order_ilp(const OrderGraph& graph, const OrderIlpOptions& options) {
  if (graph.operators.size() > options.largest)
    throw InputError("", "",
                     "an integer program is for graphs of at most " + std::to_string(options.largest) +
                         " operators, this one has " + std::to_string(graph.operators.size()),
                     "choose another method");
  if (graph.operators.empty()) return {{}, graph.constant_bytes, true};
  return Model(graph).solve(options.node_limit);
}

}  // namespace spillway::planners
