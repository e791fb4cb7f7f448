#!/bin/sh
# The Go module github.com/gopacket/gopacket v1.7.7 takes the bit "Doppler known" of radiotap's HE field
# (data1, 0x8000) for "STA-ID known" too. In a multi-user frame that is 0x0800 (radiotap.org, HE). So it
# does not give the station that this part of an OFDMA frame is for where the receiver knew it, and gives
# station 0, which stands for all, where the receiver knew of Doppler alone, as Linux's iwlwifi does. No
# error is returned. RadiotapHeader of ns-3 3.37 has 0x0800, and tshark 4.0.17 shows that bit, by its name
# in trigger frames (radiotap.he.data_1.spatial_reuse_2_known).
#
# Seen: STA-ID 37 known: StaIDKnown false, no STA ID; Doppler known alone: StaIDKnown true, "STA ID: 0".
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >go.mod <<'END'
module finding

go 1.24

require github.com/gopacket/gopacket v1.7.7
END
cat >main.go <<'END'
package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

const (
	multiUser    = 0x0002
	staIDKnown   = 0x0800
	dopplerKnown = 0x8000
)

// read decodes an ACK with an HE field.
func read(known, station uint16) (bool, string) {
	header := []byte{0, 0, 20, 0}
	header = binary.LittleEndian.AppendUint32(header, 1<<23)
	for _, data := range []uint16{multiUser | known, 0, 0, station << 4, 0, 0} {
		header = binary.LittleEndian.AppendUint16(header, data)
	}
	ack := []byte{0xD4, 0, 0, 0, 2, 0, 0, 0, 0, 1}
	packet := gopacket.NewPacket(append(header, ack...), layers.LayerTypeRadioTap, gopacket.Default)
	he := packet.Layer(layers.LayerTypeRadioTap).(*layers.RadioTap).RadioTapValues[0].HE
	shown := "no STA ID"
	for _, part := range strings.Split(he.String(), ",") {
		if strings.HasPrefix(part, "STA ID") {
			shown = part
		}
	}
	return he.Data1.StaIDKnown(), shown
}

func main() {
	known, shown := read(staIDKnown, 37)
	fmt.Printf("STA-ID 37 known: StaIDKnown %v, %s\n", known, shown)
	changed := known || shown != "no STA ID"
	known, shown = read(dopplerKnown, 0)
	fmt.Printf("Doppler known: StaIDKnown %v, %s\n", known, shown)
	if changed || !known || shown != "STA ID: 0" {
		os.Exit(1)
	}
}
END
go mod tidy >log 2>&1 || { cat log >&2; exit 2; }
go run .
