#!/bin/sh
# The Go module github.com/emiago/diago v0.42.1, RTP and SIP for calls, tells the sender of a stream wrong numbers in
# its receiver reports (parseReceptionReport in media/rtp_session.go). It subtracts the first sequence number of an
# interval, of 16 bits, from the last one, which is extended by the cycles. So once the numbers have wrapped around, at
# any time, as they begin at random, every report says that 99 % were lost. Where nothing arrives in an interval 256 of
# 256 are lost, which makes 0 in a byte, at least on x86: an outage is no loss. And the delay since the sender's last
# report is in units of 1/65356 s, where the RFC has 1/65536. So the sender finds a round trip that is too long by 0.27
# % of that delay, 14 ms of 5 s. No error is returned. RFC 3550, A.3: the packets expected in an interval are a
# difference of extended numbers; 6.4: a source of which nothing came is not reported on; 6.4.1: the delay. Its sessions
# for WebRTC, in another file, are right by their source.
#
# Seen, 100 packets a second without loss, the numbers wrap around in the first 5 s: in the first report 0 of 256 lost,
# in the next one 254. In 5 s without a packet 0 of 256. Delay since the last report 4986 ms of 5000.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >go.mod <<'END'
module finding

go 1.24.2

require (
	github.com/emiago/diago v0.42.1
	github.com/pion/rtcp v1.2.16
	github.com/pion/rtp v1.10.1
)
END
cat >main.go <<'END'
package main

import (
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/emiago/diago/media"
	"github.com/emiago/diago/media/sdp"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"
)

const stream = 7

var host = net.IPv4(127, 0, 0, 1)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// sockets are one for RTP and one for RTCP, at the next port.
func sockets() (*net.UDPConn, *net.UDPConn) {
	for {
		data := must(net.ListenUDP("udp", &net.UDPAddr{IP: host}))
		control, err := net.ListenUDP("udp", &net.UDPAddr{IP: host, Port: data.LocalAddr().(*net.UDPAddr).Port + 1})
		if err == nil {
			return data, control
		}
		must(0, data.Close())
	}
}

func main() {
	data, control := sockets()
	session := must(media.NewMediaSession(host, 0))
	session.Mode = sdp.ModeRecvonly
	session.SetRemoteAddr(data.LocalAddr().(*net.UDPAddr))
	receiver := media.NewRTPSession(session)
	go func() {
		for buffer, packet := make([]byte, 1500), new(rtp.Packet); ; {
			must(receiver.ReadRTP(buffer, packet))
		}
	}()
	must(0, receiver.MonitorBackground())
	to := &net.UDPAddr{IP: host, Port: session.Laddr.Port}

	var outage atomic.Bool
	go func() { // 100 packets/s; the sequence numbers wrap around after 2 s
		start := time.Now()
		for number := 0; ; number++ {
			time.Sleep(time.Until(start.Add(time.Duration(number) * 10 * time.Millisecond)))
			sequence, timestamp := uint16(65336+number), uint32(80*number)
			header := rtp.Header{Version: 2, SSRC: stream, SequenceNumber: sequence, Timestamp: timestamp}
			packet := rtp.Packet{Header: header, Payload: make([]byte, 80)}
			if !outage.Load() {
				must(data.WriteToUDP(must(packet.Marshal()), to))
			}
		}
	}()
	var sent time.Time
	told, short := []uint8{}, 1.0
	for interval := range 3 {
		buffer := make([]byte, 1500)
		report := must(rtcp.Unmarshal(buffer[:must(control.Read(buffer))]))[0].(*rtcp.ReceiverReport).Reports[0]
		told = append(told, report.FractionLost)
		if interval == 0 { // from just before the next report on nothing arrives
			time.AfterFunc(4700*time.Millisecond, func() { outage.Store(true) })
		} else {
			delay, right := float64(report.Delay)/65536, time.Since(sent).Seconds()
			short = min(short, right-delay)
			fmt.Printf("delay since the last report %.3f s, right %.3f\n", delay, right)
		}
		sent = time.Now()
		ntp := uint64(sent.Unix()+2208988800)<<32 | uint64(sent.Nanosecond())<<32/1e9
		sender := must((&rtcp.SenderReport{SSRC: stream, NTPTime: ntp}).Marshal())
		must(control.WriteToUDP(sender, &net.UDPAddr{IP: host, Port: to.Port + 1}))
	}
	fmt.Printf("lost of 256: wrap %d, no loss %d, no packet %d\n", told[0], told[1], told[2])
	if told[0] != 0 || told[1] < 250 || told[2] != 0 || short < 0.012 || short > 0.1 {
		os.Exit(1)
	}
}
END
go mod tidy >log 2>&1 || { cat log >&2; exit 2; }
go run .
