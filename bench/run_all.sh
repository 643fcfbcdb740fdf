#!/bin/sh
# Runs all benchmarks and prints their tables on stdout; progress goes to stderr.
#
#   bench/run_all.sh           about half an hour, two thirds of it sharded training
#   bench/run_all.sh --long    also 3,000 random jobs, planner against libtorch event by event, all
#                              combinations of a sharded step (oracle 1), the recorded 10M runs on
#                              ranks, sharded training on 4 ranks, and 500 kills of a training run
#
# A figure that misses its goal prints OVER and is no failure. Exit 1 when something fails to run.
#
# Environment:
#   PLIMSOLL_BUILD   build folder of the preset bench (default: build/bench)
#   PLIMSOLL_PYTHON  a Python with torch and numpy, for the peers (default: .venv/bin/python)
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
build=${PLIMSOLL_BUILD:-$root/build/bench}
PLIMSOLL_PYTHON=${PLIMSOLL_PYTHON:-$root/.venv/bin/python}
OMP_NUM_THREADS=1
MKL_NUM_THREADS=1
export PLIMSOLL_PYTHON OMP_NUM_THREADS MKL_NUM_THREADS

long=no
case ${1:-} in
--long) long=yes ;;
'') ;;
*)
    sed -n '2,/^$/s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac

say() { printf 'bench: %s\n' "$*" >&2; }

failed=''
# part NAME COMMAND...
part() {
    name=$1
    shift
    say "$name"
    "$@" || failed="$failed $name"
}

[ -x "$build/bin/planner_bench" ] || {
    say "no benchmarks in $build; build them with: cmake --preset bench && cmake --build --preset bench"
    exit 1
}
say "libtorch of $build, Python $PLIMSOLL_PYTHON, load $(cut -d' ' -f1-3 /proc/loadavg)"

part planner "$build/bin/planner_bench"
part comm "$build/bin/comm_bench" 2
part comm-4 "$build/bin/comm_bench" 4
mpirun=$root/.venv/bin/mpirun
if [ -x "$mpirun" ]; then
    part comm-mpi "$mpirun" -n 2 "$build/bin/comm_bench" mpi
    part comm-mpi-4 "$mpirun" -n 4 "$build/bin/comm_bench" mpi
else
    say "comm-mpi left out: no $mpirun (./run test installs MPICH)"
fi
part dry-run "$build/bin/dry_bench"
part checkpoints "$build/bin/checkpoint_bench"
part optimizer "$build/bin/train_bench" optimizer
part meter "$build/bin/train_bench" meter
part training-10M "$build/bin/train_bench" small
part training-124M "$build/bin/train_bench" large
part sharded-10M "$build/bin/shard_bench" small 2
part sharded-124M "$build/bin/shard_bench" large 2
part overlap "$build/bin/shard_bench" overlap
if [ $long = yes ]; then
    part sharded-10M-4 "$build/bin/shard_bench" small 4 9
    cd "$root"
    part fits env PLIMSOLL_JOBS=500 "$build/bin/test_fit"
    part random-jobs env PLIMSOLL_JOBS=3000 "$build/bin/test_differential"
    for ranks in 1 2 3 4; do
        part "sharded-steps-$ranks" "$build/bin/engine_ranks" module_ranks "$ranks" all
    done
    for ranks in 2 4; do
        part "recorded-runs-$ranks" "$build/bin/engine_ranks" joined_batch_ranks "$ranks" large
    done
    part torture "$build/bin/torture" --kills 500
fi

[ -z "$failed" ] || {
    say "failed:$failed"
    exit 1
}
say done
