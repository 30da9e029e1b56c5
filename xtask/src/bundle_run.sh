#!/usr/bin/env bash
# Runs the bundled tests on this machine: by default the GPU tests, of which none may be skipped for want of a GPU.
#   run.sh            tests whose names contain gpu or cuda
#   run.sh --all      every test; those that cannot run here are counted
#   run.sh NAME...    tests whose names contain one of these
#   run.sh --sanitize small matches under each of compute-sanitizer's tools; COMPUTE_SANITIZER names the program
#                     where it is neither on the PATH nor in /usr/local/cuda/bin
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here" || exit 1
[ -d data ] && export STEREO_DATA_DIR="$here/data"

# The tests that are small enough for compute-sanitizer, one tool after another.
sanitize() {
    local sanitizer tool status errors broken=0
    sanitizer=$(PATH=$PATH:/usr/local/cuda/bin command -v "${COMPUTE_SANITIZER:-compute-sanitizer}") || {
        echo "no ${COMPUTE_SANITIZER:-compute-sanitizer}: it comes with the CUDA toolkit; COMPUTE_SANITIZER names it" >&2
        return 1
    }
    for tool in memcheck racecheck initcheck synccheck; do
        SECONDS=0
        "$sanitizer" --tool "$tool" --error-exitcode 1 tests/gpu_cuda --test-threads 1 sanitize_ >"$log" 2>&1
        status=$?
        errors=$(grep -o '[A-Z]* SUMMARY: .*' "$log" | tail -n 1)
        # The tool must have said that it found nothing, and tests must have run.
        if [ "$status" -ne 0 ] || [ -z "$errors" ] || ! grep -q '^test result: ok\. [1-9]' "$log"; then
            cat "$log"
            broken=$((broken + 1))
            errors="FAILED, exit status $status${errors:+, $errors}"
        fi
        echo "$tool: $errors ($SECONDS s)"
    done
    echo "4 tools, $broken failed"
    [ "$broken" -eq 0 ]
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT

if [ "${1:-}" = --sanitize ]; then
    # A sanitized test that finds no GPU fails.
    export STEREO_REQUIRE_CUDA=1
    sanitize
    exit
fi

gpu_names=(gpu cuda)
whole_gpu_binaries=no
if [ "${1:-}" = --all ]; then
    filters=()
elif [ $# -gt 0 ]; then
    filters=("$@")
else
    filters=("${gpu_names[@]}")
    whole_gpu_binaries=yes
    # A GPU test that finds no GPU fails here instead of being skipped.
    export STEREO_REQUIRE_CUDA=1
fi

passed=0 failed=0 skipped=0 without_gpu=0 broken=0
for binary in tests/*; do
    arguments=("${filters[@]}")
    case $(basename "$binary") in
        *gpu* | *cuda*) [ $whole_gpu_binaries = yes ] && arguments=() ;;
    esac
    "$binary" --show-output "${arguments[@]}" >"$log" 2>&1
    status=$?
    result=$(grep -m1 '^test result:' "$log")
    count() { sed -n "s/.* \([0-9]*\) $1.*/\1/p" <<<"$result"; }
    ran=$(($(count passed) + $(count failed)))
    [ "$status" -eq 0 ] && [ "$ran" -eq 0 ] && continue
    not_run=$(grep -c -i 'skipped: ' "$log")
    without_gpu=$((without_gpu + $(grep -c -i 'skipped: .*\(no CUDA device\|not available\)' "$log")))
    passed=$((passed + $(count passed) - not_run)) failed=$((failed + $(count failed))) skipped=$((skipped + not_run))
    echo "$(basename "$binary"): ${result:-no result, exit status $status}"
    grep -i -o 'skipped: .*' "$log"
    if [ "$status" -ne 0 ]; then
        cat "$log"
        broken=$((broken + 1))
    fi
done
[ $((passed + failed + skipped)) -eq 0 ] && echo "no test matched" && broken=1
echo "$passed passed, $failed failed, $skipped skipped"
# Others are skipped for what only a machine without a driver, or with the sources, can show.
[ $whole_gpu_binaries = yes ] && [ "$without_gpu" -gt 0 ] && broken=1
[ "$broken" -eq 0 ] && [ "$failed" -eq 0 ]
