// SimGrid and spillway's engine on the same workloads, side by side: operators per second, and the simulated
// time, which must agree.
//
// SimGrid's engine is a singleton that runs once, so each of its runs is a child process that reports through a pipe.
// Processor time of the run alone for both (set-up excluded; a busy machine does not count), spillway's as the best of
// five.
#include <sys/wait.h>
#include <unistd.h>

#include <simgrid/s4u.hpp>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "bench/engine_workload_graph.h"
#include "sim/engine/executor.h"

namespace {

namespace sg = simgrid::s4u;
using spillway::bench::Operator;
using spillway::bench::Workload;

constexpr double flops_per_second = 1e9;  // one flop per nanosecond

struct Platform {
  std::vector<sg::Host*> hosts;
  std::vector<sg::Host*> ends;  // two per copy path
  std::vector<sg::Link*> links;
  sg::NetZone* zone = nullptr;
};

Platform make_platform(const Workload& workload) {
  Platform p;
  p.zone = sg::create_full_zone("all");
  for (std::uint32_t i = 0; i < workload.lanes; ++i)
    p.hosts.push_back(p.zone->create_host("host" + std::to_string(i), flops_per_second)->seal());
  for (std::uint32_t i = 0; i < workload.links; ++i)
    p.links.push_back(p.zone->create_link("link" + std::to_string(i), spillway::bench::link_bytes_per_second)
                          ->set_latency(0.0)
                          ->seal());
  return p;
}

// A pair of hosts joined by a route over the given links.
std::pair<sg::Host*, sg::Host*> join(Platform& p, const std::vector<std::uint32_t>& links) {
  static std::vector<std::pair<std::vector<std::uint32_t>, std::pair<sg::Host*, sg::Host*>>> known;
  for (const auto& [path, ends] : known)
    if (path == links) return ends;
  const std::string name = std::to_string(known.size());
  sg::Host* from = p.zone->create_host("from" + name, flops_per_second)->seal();
  sg::Host* to = p.zone->create_host("to" + name, flops_per_second)->seal();
  std::vector<sg::LinkInRoute> route;
  for (const std::uint32_t link : links) route.emplace_back(p.links[link]);
  p.zone->add_route(from->get_netpoint(), to->get_netpoint(), nullptr, nullptr, route, false);
  known.push_back({links, {from, to}});
  return known.back().second;
}

std::vector<std::vector<const Operator*>> by_lane(const Workload& workload) {
  std::vector<std::vector<const Operator*>> lanes(workload.lanes);
  for (const Operator& op : workload.operators) lanes[op.lane].push_back(&op);
  return lanes;
}

// One actor per lane does its operators one after the other.
void actors(Platform& p, const Workload& workload) {
  const auto lanes = by_lane(workload);
  for (std::uint32_t lane = 0; lane < workload.lanes; ++lane) {
    std::vector<std::pair<const Operator*, std::pair<sg::Host*, sg::Host*>>> work;
    for (const Operator* op : lanes[lane])
      work.emplace_back(op, op->is_copy ? join(p, op->links) : std::pair<sg::Host*, sg::Host*>());
    sg::Actor::create("lane" + std::to_string(lane), p.hosts[lane], [work] {
      for (const auto& [op, ends] : work) {
        if (op->is_copy) {
          sg::Comm::sendto(ends.first, ends.second, static_cast<std::uint64_t>(op->bytes));
        } else {
          sg::this_actor::execute(static_cast<double>(op->nanoseconds));
        }
      }
    });
  }
}

void order(const sg::ActivityPtr& before, const sg::ActivityPtr& after) {
  if (after->get_dependencies().count(before) != 0) return;
  if (auto* comm = dynamic_cast<sg::Comm*>(before.get())) comm->add_successor(after);
  if (auto* exec = dynamic_cast<sg::Exec*>(before.get())) exec->add_successor(after);
}

// Activities with dependencies; lane order is one more dependency each.
std::vector<sg::ActivityPtr> activities(Platform& p, const Workload& workload) {
  std::vector<sg::ActivityPtr> made;
  std::vector<sg::ActivityPtr> last(workload.lanes);
  for (const Operator& op : workload.operators) {
    sg::ActivityPtr activity;
    if (op.is_copy) {
      const auto [from, to] = join(p, op.links);
      activity = sg::Comm::sendto_init(from, to)->set_payload_size(static_cast<std::uint64_t>(op.bytes));
    } else {
      activity = sg::Exec::init()->set_flops_amount(static_cast<double>(op.nanoseconds))->set_host(p.hosts[op.lane]);
      if (last[op.lane]) order(last[op.lane], activity);
      last[op.lane] = activity;
    }
    for (const std::uint32_t before : op.after) order(made[before], activity);
    made.push_back(activity);
  }
  for (const sg::ActivityPtr& activity : made) activity->vetoable_start();  // waits for what it depends on
  return made;  // SimGrid wants them alive until they are done
}

struct Figures {
  double simulated_seconds = 0, cpu_seconds = 0;
};

double seconds_since(std::clock_t begin) { return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC; }

Figures run_simgrid_here(const Workload& workload) {
  // Rates as ours: plain max-min, no TCP factors, no latency.
  std::vector<std::string> options = {"simgrid_bench", "--cfg=network/model:CM02", "--cfg=network/crosstraffic:0",
                                      "--log=root.thres:critical"};
  std::vector<char*> raw;
  for (std::string& option : options) raw.push_back(option.data());
  int count = static_cast<int>(raw.size());
  sg::Engine engine(&count, raw.data());
  Platform platform = make_platform(workload);
  std::vector<sg::ActivityPtr> alive;
  if (workload.links > 3) {
    alive = activities(platform, workload);
  } else {
    actors(platform, workload);
  }
  platform.zone->seal();
  const std::clock_t begin = std::clock();
  engine.run();
  return {sg::Engine::get_clock(), seconds_since(begin)};
}

Figures run_simgrid(const Workload& workload) {
  int ends[2];
  Figures figures;
  if (pipe(ends) != 0) return figures;
  std::fflush(stdout);  // or the child prints it too
  const pid_t child = fork();
  if (child == 0) {
    figures = run_simgrid_here(workload);
    const bool written = write(ends[1], &figures, sizeof figures) == sizeof figures;
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  if (read(ends[0], &figures, sizeof figures) != sizeof figures) figures = {};
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return figures;
}

Figures run_spillway(const Workload& workload) {
  const spillway::sim::ActivityGraph graph = spillway::bench::to_graph(workload);
  Figures best;
  for (int repeat = 0; repeat < 5; ++repeat) {
    spillway::sim::Executor<> executor(graph);
    const std::clock_t begin = std::clock();
    const spillway::sim::Outcome outcome = executor.run();
    const double spent = seconds_since(begin);
    if (repeat == 0 || spent < best.cpu_seconds) best = {spillway::to_seconds(outcome.end_time), spent};
  }
  return best;
}

void compare(const char* name, const Workload& workload) {
  const auto operators = static_cast<double>(workload.operators.size());
  const Figures ours = run_spillway(workload);
  const Figures theirs = run_simgrid(workload);
  std::printf("%-8s %8.0f %14.0f %14.0f %8.1fx %16.9f %16.9f\n", name, operators, operators / ours.cpu_seconds,
              operators / theirs.cpu_seconds, theirs.cpu_seconds / ours.cpu_seconds, ours.simulated_seconds,
              theirs.simulated_seconds);
}

}  // namespace

int main() {
  std::printf("%-8s %8s %14s %14s %9s %16s %16s\n", "workload", "ops", "spillway ops/s", "simgrid ops/s", "ratio",
              "spillway sim s", "simgrid sim s");
  compare("exec", spillway::bench::exec_workload(8, 10'000));
  compare("comm", spillway::bench::comm_workload(8, 5'000));
  // SimGrid's rate falls with the size of the graph: 100,000 operators take it many minutes, so it gets fewer.
  for (const std::uint32_t size : {1'000u, 10'000u, 20'000u, 40'000u}) {
    compare("graph", spillway::bench::graph_workload(size));
  }
  const Workload large = spillway::bench::graph_workload(100'000);
  const Figures ours = run_spillway(large);
  std::printf("%-8s %8d %14.0f %14s %9s %16.9f\n", "graph", 100'000, 100'000 / ours.cpu_seconds, "-", "-",
              ours.simulated_seconds);
  return 0;
}
