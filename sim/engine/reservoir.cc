#include "sim/engine/reservoir.h"

#include <limits>

#include "base/input_error.h"
#include "sim/engine/fluid_network.h"

namespace spillway::sim {

namespace {

// Levels are held in 2^-16 of what one Rate unit moves in one picosecond.
constexpr Wide level_scale = static_cast<Wide>(std::int64_t{1000} << 20) << 16;

void require(bool condition, const char* field, const char* cause) {
  if (!condition) throw InputError("", std::string("reservoir ") + field, cause, "correct the value");
}

std::int64_t whole(Wide scaled) { return static_cast<std::int64_t>(scaled / level_scale); }

}  // namespace

Reservoir::Reservoir(const ReservoirSpec& spec) : spec_(spec) {
  require(spec.size > 0 && spec.size <= max_amount, "size", "it must lie in (0, 2^62]");
  require(spec.resume_level >= 0 && spec.resume_level < spec.size, "resume_level", "it must lie in [0, size)");
  require(spec.initial_level >= 0 && spec.initial_level <= spec.size, "initial_level", "it must lie in [0, size]");
  require(spec.drain >= Rate{} && spec.drain <= max_capacity, "drain", "it is negative or too large");
  require(spec.fast >= Rate{} && spec.fast <= max_capacity, "fast", "it is negative or too large");
  require(spec.slow >= Rate{} && spec.slow <= max_capacity, "slow", "it is negative or too large");
  require(spec.fold_level == 0 || (spec.fold_level > spec.resume_level && spec.fold_level < spec.size), "fold_level",
          "it must be 0 or lie in (resume_level, size)");
  require(spec.fold >= Rate{} && spec.fold <= max_capacity, "fold", "it is negative or too large");
  brim_ = spec.size * level_scale;
  fold_ = spec.fold_level > 0 ? spec.fold_level * level_scale : brim_;
  resume_ = spec.resume_level * level_scale;
  level_ = initial_ = spec.initial_level * level_scale;
  drain_ = spec.drain.count() << 16;
  stage_ = level_ == brim_ ? Stage::slow : level_ >= fold_ ? Stage::fold : Stage::fast;
}

std::int64_t Reservoir::net_rate() const {
  const std::int64_t net = inflow_ - drain_;
  if ((level_ == brim_ && net > 0) || (level_ == 0 && net < 0)) return 0;
  return net;
}

void Reservoir::settle(Picos now) {
  const Wide span = (now - settled_).count();
  settled_ = now;
  if (span == 0) return;
  const Wide in = span * inflow_;
  inflow_total_ += in;
  Wide out = span * drain_;
  if (level_ + in < out) out = level_ + in;  // nothing comes from below the floor
  drained_ += out;
  level_ += in - out;
  if (level_ > brim_) {
    bypassed_ += level_ - brim_;
    level_ = brim_;
  }
}

void Reservoir::set_inflow(Picos now, std::int64_t scaled_rate) {
  settle(now);
  inflow_ = scaled_rate;
}

Picos Reservoir::next_event() const {
  const std::int64_t net = net_rate();
  if (net == 0) return Picos::max();
  Wide distance = level_;
  if (net > 0)
    distance = (stage_ == Stage::fast && level_ < fold_ ? fold_ : brim_) - level_;
  else if (stage_ != Stage::fast)
    distance = level_ - resume_;
  const Wide speed = net > 0 ? net : -static_cast<Wide>(net);
  const Wide wait = (distance + speed - 1) / speed;
  if (wait >= Picos::max().count() - settled_.count()) return Picos::max();
  return settled_ + Picos(static_cast<std::int64_t>(wait));
}

bool Reservoir::advance(Picos now) {
  settle(now);
  const Stage before = stage_;
  if (level_ == brim_)
    stage_ = Stage::slow;
  else if (stage_ == Stage::fast && level_ >= fold_)
    stage_ = Stage::fold;
  if (level_ <= resume_) stage_ = Stage::fast;
  return stage_ != before;
}

std::int64_t Reservoir::level() const { return whole(level_); }
std::int64_t Reservoir::drained() const { return whole(drained_); }
std::int64_t Reservoir::bypassed() const { return whole(bypassed_); }
bool Reservoir::conserves() const { return initial_ + inflow_total_ == level_ + drained_ + bypassed_; }

}  // namespace spillway::sim
