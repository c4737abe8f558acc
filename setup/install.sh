#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Installs the Debian packages of setup/packages.txt that are missing; touches nothing where none is.
set -euo pipefail

here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")

fail() {
    printf 'setup: error: %s\n' "$1" >&2
    exit 1
}

{ command -v apt-get && command -v dpkg-query; } >/dev/null ||
    fail "apt-get is missing: this project is set up on Debian 12 or newer; elsewhere install what setup/packages.txt lists"

missing=()
for package in $(sed 's/#.*//' "$here/packages.txt"); do
    # A package may be there for several architectures, each with a line of its own.
    status=$(dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null) || status=
    grep -qx installed <<<"$status" || missing+=("$package")
done
((${#missing[@]})) || exit 0

as_root=()
if ((EUID != 0)); then
    command -v sudo >/dev/null ||
        fail "packages are missing and there is no sudo: run this as root: apt-get install ${missing[*]}"
    as_root=(sudo)
fi
# What is there stays: a package that conflicts with one of ours is for the administrator to remove.
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-remove)

printf 'setup: installing %s\n' "${missing[*]}"
# The package lists may be absent, or name versions that the mirror has replaced: then, and only then, renew them.
if ! apt-get -s --no-remove install --no-install-recommends "${missing[@]}" >/dev/null 2>&1 ||
    ! "${apt[@]}" install --no-install-recommends "${missing[@]}"; then
    "${apt[@]}" update || fail "apt-get update failed, see its words above: check the network and apt's sources"
    "${apt[@]}" install --no-install-recommends "${missing[@]}" ||
        fail "apt-get could not install ${missing[*]}, see its words above"
fi
