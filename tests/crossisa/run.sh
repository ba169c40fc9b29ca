#!/usr/bin/env bash
# run.sh EXPORT_PROGRAM TARGET COMPILER EMULATOR SOURCE_DIR WORK_DIR: compiles the test models for TARGET, runs them under
# the emulator and compares with the golden digests. Exits 77 (skipped) where the cross compiler or the emulator is missing.
set -euo pipefail
export_program=$1 target=$2 compiler=$3 emulator=$4 source=$5 work=$6
for tool in "$compiler" "${emulator%% *}"; do
  if ! command -v "$tool" >/dev/null; then
    echo "NOT RUN: $tool is not installed"
    exit 77
  fi
done
rm -rf "$work"
mkdir -p "$work"
"$export_program" export "$target" "$work"
for inc in "$work"/*.inc; do
  model=$(basename "$inc" .inc)
  objects=()
  for object in "$work/$model".o*; do
    [[ $object == *.outputs ]] || objects+=("$object")
  done
  linked=()
  for object in "${objects[@]}"; do
    ln -sf "$object" "$object.o"
    linked+=("$object.o")
  done
  "$compiler" -std=c++20 -O1 -static -fno-exceptions -fno-rtti -I"$source/src" -I"$work" "-DMODEL_INC=\"$model.inc\"" \
    "$source/tests/crossisa/runner.cpp" "${linked[@]}" -o "$work/$model.run"
  # shellcheck disable=SC2086  # the emulator may carry options
  $emulator "$work/$model.run" "$work/$model.data" "$work/$model.result"
done
"$export_program" check "$work"
