#!/bin/sh
# The Go module github.com/mikioh/tcpinfo v0.0.0-20190314235526-30a79bb1804b (ParseCCAlgorithmInfo) says of BBR's
# bandwidth, in its documentation and of the JSON field max_bw, that it is in bits per second. It is the kernel's
# number as it is, in bytes per second: a path of 10 Mbit/s reads as 1.25 Mbit/s. Of DCTCP it fills in only the alpha:
# ce_state, ecn_acked and total_acked are always 0, so that no byte seems ever to have been acknowledged and the share
# that was marked is 0 of 0. No error is returned. Linux (include/uapi/linux/inet_diag.h): struct tcp_bbr_info has
# "estimate in Byte per sec"; struct tcp_dctcp_info has all four, which ss of iproute2 prints, bandwidth times 8.
#
# Seen, from the kernel's structures: BBR, 1250000 bytes/s: max_bw 1250000 "in bps", right is 10000000. DCTCP, 1, 512,
# 30000, 60000: ce_state 0, alpha 512, ecn_acked 0, total_acked 0.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >go.mod <<'END'
module finding

go 1.23

require (
	github.com/mikioh/tcpinfo v0.0.0-20190314235526-30a79bb1804b
	github.com/mikioh/tcpopt v0.0.0-20190314235656-172688c1accc
)
END
cat >main.go <<'END'
package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"

	"github.com/mikioh/tcpinfo"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// parse reads a structure of Linux's inet_diag.h.
func parse[T tcpinfo.CCAlgorithmInfo](algorithm string, fields any) T {
	b := must(binary.Append(nil, binary.NativeEndian, fields))
	info := must(tcpinfo.ParseCCAlgorithmInfo(algorithm, b)).(T)
	fmt.Printf("%s: %s\n", algorithm, must(json.Marshal(info)))
	return info
}

func main() {
	bbr := parse[*tcpinfo.BBRInfo]("bbr", struct {
		BandwidthLow, BandwidthHigh uint32 // bytes per second
		MinRTT                      uint32 // µs
		PacingGain, WindowGain      uint32
	}{1250000, 0, 20000, 256, 512})
	dctcp := parse[*tcpinfo.DCTCPInfo]("dctcp", struct {
		Enabled, CEState           uint16
		Alpha, Marked, Acknowledged uint32 // of 1024; bytes
	}{1, 1, 512, 30000, 60000})
	if bbr.MaxBW != 1250000 || bbr.MinRTT.Milliseconds() != 20 {
		os.Exit(1)
	}
	if !dctcp.Enabled || dctcp.Alpha != 512 ||
		dctcp.CEState != 0 || dctcp.ECNAckedBytes != 0 || dctcp.TotalAckedBytes != 0 {
		os.Exit(1)
	}
}
END
export GOFLAGS=-mod=mod
go doc github.com/mikioh/tcpinfo.BBRInfo | grep "MaxBW.*in bps"
go run .
