// What starts a program on many GPUs, and the variables that it finds.
#include "launch/flag_rows.h"

namespace spillway::launch {
namespace {

std::vector<LaunchFlag> launchers() {
  FlagRows rows(LaunchFormat::launcher);
  constexpr std::string_view key = "model.data_parallel";
  rows.say("nnodes", key, facts::nodes, whole, "torchrun")
      .say("nproc-per-node", key, facts::gpus_per_node, whole, "torchrun")
      .read("nodes", key, facts::nodes, whole, "srun, sbatch")
      .read("num-nodes", key, facts::nodes, whole, "deepspeed")
      .read("num-gpus", key, facts::gpus_per_node, whole, "deepspeed")
      .read("ntasks-per-node", key, facts::gpus_per_node, whole, "srun, sbatch, with a task per GPU")
      .read("gpus-per-node", key, facts::gpus_per_node, whole, "srun, sbatch")
      .read("ntasks", key, facts::gpus, whole, "srun, sbatch, with a task per GPU")
      .read("np", key, facts::gpus, whole, "mpirun")
      .no_effect(
          "node-rank master-addr master-port rdzv-* rdzv-id standalone start-method role max-restarts tee redirects "
          "log-dir local-ranks-filter local-addr monitor-interval no-python run-path module use-env hostfile "
          "include exclude launcher launcher-args force-multi ssh-port no-local-rank no-ssh bind-cores-to-rank "
          "bind-core-list "
          "enable-each-rank-log virtual-local-rank module-args numa-binding logs-specs signals-to-handle",
          "of the start, not of a step")
      .no_effect(
          "job-name time account partition output error mail-* exclusive mem mem-per-cpu cpus-per-task gres constraint "
          "qos dependency requeue signal array comment reservation nodelist open-mode export chdir "
          "container-* no-container-* mpi label kill-on-bad-exit wait cpu-bind gpus-per-task gpu-bind overlap "
          "unbuffered "
          "allow-run-as-root bind-to map-by host mca hint distribution wckey overcommit no-kill get-user-env "
          "threads-per-core accel-bind deadline "
          "u segment network gpus mem-bind",
          "of the batch system")
      .no_effect("address runtime-env-json runtime-env working-dir no-wait submission-id", "of ray job submit");
  return rows.take();
}

std::vector<LaunchFlag> variables() {
  FlagRows rows(LaunchFormat::environment);
  rows.say("PYTORCH_CUDA_ALLOC_CONF", "memory.config", facts::allocator_settings, "",
           "expandable_segments:True is memory.allocator torch-expandable")
      .read("PYTORCH_ALLOC_CONF", "memory.config", facts::allocator_settings, "", "its new name")
      .read("NPROC_PER_NODE", "model.data_parallel", facts::gpus_per_node, whole, "ms-swift, LLaMA-Factory")
      .read("NNODES", "model.data_parallel", facts::nodes, whole, "ms-swift, LLaMA-Factory")
      .read("CUDA_VISIBLE_DEVICES", "model.data_parallel", facts::visible_gpus, "",
            "how many they are, where nothing else says it")
      .say("OMP_NUM_THREADS", "model.host_threads", whole, "of the optimizer on the CPU")
      .say("CUDA_LAUNCH_BLOCKING", "model.launch_blocking", "1=true 0=-")
      .time(
          "NCCL_ALGO NCCL_PROTO NCCL_BUFFSIZE NCCL_MIN_NCHANNELS "
          "NCCL_MAX_NCHANNELS NCCL_NVLS_ENABLE NCCL_P2P_DISABLE NCCL_IB_DISABLE NCCL_SHM_DISABLE "
          "NCCL_P2P_NET_CHUNKSIZE "
          "NVTE_* TORCH_NCCL_AVOID_RECORD_STREAMS NCCL_CUMEM_ENABLE NCCL_CTA_POLICY NCCL_MIN_CTAS NCCL_MAX_CTAS",
          "may change how collectives and kernels run")
      .no_effect("NCCL_* TORCH_* CUDA_* PYTORCH_*", "of the start, or of logging");
  return rows.take();
}

}  // namespace

std::vector<LaunchFlag> launcher_flags() {
  std::vector<LaunchFlag> all = launchers();
  for (LaunchFlag& row : variables()) all.push_back(std::move(row));
  return all;
}

}  // namespace spillway::launch
