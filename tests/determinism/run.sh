#!/usr/bin/env bash
# One scenario, one result: byte-identical `run --json` of every shipped scenario
#   - twice in a row,
#   - from the release, the debug (ASan + UBSan) and, where clang++ exists, the clang build,
#   - with glibc's FMA and AVX2 variants of libm switched off,
#   - folded and, but for the counts of the engine and the list of steps simulated, with every rank, step and operation.
# Usage: run.sh               builds release, debug and clang with ./dev, then compares
#        run.sh BINARY...     compares these; the first one is the reference
#        run.sh --one SCENARIO BINARY...   one scenario; the whole runs this for as many at a time as there are processors
# Exit code 0: all equal, 1: a difference, 70: a build failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# Names since glibc 2.33; the *_Usable ones are older. Unknown names are ignored.
without_fma=glibc.cpu.hwcaps=-FMA,-AVX2,-FMA4,-FMA_Usable,-AVX2_Usable,-FMA4_Usable

one=
if [ "${1:-}" = --one ]; then
    one=$2
    shift 2
fi
binaries=("$@")
if [ ${#binaries[@]} -eq 0 ]; then
    presets=(release debug)
    if command -v clang++ >/dev/null; then
        presets+=(clang)
    else
        echo "no clang++ here: g++ builds only" >&2
    fi
    for preset in "${presets[@]}"; do
        ./dev build "$preset" fabricast || exit 70
        directory=build-$preset
        [ "$preset" = release ] && directory=build
        binaries+=("$directory/fabricast")
    done
fi

if [ -z "$one" ]; then
    mapfile -t scenarios < <(find scenarios -name '*.yaml' ! -name 'base-*' | LC_ALL=C sort)
    status=0
    printf '%s\0' "${scenarios[@]}" |
        xargs -0 -P "$(nproc 2>/dev/null || echo 2)" -I '{}' bash tests/determinism/run.sh --one '{}' "${binaries[@]}" || status=1
    if [ $status -eq 0 ]; then
        echo "${#scenarios[@]} scenarios, ${#binaries[@]} builds: byte-identical" >&2
    fi
    exit $status
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
status=0
differs() {  # what, expected file, found file
    status=1
    echo "DIFFERENT: $1" >&2
    diff "$2" "$3" | head -n 6 >&2 || true
}

# Output and exit code together: a job that must fail has to fail everywhere.
result() {  # binary, scenario, file, options...
    local code=0
    "$1" run --json --quiet "$2" "${@:4}" >"$3" 2>"$3.err" || code=$?
    echo "exit code $code" >>"$3"
    case $code in
        0 | 1 | 3) ;;
        *) status=1; echo "FAILED: $1 $2" >&2; tail -n 3 "$3.err" >&2 ;;
    esac
}

without_counts() { sed -e '/"events"/d' -e '/"ranks_simulated"/d' -e '/"simulated_step_s": \[/,/\]/d' "$1"; }

reference=$scratch/reference
result "${binaries[0]}" "$one" "$reference"
result "${binaries[0]}" "$one" "$scratch/again"
cmp -s "$reference" "$scratch/again" || differs "$one, second run" "$reference" "$scratch/again"
events=$(sed -n 's/.*"events": \([0-9]*\).*/\1/p' "$reference" | head -n 1)
ranks=$(sed -n 's/.*"ranks": \([0-9]*\).*/\1/p' "$reference" | sort -n | tail -n 1)
for binary in "${binaries[@]}"; do
    # A sanitized build is some fifty times slower: it runs what has up to a million events.
    if [[ $binary == *debug* ]] && [ "${events:-0}" -gt 1000000 ]; then
        continue
    fi
    if [ "$binary" != "${binaries[0]}" ]; then
        result "$binary" "$one" "$scratch/other"
        cmp -s "$reference" "$scratch/other" || differs "$one, $binary" "$reference" "$scratch/other"
    fi
done
GLIBC_TUNABLES=$without_fma result "${binaries[0]}" "$one" "$scratch/plain"
cmp -s "$reference" "$scratch/plain" || differs "$one, no FMA and AVX2" "$reference" "$scratch/plain"
# Every rank of the largest under every condition of a campaign takes minutes: those run without their campaign.
whole=()
if [ "${ranks:-0}" -gt 4096 ]; then
    whole=(--set faults=none)
    result "${binaries[0]}" "$one" "$scratch/without" "${whole[@]}"
fi
result "${binaries[0]}" "$one" "$scratch/ranks" --no-fold "${whole[@]}"
without_counts "${scratch}/$([ ${#whole[@]} -gt 0 ] && echo without || echo reference)" >"$scratch/folded"
without_counts "$scratch/ranks" >"$scratch/whole"
cmp -s "$scratch/folded" "$scratch/whole" || differs "$one, every rank" "$scratch/folded" "$scratch/whole"
result "${binaries[0]}" "$one" "$scratch/operations" --no-time-fold
grep -v '"events"' "$reference" >"$scratch/folded"
grep -v '"events"' "$scratch/operations" >"$scratch/whole"
cmp -s "$scratch/folded" "$scratch/whole" || differs "$one, every operation" "$scratch/folded" "$scratch/whole"
echo "$one: $(tail -n 1 "$reference"), ${#binaries[@]} builds compared" >&2
exit $status
