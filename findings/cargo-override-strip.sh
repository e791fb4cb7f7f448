#!/bin/sh
# Cargo 1.95.0 forgets strip = "symbols" of a profile for a package that has an override in it, whatever the override is
# about: with opt-level = 2 for the package of the program alone, the program has its symbols again. Its reference says
# that an override cannot have panic, lto or rpath, and nothing of strip, which it does take: repeated in the override,
# it works. So who builds the command line of a program for a router for size, and the rest for speed, ships a larger
# file, and compares the sizes of two different things. Nothing is said.
#
# Seen: stripped without an override, not stripped with one, stripped with strip in the override.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export RUSTUP_HOME="$dir/rustup"
rustup --quiet toolchain install 1.95.0 --profile minimal >log 2>&1 || { cat log >&2; exit 2; }
mkdir src
echo 'fn main() { println!("{}", std::env::args().count()); }' >src/main.rs

# tell OVERRIDE: whether the program has a table of symbols.
tell() {
    cat >Cargo.toml <<END
[package]
name = "finding"
version = "0.1.0"
edition = "2024"

[profile.small]
inherits = "release"
strip = "symbols"
$1

[workspace]
END
    cargo +1.95.0 build --quiet --profile small
    if readelf --sections --wide target/small/finding | grep -q ' \.symtab '; then echo symbols; else echo stripped; fi
}

seen="$(tell '') $(tell 'package.finding.opt-level = 2') $(tell 'package.finding = { opt-level = 2, strip = "symbols" }')"
echo "no override, an override, one with strip: $seen"
[ "$seen" = "stripped symbols stripped" ]
