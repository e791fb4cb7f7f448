#!/bin/sh
# The Go module github.com/pion/transport/v3 v3.1.1 has networks in memory (vnet), to try WebRTC and its bandwidth
# estimators on, and for them a token bucket. It adds tokens every 100 ms, and never more than its burst (refillTokens
# in tbf.go). That is 8000 bytes unless one sets it, although it is written as 8 kbit: so no link has more than 0.64
# Mbit/s, and neither has its default of 1 Mbit/s. And what waits in its queue leaves only when another packet comes in
# (run): it has no clock of its own. So the end of each burst stays where it is until the sender sends something else,
# by a time-out for instance, and looks lost. No error is returned; by its documentation TBFRate is the bit rate. By
# tc-tbf(8) the burst must hold what the rate brings between two ticks of the clock, and data waits until there are
# tokens. Version 4 of the module has another bucket.
#
# Seen, packets of 1000 bytes: of 4 Mbit/s sent into a link of 10 Mbit/s 0.6 arrive, as of 0.9 sent into one of 1. Of
# twenty packets sent at once into a link of 1 Mbit/s, which takes 160 ms for them, eight arrive, and eight more 3 s
# later, with the next one that is sent.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >go.mod <<'END'
module finding

go 1.24

require (
	github.com/pion/logging v0.2.4
	github.com/pion/transport/v3 v3.1.1
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

	"github.com/pion/logging"
	"github.com/pion/transport/v3/vnet"
)

const size = 1000

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// link makes a sender and a receiver with a link of so many bit/s between them.
func link(rate int) (net.Conn, *atomic.Int64) {
	config := &vnet.RouterConfig{CIDR: "10.0.0.0/24", LoggerFactory: logging.NewDefaultLoggerFactory()}
	router := must(vnet.NewRouter(config))
	from := must(vnet.NewNet(&vnet.NetConfig{StaticIPs: []string{"10.0.0.1"}}))
	to := must(vnet.NewNet(&vnet.NetConfig{StaticIPs: []string{"10.0.0.2"}}))
	bucket := must(vnet.NewTokenBucketFilter(to, vnet.TBFRate(rate)))
	must(0, router.AddNet(from))
	must(0, router.AddNet(bucket))
	must(0, router.Start())
	receiver := must(to.ListenPacket("udp4", "10.0.0.2:5000"))
	received := new(atomic.Int64)
	go func() {
		for buffer := make([]byte, 1500); ; received.Add(1) {
			_, _, err := receiver.ReadFrom(buffer)
			must(0, err)
		}
	}()
	return must(from.Dial("udp4", "10.0.0.2:5000")), received
}

// carried is how many Mbit/s of those sent arrive.
func carried(rate int, sent float64) float64 {
	const duration = 4 * time.Second
	sender, received := link(rate)
	gap := time.Duration(size * 8 / sent * 1e3)
	start := time.Now()
	for number := 0; time.Since(start) < duration; number++ {
		time.Sleep(time.Until(start.Add(time.Duration(number) * gap)))
		must(sender.Write(make([]byte, size)))
	}
	return float64(received.Load()) * size * 8 / time.Since(start).Seconds() / 1e6
}

func main() {
	fast, slow := carried(10*vnet.MBit, 4), carried(vnet.MBit, 0.9)
	sender, received := link(vnet.MBit)
	for range 20 {
		must(sender.Write(make([]byte, size)))
	}
	time.Sleep(3 * time.Second)
	before := received.Load()
	must(sender.Write(make([]byte, size)))
	time.Sleep(200 * time.Millisecond)
	told := fmt.Sprintf("%.1f of 4 at 10 Mbit/s, %.1f of 0.9 at 1; after 3 s %d of 20, then %d of 21",
		fast, slow, before, received.Load())
	fmt.Println(told)
	if told != "0.6 of 4 at 10 Mbit/s, 0.6 of 0.9 at 1; after 3 s 8 of 20, then 16 of 21" {
		os.Exit(1)
	}
}
END
go mod tidy >log 2>&1 || { cat log >&2; exit 2; }
go run .
