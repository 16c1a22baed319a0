#!/bin/bash
# A drill of docs/jobs/*.sbatch on one host: a Slurm of its own (slurmctld, slurmd and munged of Debian's slurm-wlm), an
# array of shards of which one is requeued while it runs, the merge behind it, and the bytes compared with an undivided
# run. Needs root for slurmd; leaves nothing behind.
#   docs/jobs/slurm_drill.sh SPILLWAY SWEEP [SHARDS]
set -euo pipefail
export SPILLWAY SWEEP STORES SLURM_CONF
SPILLWAY=$(readlink -f "$1") SWEEP=$(readlink -f "$2")
shards=${3:-6} here=$(dirname "$(readlink -f "$0")") host=$(hostname -s)
dir=$(mktemp -d /tmp/slurm-drill.XXXXXX)
STORES=$dir/stores SLURM_CONF=$dir/slurm.conf
mkdir -p "$STORES" "$dir/state" "$dir/spool" "$dir/munge"
pids=()
stop() {
  for ((i = ${#pids[@]} - 1; i >= 0; i--)); do kill "${pids[i]}" 2>/dev/null || true; done
  wait
  rm -rf "$dir"
}
trap stop EXIT

chmod 755 "$dir"
dd if=/dev/urandom of="$dir/munge/key" bs=1024 count=1 status=none
chmod 700 "$dir/munge"; chmod 400 "$dir/munge/key"
munged --foreground --force --socket="$dir/munge.socket" --key-file="$dir/munge/key" --pid-file="$dir/munge/pid" \
  --log-file="$dir/munge/log" --seed-file="$dir/munge/seed" 2>/dev/null &
pids+=($!)
cat >"$SLURM_CONF" <<CONF
ClusterName=drill
SlurmctldHost=$host(127.0.0.1)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$dir/munge.socket
CredType=cred/munge
SlurmctldPort=16817
SlurmdPort=16818
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=2,requeue_setup_env_fail
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
JobRequeue=1
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
slurmctld -D -f "$SLURM_CONF" >/dev/null 2>&1 &
pids+=($!)
slurmd -D -f "$SLURM_CONF" >/dev/null 2>&1 &
pids+=($!)
for _ in $(seq 60); do sinfo -h -o %T 2>/dev/null | grep -q idle && break; sleep 1; done
sinfo

cd "$dir"
array=$(sbatch --parsable --array="0-$((shards - 1))" --cpus-per-task=1 --output="$dir/%a.log" "$here/sweep.sbatch")
merge=$(sbatch --parsable --dependency="afterok:$array" --output="$dir/merge.log" "$here/merge.sbatch")
until [ -s "$STORES/0.store" ] && [ "$(wc -l <"$STORES/0.store")" -ge 2 ]; do sleep 0.2; done
echo "shard 0 is requeued with $(wc -l <"$STORES/0.store") records stored"
scontrol requeue "${array}_0"
squeue -o "%.10i %.8j %.10T %.6M %R"
while squeue -h | grep -q .; do sleep 1; done
scontrol show job "$merge" 2>/dev/null | grep -o "JobState=[A-Z]*" || true
grep -h "REQUEUE" "$dir/slurmd.log" | sed "s/^\[[^]]*\] //" || true
for shard in $(seq 0 $((shards - 1))); do echo "shard $shard: $(wc -l <"$STORES/$shard.store") records"; done
"$SPILLWAY" sweep "$SWEEP" --quiet --format json >"$dir/undivided.json" || [ $? -eq 1 ]
cmp "$dir/undivided.json" "$STORES/answer.json"
echo "the merged answer has the bytes of the undivided run: $(wc -c <"$STORES/answer.json") of them"
