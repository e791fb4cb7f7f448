#!/bin/sh
# Two packages go wrong between MAC addresses and IPv6 addresses made from them. mactools 1.8.0 (PyPI), the newest for
# Python 3.11, makes the interface identifier by adding 2 to the second digit (eui64_suffix in basemac.py), where RFC
# 4291, appendix A, inverts a bit. That is right for the addresses of manufacturers only: those that phones and laptops
# draw at random for each network have the bit set. For second digits of 2, 6 and a the link-local address is another
# host's; for e it has a digit too many. Integers below 2^44 lose their leading zeros (number_to_hex_mac). The Rust
# crate advmac 1.0.3 finds the MAC in an interface identifier if either of its two middle bytes is as it should be, ff
# or fe, where both must (try_from_modified_eui64). So one in 128 identifiers that are drawn at random (RFC 8981) tells
# a MAC that is nobody's. No error is returned. mactools 2.0.0, for Python 3.12, inverts the bit.
#
# Seen, mactools: 02:11:22:33:44:55 is fe80::0411:22ff:fe33:4455, right fe80::11:22ff:fe33:4455; 0e:... is
# fe80::0101:122f:ffe3:3445:5; 0x001122334455 is 11:22:33:44:55. advmac: 511 of all 65536 pairs of middle bytes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check mactools==1.8.0
cat >run.py <<'END'
import ipaddress

from mactools import MacAddress

for text in ("00:11:22:33:44:55", "02:11:22:33:44:55", "0e:11:22:33:44:55"):
    octets = bytes.fromhex(text.replace(":", ""))
    identifier = bytes([octets[0] ^ 2]) + octets[1:3] + b"\xff\xfe" + octets[3:]
    right = ipaddress.IPv6Address(bytes.fromhex("fe80000000000000") + identifier)
    told = MacAddress(text).link_local_address
    try:
        same = ipaddress.IPv6Address(told) == right
    except ValueError:
        same = False
    print(f"mactools: {text} is {told},", "right" if same else f"right is {right}")
print("mactools: 0x001122334455 is", MacAddress.number_to_hex_mac(0x001122334455))
END
mkdir src
cat >Cargo.toml <<'END'
[package]
name = "finding"
version = "0.1.0"
edition = "2021"

[dependencies]
advmac = "=1.0.3"

[profile.dev]
debug = false

[workspace]
END
cat >src/main.rs <<'END'
use advmac::{MacAddr6, MacAddr8};

fn main() {
    let identifier = |a, b| MacAddr8::new([0xd4, 0x3a, 0x91, a, b, 0x0c, 0x77, 0xe2]);
    let mac = |a, b| MacAddr6::try_from_modified_eui64(identifier(a, b));
    let found = (0..=0xffffu32).filter(|pair| mac((pair >> 8) as u8, *pair as u8).is_ok()).count();
    println!("advmac: finds a MAC in {found} of 65536 identifiers, {} in that of ff and 07", mac(0xff, 7).unwrap());
}
END
{ env/bin/python run.py && cargo run --quiet; } | tee told
cat >expected <<'END'
mactools: 00:11:22:33:44:55 is fe80::0211:22ff:fe33:4455, right
mactools: 02:11:22:33:44:55 is fe80::0411:22ff:fe33:4455, right is fe80::11:22ff:fe33:4455
mactools: 0e:11:22:33:44:55 is fe80::0101:122f:ffe3:3445:5, right is fe80::c11:22ff:fe33:4455
mactools: 0x001122334455 is 11:22:33:44:55
advmac: finds a MAC in 511 of 65536 identifiers, D6-3A-91-0C-77-E2 in that of ff and 07
END
diff expected told
