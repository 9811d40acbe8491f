#!/usr/bin/env bash
# Writes fingerprints.txt anew from the release build. Usage: update.sh [BUILD_DIRECTORY]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
if [ $# -eq 0 ]; then
    ./dev build release sim_step_tests
fi
FABRICAST_UPDATE_FINGERPRINTS=1 "${1:-build}/sim_step_tests" --gtest_filter='Fingerprint.*' --gtest_brief=1
git --no-pager diff --stat -- tests/determinism/fingerprints.txt
