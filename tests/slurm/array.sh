#!/usr/bin/env bash
# A plan as a Slurm array on a real slurmctld and slurmd, all on this machine: written, submitted, one task requeued in the
# middle of its shard, merged; the table is that of one process, and no evaluation was made twice in a store.
#
#   array.sh FABRICAST        exit 77 where Slurm is not installed or cannot be started here
#
# Everything lives in a folder of its own: configuration, key, spool, sockets; ports are free ones of the loopback device. No
# systemd, no database, no accounting. All that was started is ended, by its process id.
set -euo pipefail
fabricast=$(realpath "$1")
export PATH=$PATH:/usr/sbin:/sbin
unset ${!SLURM_*} ${!SBATCH_*}  # of a Slurm that this test may itself run under

skip() { echo "skipped: $1"; exit 77; }
for program in slurmctld slurmd munged sbatch squeue scontrol; do
    command -v "$program" >/dev/null || skip "$program is not installed (Debian: slurmctld slurmd slurm-client munge)"
done
[ "$(id -u)" -eq 0 ] || skip "slurmd starts tasks as root only"
id munge >/dev/null 2>&1 || skip "there is no user munge"

folder=$(mktemp -d /tmp/fabricast-slurm-XXXXXX)
pids=()
end() {
    scancel --full -u root >/dev/null 2>&1 || true
    local pid
    for ((i = ${#pids[@]} - 1; i >= 0; --i)); do
        kill "${pids[$i]}" 2>/dev/null || true
    done
    for pid in "${pids[@]}"; do
        for _ in $(seq 50); do
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.1
        done
        kill -9 "$pid" 2>/dev/null || true
    done
    rm -rf "$folder"
}
trap end EXIT
chmod 755 "$folder"
mkdir -p "$folder"/munge "$folder"/state "$folder"/spool "$folder"/work
cd "$folder/work"

# Ports nobody listens on now.
ports=($(python3 -c '
import socket
sockets = [socket.socket() for _ in range(3)]
for s in sockets: s.bind(("127.0.0.1", 0))
print(*[s.getsockname()[1] for s in sockets])' 2>/dev/null)) || skip "no python3 to find free ports"

# munge: its own key and socket, as its own user.
head -c 1024 /dev/urandom >"$folder/munge/munge.key"
chmod 400 "$folder/munge/munge.key"
chown -R munge: "$folder/munge"
chmod 755 "$folder/munge"
socket=$folder/munge/munge.socket
setpriv --reuid munge --regid munge --clear-groups munged --foreground --socket="$socket" --key-file="$folder/munge/munge.key" \
    --pid-file="$folder/munge/pid" --seed-file="$folder/munge/seed" --log-file="$folder/munge/log" >/dev/null 2>&1 &
pids+=($!)

host=$(hostname -s)
cat >"$folder/slurm.conf" <<EOF
ClusterName=fabricast
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=${ports[0]}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$socket
CredType=cred/munge
MpiDefault=none
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool/%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd-%n.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SwitchType=switch/none
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,batch_sched_delay=1,bf_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
MinJobAge=300
KillWait=1
ReturnToService=2
MailProg=/bin/true
NodeName=n0 NodeHostname=$host NodeAddr=127.0.0.1 Port=${ports[1]} CPUs=4 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
EOF
export SLURM_CONF=$folder/slurm.conf

tell() { sed "s/^/$1: /" "$2" | tail -20 >&2 || true; }
for _ in $(seq 50); do [ -S "$socket" ] && break; sleep 0.1; done
[ -S "$socket" ] || skip "munged does not start here"
slurmctld -D >"$folder/slurmctld.out" 2>&1 &
pids+=($!)
slurmd -D -N n0 >"$folder/slurmd.out" 2>&1 &
pids+=($!)
for _ in $(seq 100); do
    sinfo -h -o %t 2>/dev/null | grep -q idle && break
    sleep 0.1
done
sinfo -h -o %t 2>/dev/null | grep -q idle || {
    tell slurmctld "$folder/slurmctld.log"
    tell slurmd "$folder/slurmd.out"
    skip "Slurm does not come up on this machine"
}

cat >plan.yaml <<'EOF'
name: array
cluster: {nodes: 2, node: hgx-h800, fabric: {nic: 100 Gb/s}}
model: {layers: 8, hidden: 2048, heads: 16, ffn: 8192, vocab: 50000}
training: {sequence: 16384 tokens, global_batch: 64 sequences}
plan: {tp: [1, 2], cp: [1, 2, 4], pp: [1, 2, 4], vpp: [1, 2], schedule: [1f1b, gpipe, interleaved, zb-h1, zb-h2, zb-v],
       micro_batch: [1], zero: [1, 3], recompute: [none, selective]}
EOF
tasks=4
"$fabricast" plan plan.yaml --jobs 1 --quiet >alone.txt
"$fabricast" plan plan.yaml --slurm $tasks --store plan.db --submit >told.txt
grep -q "Submitted batch job" told.txt
job=$(sed -n 's/.*Submitted batch job \([0-9]*\).*/\1/p' told.txt)

# A task that has evaluated something and is not through: its log of writes is longer than what an empty store takes. Where all
# are quicker than this loop, one that has ended.
requeued=
ended() { [ "$(grep -l 'simulated' plan.db.*.log 2>/dev/null | wc -l)" -eq $tasks ]; }
for _ in $(seq 150); do
    ended && break
    for task in $(seq 0 $((tasks - 1))); do
        if [ -f "plan.db.$task-wal" ] && [ "$(stat -c %s "plan.db.$task-wal" 2>/dev/null || echo 0)" -gt 60000 ] &&
                scontrol requeue "${job}_$task" 2>/dev/null; then
            requeued=$task
            break 2
        fi
    done
    sleep 0.02
done
if [ -n "$requeued" ]; then
    echo "task $requeued requeued in the middle of its shard"
else
    requeued=1
    scontrol requeue "${job}_$requeued"
    echo "all tasks were through before one was found in the middle; task $requeued requeued"
fi

# A requeued job waits two minutes before it starts. It is let go earlier, but not in the second in which it was ended: a
# credential of that second is refused as revoked, and the job fails.
sleep 2.5
through() { ended && grep -q "[1-9][0-9]* known" "plan.db.$requeued.log"; }
for _ in $(seq 75); do
    through && break
    scontrol update jobid="${job}_$requeued" starttime=now >/dev/null 2>&1 || true
    sleep 0.2
done
through || { squeue >&2; tell log plan.db."$requeued".log; tell slurmctld "$folder/slurmctld.log"; exit 1; }
for _ in $(seq 50); do [ -z "$(squeue -h)" ] && break; sleep 0.1; done

cat plan.db.*.log
known=$(sed -n 's/.* simulated, \([0-9]*\) known from.*/\1/p' plan.db."$requeued".log | tail -1)
[ "$known" -gt 0 ] || { echo "the requeued task did not go on with its store"; exit 1; }
# Evaluations beyond the first of their layout, by shard.
for task in $(seq 0 $((tasks - 1))); do
    read -r rows twice < <(python3 -c '
import sqlite3, sys
print(*sqlite3.connect(sys.argv[1]).execute("SELECT count(*), coalesce(sum(times - 1), 0) FROM evaluations").fetchone())
' "plan.db.$task")
    [ "$rows" -gt 0 ] && [ "$twice" -eq 0 ] || { echo "shard $task made $twice of its $rows evaluations again"; exit 1; }
done
"$fabricast" plan merge plan.db >merged.txt
cmp alone.txt merged.txt
echo "the table of $tasks tasks, one of them requeued with $known evaluations done, is that of one process"
