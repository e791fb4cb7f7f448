#!/bin/sh
# The Go module github.com/florianl/go-tc v0.4.5 turns the burst of a token bucket from ticks, as the
# kernel tells it, into bytes (core.XmitSize; by its comment tc_calc_xmitsize of iproute2). It keeps only
# the low 32 bits of rate times microseconds before it divides by a million. So at any rate a burst of
# 4295 bytes or more comes out as less than that: who reads a shaper back sees one or two packets where
# there are twenty. No error is returned. iproute2's function (tc/tc_core.c) computes with a double; tc
# of iproute2 6.1.0 and github.com/vishvananda/netlink v1.3.1 are right.
#
# Seen at 10 Mbit/s: 4000 bytes are 4000, 10000 are 1410, 32000 are 1935, 100000 are 1215.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >go.mod <<'END'
module finding

go 1.23

require (
	github.com/florianl/go-tc v0.4.5
	github.com/vishvananda/netlink v1.3.1
)
END
cat >main.go <<'END'
package main

import (
	"fmt"
	"os"

	"github.com/florianl/go-tc/core"
	"github.com/vishvananda/netlink"
)

func main() {
	const rate = 10_000_000 / 8
	changed := false
	for _, burst := range [][2]uint32{{4000, 4000}, {10000, 1410}, {32000, 1935}, {100000, 1215}} {
		ticks := core.XmitTime(rate, burst[0])
		byTc, byNetlink := core.XmitSize(rate, ticks), netlink.Xmitsize(rate, ticks)
		fmt.Printf("burst %d: go-tc %d netlink %d\n", burst[0], byTc, byNetlink)
		changed = changed || byTc != burst[1] || byNetlink != burst[0]
	}
	if changed {
		os.Exit(1)
	}
}
END
go mod tidy >log 2>&1 || { cat log >&2; exit 2; }
go run .
