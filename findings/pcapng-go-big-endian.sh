#!/bin/sh
# The Go module github.com/gopacket/gopacket v1.7.7 (pcapgo, ReadPacketDataWithOptions) reads the options
# of a packet as little-endian, whatever the byte order of the section. In a capture of a big-endian
# machine, as many routers with a MIPS processor are, one lost packet (epb_dropcount) is
# 72,057,594,037,927,936, and a packet received without fault has no direction and a CRC error
# (epb_flags). Header, times and interface statistics are right, and no error is returned. Options are
# in the byte order of their section (draft-ietf-opsawg-pcapng, 3.6.1 and 4.3.1); tshark 4.0.17 reads both
# files alike.
#
# Seen: little-endian flags 0x1, drops 1; big-endian flags 0x1000000, drops 72057594037927936.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >go.mod <<'END'
module finding

go 1.23

require github.com/gopacket/gopacket v1.7.7
END
cat >main.go <<'END'
package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"

	"github.com/gopacket/gopacket/pcapgo"
)

func fields(order binary.ByteOrder, values ...any) []byte {
	var written bytes.Buffer
	for _, value := range values {
		if err := binary.Write(&written, order, value); err != nil {
			panic(err)
		}
	}
	return written.Bytes()
}

func block(order binary.ByteOrder, kind uint32, values ...any) []byte {
	body := fields(order, values...)
	length := uint32(12 + len(body))
	return fields(order, kind, length, body, length)
}

func main() {
	const inbound, lost = uint32(1), uint64(1)
	changed := false
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		file := block(order, 0x0A0D0D0A, uint32(0x1A2B3C4D), uint16(1), uint16(0), int64(-1))
		file = append(file, block(order, 1, uint16(1), uint16(0), uint32(0))...)
		file = append(file, block(order, 6, uint32(0), uint64(0), uint32(4), uint32(4), uint32(0),
			uint16(2), uint16(4), inbound, uint16(4), uint16(8), lost, uint32(0))...)
		reader, err := pcapgo.NewNgReader(bytes.NewReader(file), pcapgo.DefaultNgReaderOptions)
		if err != nil {
			panic(err)
		}
		_, _, options, err := reader.ReadPacketDataWithOptions()
		if err != nil {
			panic(err)
		}
		flags, drops := options.Flags.ToUint32(), *options.DropCount
		fmt.Printf("%v flags %#x, drops %d\n", order, flags, drops)
		wrong := order == binary.BigEndian
		changed = changed || (flags != inbound) != wrong || (drops != lost) != wrong
	}
	if changed {
		os.Exit(1)
	}
}
END
go mod tidy >log 2>&1 || { cat log >&2; exit 2; }
go run .
