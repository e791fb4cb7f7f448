#!/bin/sh
# The Go module github.com/pion/interceptor v0.1.51 computes the interarrival jitter of RTP in two places. In its
# statistics (stats_recorder.go) what it calls the transit of a packet is already the difference to the packet before
# it, and it averages the differences of these differences. So a path whose delay changes to and fro has twice its
# jitter, and one whose queue fills up evenly none. In its receiver reports (receiver_stream.go) the timestamps are
# subtracted as floating-point numbers, not modulo 2^32: where they wrap around, once in 13 hours at 90 kHz and at any
# time, as they begin at random, the peer is told a jitter of minutes. No error is returned; without a wrap the reports
# are right. RFC 3550, 6.4.1 and A.8: the mean of |D|, the difference of two packets' transits, in unsigned arithmetic.
#
# Seen, statistics and report, a packet every 20 ms: delay of 50 and 60 ms in turn, 20.0 and 10.0 ms; right is 10.
# Delay that grows by 1 ms a packet, 0.0 and 1.0 ms; right is 1. Even delay, 49 packets after the timestamps wrapped:
# 0.0 and 126237.9 ms; right is 0.
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
	"fmt"
	"os"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/interceptor/pkg/report"
	"github.com/pion/interceptor/pkg/stats"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"
)

const (
	stream, clockRate = 7, 90000
	count             = 200
	spacing           = 20 * time.Millisecond
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// receive hands packets with these delays to a reader.
func receive(now *time.Time, delay func(int) time.Duration, read interceptor.RTPReader) {
	for index := range count {
		elapsed := time.Duration(index) * spacing
		*now = time.Unix(1_700_000_000, 0).Add(elapsed + delay(index))
		must(0, second(read.Read(make([]byte, 1500), interceptor.Attributes{})))
	}
}

func second(_ int, _ interceptor.Attributes, err error) error { return err }

// packets gives one RTP packet after the other.
func packets(first uint32) interceptor.RTPReader {
	index := 0
	return interceptor.RTPReaderFunc(
		func(buffer []byte, attributes interceptor.Attributes) (int, interceptor.Attributes, error) {
			timestamp := first + uint32(index)*uint32(spacing.Seconds()*clockRate)
			header := rtp.Header{Version: 2, SSRC: stream, SequenceNumber: uint16(index), Timestamp: timestamp}
			index++
			packet := rtp.Packet{Header: header, Payload: make([]byte, 100)}
			return must(packet.MarshalTo(buffer)), attributes, nil
		})
}

var info = &interceptor.StreamInfo{SSRC: stream, ClockRate: clockRate}

// statistics is the jitter by the statistics, in ms.
func statistics(first uint32, delay func(int) time.Duration) float64 {
	var now time.Time
	factory := must(stats.NewInterceptor(stats.SetNowFunc(func() time.Time { return now })))
	var getter stats.Getter
	factory.OnNewPeerConnection(func(_ string, made stats.Getter) { getter = made })
	recorder := must(factory.NewInterceptor(""))
	reader := recorder.BindRemoteStream(info, packets(first))
	time.Sleep(100 * time.Millisecond) // it begins by itself
	receive(&now, delay, reader)
	told := getter.Get(stream).InboundRTPStreamStats
	if told.PacketsReceived != count || told.PacketsLost != 0 {
		panic("packets are missing")
	}
	return told.Jitter * 1000
}

// reported is the jitter in the receiver report, in ms.
func reported(first uint32, delay func(int) time.Duration) float64 {
	var now time.Time
	factory := must(report.NewReceiverInterceptor(
		report.ReceiverNow(func() time.Time { return now }), report.ReceiverInterval(100*time.Millisecond)))
	reporter := must(factory.NewInterceptor(""))
	receive(&now, delay, reporter.BindRemoteStream(info, packets(first)))
	reports := make(chan rtcp.Packet, 1)
	reporter.BindRTCPWriter(interceptor.RTCPWriterFunc(
		func(packets []rtcp.Packet, _ interceptor.Attributes) (int, error) {
			select {
			case reports <- packets[0]:
			default:
			}
			return 0, nil
		}))
	jitter := (<-reports).(*rtcp.ReceiverReport).Reports[0].Jitter
	must(0, reporter.Close())
	return float64(jitter) / clockRate * 1000
}

func main() {
	const ms = time.Millisecond
	even := func(int) time.Duration { return 50 * ms }
	toAndFro := func(index int) time.Duration { return time.Duration(50+10*(index%2)) * ms }
	filling := func(index int) time.Duration { return time.Duration(50+index) * ms }
	var wraps uint32 = 1<<32 - (count-50)*clockRate/50 // before the last 50
	told := ""
	for _, path := range []struct {
		name  string
		first uint32
		delay func(int) time.Duration
	}{{"even", 0, even}, {"to and fro", 0, toAndFro}, {"filling", 0, filling}, {"even, wraps", wraps, even}} {
		jitter := fmt.Sprintf("%.1f %.1f", statistics(path.first, path.delay), reported(path.first, path.delay))
		fmt.Printf("%s: %s ms\n", path.name, jitter)
		told += jitter + "; "
	}
	if told != "0.0 0.0; 20.0 10.0; 0.0 1.0; 0.0 126237.9; " {
		os.Exit(1)
	}
}
END
go mod tidy >log 2>&1 || { cat log >&2; exit 2; }
go run .
