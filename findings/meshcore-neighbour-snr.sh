#!/bin/sh
# meshcoredecoder 0.3.2 (PyPI), which reads the packets of MeshCore (a mesh of LoRa radios), tells the signal-to-noise
# ratios of a repeater's neighbours times four (_parse_neighbors in decoder/payload_decoders/response.py, "not
# multiplied by 4"). The firmware sends quarters of a dB, as the comment of the package's own NeighborEntry says, and
# meshcore 2.3.17 (PyPI), which talks to the radios, divides by four. So a neighbour at -7.5 dB, which LoRa receives
# well at most of its rates, is told at -30 dB, which it never receives. And a reply does not say how long the names of
# the nodes are; the request did, and the decoder guesses. Where they have four bytes, it gives one to the only
# neighbour of a repeater, with a ratio of 0 dB. Three neighbours are right but for the factor in one list, and in
# another have names of eight bytes, the first last heard a year ago. Nothing is said; all are marked valid.
#
# Seen: 12.25 and -7.5 dB are 49 and -30 dB; -3 dB, alone, is 0 dB; 5, 2 and -19 dB are 20, 8 and -76, and 3, 0 and 0
# dB.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check meshcoredecoder==0.3.2 pynacl==1.5.0
cat >run.py <<'END'
import hashlib
import hmac
import struct

from Crypto.Cipher import AES
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from meshcoredecoder import MeshCoreDecoder
from meshcoredecoder.crypto.key_manager import MeshCoreKeyStore
from meshcoredecoder.types.crypto import DecryptionOptions
from nacl.bindings import crypto_sign_ed25519_pk_to_curve25519

RESPONSE, DIRECT = 1, 2
TAG, SECONDS_AGO = 1_700_000_000, 60
reader = bytes(range(1, 33))
repeater = Ed25519PrivateKey.from_private_bytes(bytes(range(32))).public_key().public_bytes_raw()
public = X25519PublicKey.from_public_bytes(crypto_sign_ed25519_pk_to_curve25519(repeater))
secret = X25519PrivateKey.from_private_bytes(reader).exchange(public)


def reply(ratios):
    """The packet of a repeater with such neighbours, which were asked for with names of four bytes."""
    text = struct.pack("<IHH", TAG, len(ratios), len(ratios))
    for index, ratio in enumerate(ratios):
        text += bytes([0xA0 + index, 1, 2, 3]) + struct.pack("<Ib", SECONDS_AGO, round(4 * ratio))
    cipher = AES.new(secret[:16], AES.MODE_ECB).encrypt(text + bytes(-len(text) % 16))
    code = hmac.new(secret, cipher, hashlib.sha256).digest()[:2]
    return bytes([RESPONSE << 2 | DIRECT, 0, 0x77, repeater[0]]) + code + cipher


options = DecryptionOptions(key_store=MeshCoreKeyStore({"node_keys": {repeater.hex(): reader.hex()}}))
for ratios in ([12.25, -7.5], [-3.0], [5.0, 2.0, -19.0]):
    decoded = MeshCoreDecoder.decode(reply(ratios).hex(), options).payload["decoded"]
    print(f"{ratios} dB, valid {decoded.is_valid}")
    for entry in decoded.to_dict()["neighbors"]:
        print(f"  {entry['nodeId']} {entry['snr']} dB, {TAG - entry['heardTimestamp']} s ago")
    for entry in decoded.decrypted["content"].get("neighbors", []):
        print(f"  content: {entry['pubkey_prefix']} {entry['snr']} dB, {entry['heard_seconds_ago']} s ago")
END
env/bin/python run.py | tee told
cat >expected <<'END'
[12.25, -7.5] dB, valid True
  A0010203 49.0 dB, 60 s ago
  A1010203 -30.0 dB, 60 s ago
[-3.0] dB, valid True
  A0 0.0 dB, 1006830081 s ago
[5.0, 2.0, -19.0] dB, valid True
  A0010203 20.0 dB, 60 s ago
  A1010203 8.0 dB, 60 s ago
  A2010203 -76.0 dB, 60 s ago
  content: A00102033C000000 3 dB, 33661204 s ago
  content: 3C00000008A20102 0 dB, 15363 s ago
  content: B400000000000000 0 dB, 0 s ago
END
diff expected told
