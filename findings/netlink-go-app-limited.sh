#!/bin/sh
# The Go module github.com/vishvananda/netlink v1.3.1 (SocketDiagTCPInfo) reads the bit fields of
# `struct tcp_info` (Linux's include/uapi/linux/tcp.h) from the high bit of a byte down; on x86 and ARM
# they go from the low bit up. So tcpi_delivery_rate_app_limited is never set: a delivery rate that the
# application limited looks like one that the path did. For the same reason tcpi_fastopen_client_fail
# is always 0, and the two window scales are exchanged. No error is returned. ss of iproute2 6.1.0 has
# all of them right.
#
# Seen on a connection that sends a byte per round trip: kernel app_limited 1, scales (snd, rcv) (5, 10)
# or the like; netlink 0, (10, 5).
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >go.mod <<'END'
module finding

go 1.23

require github.com/vishvananda/netlink v1.3.1
END
cat >main.go <<'END'
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"syscall"
	"unsafe"

	"github.com/vishvananda/netlink"
)

type Told struct {
	AppLimited uint8
	Scales     [2]uint8 // of the peer's window, of ours
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	config := net.ListenConfig{Control: func(_, _ string, socket syscall.RawConn) error {
		return socket.Control(func(fd uintptr) {
			_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 1<<20)
		})
	}}
	listener := must(config.Listen(context.Background(), "tcp4", "127.0.0.1:0"))
	client := must(net.Dial("tcp4", listener.Addr().String())).(*net.TCPConn)
	server := must(listener.Accept())
	for range 20 {
		must(client.Write([]byte{0}))
		must(server.Read(make([]byte, 1)))
	}

	var info [8]byte
	size := uint32(len(info))
	err := must(client.SyscallConn()).Control(func(fd uintptr) {
		_, _, errno := syscall.Syscall6(syscall.SYS_GETSOCKOPT, fd, syscall.IPPROTO_TCP, syscall.TCP_INFO,
			uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
		if errno != 0 {
			panic(errno)
		}
	})
	if err != nil {
		panic(err)
	}
	kernel := Told{info[7] & 1, [2]uint8{info[6] & 15, info[6] >> 4}}
	port := uint16(client.LocalAddr().(*net.TCPAddr).Port)
	for _, found := range must(netlink.SocketDiagTCPInfo(syscall.AF_INET)) {
		if found.InetDiagMsg.ID.SourcePort == port {
			by := found.TCPInfo
			told := Told{by.Delivery_rate_app_limited, [2]uint8{by.Snd_wscale, by.Rcv_wscale}}
			fmt.Printf("kernel %+v netlink %+v\n", kernel, told)
			if kernel.AppLimited != 1 {
				panic("the kernel says that the path limited it: nothing to see here")
			}
			if told != (Told{0, [2]uint8{kernel.Scales[1], kernel.Scales[0]}}) {
				os.Exit(1)
			}
			return
		}
	}
	panic("no such connection")
}
END
go mod tidy >log 2>&1 || { cat log >&2; exit 2; }
go run .
