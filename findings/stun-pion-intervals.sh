#!/bin/sh
# The client of the Go module github.com/pion/stun/v3 v3.1.7 adds one time-out (RTO) to the interval for each copy of a
# request (nextTimeout in client.go), where STUN doubles it. It sends 8 copies, and waits 8 RTO for an answer to the
# last. So with the 500 ms of the RFC a request is given up after 18 s, with its own default, 300 ms, after 11 s: an
# outage of 20 s, as a change of networks brings, ends it. The error is that of a server that does not answer. Its
# documentation says that WithRTO "sets client RTO as defined in STUN RFC". By RFC 8489, 6.2.1, the RTO begins at 500 ms
# or more, the interval doubles, 7 copies go out (Rc), and 16 RTO (Rm) after the last the request has failed.
#
# Seen, in RTO: copies at 0, 1, 3, 6, 10, 15, 21 and 28, end at 36; right are 0, 1, 3, 7, 15, 31 and 63, end at 79,
# which is 39.5 s.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >go.mod <<'END'
module finding

go 1.24

require github.com/pion/stun/v3 v3.1.7
END
cat >main.go <<'END'
package main

import (
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"time"

	"github.com/pion/stun/v3"
)

const rto = 200 * time.Millisecond

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	server := must(net.ListenPacket("udp4", "127.0.0.1:0"))
	client := must(stun.NewClient(must(net.Dial("udp4", server.LocalAddr().String())), stun.WithRTO(rto)))
	begin := time.Now()
	now := func() float64 { return time.Since(begin).Seconds() / rto.Seconds() }
	copies, end := make(chan float64, 100), make(chan float64, 1)
	go func() {
		buffer := make([]byte, 1500)
		for {
			if _, _, err := server.ReadFrom(buffer); err != nil {
				return
			}
			copies <- now()
		}
	}()
	request := stun.MustBuild(stun.TransactionID, stun.BindingRequest)
	err := client.Do(request, func(event stun.Event) {
		if !errors.Is(event.Error, stun.ErrTransactionTimeOut) {
			panic(event.Error)
		}
		end <- now()
	})
	if err != nil {
		panic(err)
	}
	told := <-end
	same := math.Abs(told-36) < 0.5
	server.Close()
	close(copies)
	expected := []float64{0, 1, 3, 6, 10, 15, 21, 28}
	same = same && len(copies) == len(expected)
	fmt.Print("copies after")
	for at := range copies {
		fmt.Printf(" %.0f", at)
		same = same && math.Abs(at-expected[0]) < 0.5
		if len(expected) > 1 {
			expected = expected[1:]
		}
	}
	fmt.Printf(" RTO, given up after %.0f\n", told)
	if !same {
		os.Exit(1)
	}
}
END
go mod tidy >log 2>&1 || { cat log >&2; exit 2; }
go run .
