#!/bin/sh
# The Go module github.com/pion/rtcp v1.2.20 reads the cumulative loss of a reception report as a number
# without sign. It has one, and is negative if more packets arrive than were sent, as on a path that
# duplicates (RFC 3550, 6.4.1 and A.3). So two duplicates and no loss are 16,777,214 lost packets. In the
# statistics of github.com/pion/interceptor v0.1.51, where PacketsLost has a sign, it is as many, and none
# was received. No error is returned. aiortc 1.16.0 reads -2.
#
# Seen, 1000 packets sent, 2 of them duplicated: report 16777214 lost; statistics 16777214 lost, 0 received;
# right is -2, -2 and 1002.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >go.mod <<'END'
module finding

go 1.24

require (
	github.com/pion/interceptor v0.1.51
	github.com/pion/rtcp v1.2.20
	github.com/pion/rtp v1.10.0
)
END
cat >main.go <<'END'
package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/interceptor/pkg/stats"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"
)

const stream, sent, lost = 7, 1000, -2

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// report is a receiver report of one stream, as the peer sends it.
func report() []byte {
	const version, kind, words, reporter = 2 << 30, 201 << 16, 7, 8
	var packet []byte
	for _, word := range []uint32{
		version | 1<<24 | kind | words, reporter, stream, lost & 0xFFFFFF, sent, 0, 0, 0,
	} {
		packet = binary.BigEndian.AppendUint32(packet, word)
	}
	return packet
}

func main() {
	packets := must(rtcp.Unmarshal(report()))
	told := int64(packets[0].(*rtcp.ReceiverReport).Reports[0].TotalLost)

	factory := must(stats.NewInterceptor())
	var getter stats.Getter
	factory.OnNewPeerConnection(func(_ string, made stats.Getter) { getter = made })
	recorder := must(factory.NewInterceptor(""))
	info := &interceptor.StreamInfo{SSRC: stream, ClockRate: 90000}
	writer := recorder.BindLocalStream(info, interceptor.RTPWriterFunc(
		func(*rtp.Header, []byte, interceptor.Attributes) (int, error) { return 0, nil }))
	for number := uint16(1); number <= sent; number++ {
		header := &rtp.Header{Version: 2, SSRC: stream, SequenceNumber: number}
		must(writer.Write(header, make([]byte, 100), nil))
	}
	reader := recorder.BindRTCPReader(interceptor.RTCPReaderFunc(
		func(buffer []byte, _ interceptor.Attributes) (int, interceptor.Attributes, error) {
			return copy(buffer, report()), interceptor.Attributes{}, nil
		}))
	_, _, err := reader.Read(make([]byte, 1500), interceptor.Attributes{})
	must(0, err)
	path := getter.Get(stream).RemoteInboundRTPStreamStats
	for range 100 { // the recorder runs by itself
		if path.PacketsLost != 0 {
			break
		}
		time.Sleep(50 * time.Millisecond)
		path = getter.Get(stream).RemoteInboundRTPStreamStats
	}

	fmt.Printf("report %d lost; statistics %d lost, %d received\n", told, path.PacketsLost, path.PacketsReceived)
	if told != 1<<24+lost || path.PacketsLost != 1<<24+lost || path.PacketsReceived != 0 {
		os.Exit(1)
	}
}
END
go mod tidy >log 2>&1 || { cat log >&2; exit 2; }
go run .
