#!/usr/bin/env bash
# disassemble.sh EXPORT_PROGRAM OBJDUMP WORK_DIR: compiles the test models for AVX-512, which the emulator cannot run, and
# checks that the kernels use 512-bit registers. Exits 77 (skipped) without a disassembler.
set -euo pipefail
export_program=$1 objdump=$2 work=$3
if ! command -v "$objdump" >/dev/null; then
  echo "NOT RUN: $objdump is not installed"
  exit 77
fi
rm -rf "$work"
mkdir -p "$work"
"$export_program" export x86_avx512 "$work"
for inc in "$work"/*.inc; do
  model=$(basename "$inc" .inc)
  wide=0
  for object in "$work/$model".o[0-9]*; do
    wide=$((wide + $("$objdump" -d "$object" | grep -c '%zmm' || true)))
  done
  echo "$model: $wide instructions on 512-bit registers"
  [[ $wide -gt 0 ]]
done
