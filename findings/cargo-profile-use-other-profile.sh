#!/bin/sh
# Cargo and rustc 1.95.0: notes of a program at work, for profile-guided optimisation (-Cprofile-generate, then
# -Cprofile-use), serve the cargo profile alone with which they were taken. The compiler finds a function's counts by
# the name of its symbol, and symbols of Rust have a hash that differs from one cargo profile to the next, even if the
# one inherits the other and changes `debug` alone. So whoever takes the notes with `release` and ships with a profile
# of their own has only functions of the standard library guided. Nothing is said: the exit status is 0, and LLVM's
# warnings about functions without counts are off unless asked for (-Cllvm-args=-pgo-warn-missing-function).
#
# Seen: notes taken with `release` name all 3 functions of a program that `release` builds, and none of the same
# program's where the profile inherits `release`. Both builds are silent.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export RUSTUP_HOME="$dir/rustup"
rustup --quiet toolchain install 1.95.0 --profile minimal --component llvm-tools >log 2>&1 || { cat log >&2; exit 2; }
cargo() { rustup run 1.95.0 cargo "$@"; }
profdata=$(rustup run 1.95.0 rustc --print target-libdir)/../bin/llvm-profdata
host=$(rustup run 1.95.0 rustc -vV | sed -n 's/^host: //p')
mkdir src
cat >Cargo.toml <<'END'
[package]
name = "counts"
version = "0.1.0"
edition = "2024"

[profile.shipped]
inherits = "release"
debug = "line-tables-only"
END
cat >src/main.rs <<'END'
#[inline(never)]
fn seldom(n: u64) -> u64 {
    n.rotate_left(7) ^ 0x9e37_79b9
}

#[inline(never)]
fn often(n: u64) -> u64 {
    (0..n % 64).fold(n, |sum, k| if sum % 1000 == 999 { seldom(sum) } else { sum.wrapping_mul(31) + k })
}

fn main() {
    println!("{}", (0..100_000).map(often).fold(0, u64::wrapping_add));
}
END
# build PROFILE FLAG
build() {
    RUSTFLAGS=$2 cargo build --quiet --offline --profile "$1" --target "$host" 2>log || { cat log >&2; exit 2; }
    [ ! -s log ] || { cat log >&2; exit 1; }
}
build release "-Cprofile-generate=$dir/notes"
"target/$host/release/counts" >/dev/null
"$profdata" merge --output notes.profdata notes/*.profraw
"$profdata" show --all-functions notes.profdata >noted
# noted PROFILE: how many functions of the program that this profile builds are in the notes.
noted() {
    build "$1" "-Cprofile-use=$dir/notes.profdata"
    nm "target/$host/$1/counts" | grep -o '_ZN6counts[0-9]*\(main\|often\|seldom\)17h[0-9a-f]*E' >names
    [ "$(wc -l <names)" = 3 ]
    grep -cFf names noted || true
}
release=$(noted release)
shipped=$(noted shipped)
echo "functions with counts: $release of 3 with release, $shipped of 3 with the profile that inherits it"
[ "$release" = 3 ] && [ "$shipped" = 0 ]
