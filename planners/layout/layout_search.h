// Exhaustive search for a layout of at most a given height, or the proof that there is none.
//
// Layouts are built bottom up. The *head* of an unplaced buffer is the lowest offset left to it: the highest top of
// what is placed in its sections. Some buffer that nothing unplaced can slip under is chosen and tried in two ways:
//
//   place   it lies at its head, and everything else in its sections above it;
//   skip    it does not: as every layout can be pushed down until each buffer lies on the ground or on another, it then
//           lies on one not yet placed, and its head rises to the lowest top that any of those can have.
//
// The two exclude each other, so nothing is tried twice. A node is cut off in two cases. Some section's unplaced
// buffers, each no lower than its head, can't be stacked below the capacity (the chain, below). Or the same buffers
// with the same heads have failed before: what is placed below matters through the heads alone. Ranges of time that no
// unplaced buffer joins any more are solved apart. If one can't be, the placement that parted them is wrong, whatever
// the others allow.
//
//   offset ^  capacity ------------- the chain of a section: unplaced buffers by head, each at its head or
//          |      ...  +---+         on the one before; gaps are waste. A buffer that leaves too much waste
//          |  gap      | b |         below it to be the section's next is at least on top of the
//          |  +---+    +---+         only one that can be.
//          |  | a |  gap
//          |  +---+
//          +--#floor#-------
//
// Bounds only rise on the way down the tree. A node begins with its parent's bounds and stacks only the sections where
// a floor or a bound has changed since. The way back undoes both.
//
// Sources: the bottom-up search with section totals, decomposition and canonical layouts is that of Moffitt,
// "MiniMalloc" (ASPLOS 2023). Ours: skip instead of canonical order, so that any buffer may be chosen next, chains
// instead of totals, failures remembered, restarts from several orders.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "planners/layout/layout_chain.h"
#include "planners/layout/layout_sections.h"
#include "planners/layout/layout_solver.h"

namespace spillway::planners {

// Rule for the next buffer, among those that nothing can slip under.
enum class LayoutChoice : std::uint8_t {
  lowest,     // the lowest head, of equal ones the first in the order
  tightest,   // the one in the section with the least slack
  narrowest,  // the one in the section where the fewest can come next
};

// Each of these can be switched off and changes the effort alone, never the answer.
struct LayoutSearchRules {
  bool memory = true;   // remember what failed, at first in few places: short searches shouldn't pay for long ones
  bool next = true;     // raise heads where only one buffer can be a section's next
  bool twins = true;    // of equal buffers with equal lifetimes the first in the order lies lowest
  bool parting = true;  // solve independent ranges of time apart
  bool blame = true;    // to the tightest choice, sections where chains failed are tighter than they look
  std::size_t first_memory = 4096;  // those places; more, four times as many each, once as much has failed
};

class LayoutSearch {
 public:
  enum class State : std::uint8_t { running, found, infeasible };

  // Buffers of size > 0; fixed offsets and alignments are kept. `capacity` and all sizes below 2^30 after division by
  // unit_of().
  LayoutSearch(std::span<const LayoutBuffer> buffers, const LayoutSections& sections, LayoutSearchRules rules = {});

  // Forgets the tree and begins again; what failed at this capacity is still known. `rank` is the order: the position
  // of each buffer.
  void restart(std::int64_t capacity, std::span<const std::int32_t> rank, LayoutChoice choice);

  // Goes on for at most `effort` nodes.
  State run(std::int64_t effort);

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] std::int64_t effort() const { return effort_; }  // nodes since the construction
  [[nodiscard]] std::vector<std::int64_t> offsets() const;       // once found
  // The greatest common divisor of sizes, alignments and fixed offsets: heights of interest are its multiples.
  static std::int64_t unit_of(std::span<const LayoutBuffer> buffers);

 private:
  using Int = std::int32_t;
  using Item = SearchItem;
  struct Frame {
    Int lower, upper;                  // its sections
    Int begin, count;                  // its unplaced items, in items_, by bound
    Int parent, part;                  // the frame it came from; -1 for the first of a part, and the part it belongs to
    Int skips, bounds, chains;         // where its undo records begin
    Int changed_from, changed_to;      // sections where chains are still those of the frame it came from
    std::uint64_t key, check;          // of its items and heads
    Int placed;                        // the item it is trying, or -1; what follows is about that
    bool alone;                        // nothing unplaced shares a section with it
    Int heads, floors, placed_bounds;  // where the undo records of the placement begin
    Int touched_from, touched_to;      // sections where it changed a floor or a bound
    std::uint64_t next_key, next_check;  // of the items and heads it leaves
  };
  struct Parting {
    Int creator, parent, begin, count, next;
    Int touched_from, touched_to;
  };
  struct OldChain {  // to be undone
    Int section, top, choices;
  };
  struct Failure {
    std::uint64_t key = 0, check = 0;
  };

  void begin();
  void push(Int lower, Int upper, Int parent, Int part);
  void list_items(Int lower, Int upper, Int source);
  void pop();
  bool next_part(Int part);
  void descend(Int frame);
  void place(Frame& frame, Int item);
  void unplace(Frame& frame);
  void fail();
  void unwind(Int frame);
  Int choose(Frame& frame);
  void undo_bounds(Int size);
  void undo_chains(Int size);
  [[nodiscard]] bool can_support(Int index, Int bound) const;
  bool raise_skipped(Frame& frame);
  bool raise(Frame& frame, Int position, Int bound);
  void stack_anew(Int lower, Int upper);
  bool chain(Frame& frame);
  bool chain_window(Frame& frame, Int lower, Int upper);
  [[nodiscard]] bool fixed_ones_fit(const Frame& frame) const;
  void hash(Frame& frame) const;
  void blame(const Item& item);
  [[nodiscard]] Int item_of(SearchKey key) const { return order_[static_cast<std::size_t>(rank_of(key))]; }
  [[nodiscard]] Int lowest(const Frame& frame) const;
  [[nodiscard]] Int tightest(const Frame& frame) const;
  [[nodiscard]] Int narrowest(const Frame& frame) const;
  [[nodiscard]] bool open(Int item) const;
  [[nodiscard]] bool nothing_slips_under(Int item) const;
  [[nodiscard]] Int aligned(Int offset, const Item& item) const;
  [[nodiscard]] bool known_failure(const Frame& frame) const;
  void remember(const Frame& frame);

  LayoutSearchRules rules_;
  std::int64_t unit_ = 1, effort_ = 0, given_capacity_ = -1;
  Int sections_ = 0, capacity_ = 0;
  LayoutChoice choice_ = LayoutChoice::lowest;
  State state_ = State::infeasible;
  std::vector<Item> all_;
  std::vector<Int> neighbours_, neighbours_begin_;  // items sharing a section
  std::vector<Int> rank_, order_, offset_, head_, skipped_, support_, bound_;
  std::vector<char> placed_;
  std::vector<Int> floor_, latest_, crossing_, top_, lowest_top_, choices_;  // of sections
  std::vector<float> blame_;  // of sections: 1 and more the more they failed
  std::vector<Frame> frames_;
  std::vector<Parting> partings_;
  std::vector<std::pair<Int, Int>> parts_;
  std::vector<SearchKey> items_, moved_;
  std::vector<std::pair<Int, Int>> old_heads_, old_skips_, old_bounds_, windows_;
  std::vector<Int> old_floors_;
  std::vector<OldChain> old_chains_;
  bool any_fixed_ = false;
  std::vector<Failure> failures_;
  std::size_t remembered_ = 0;  // failures at this capacity
};

}  // namespace spillway::planners
