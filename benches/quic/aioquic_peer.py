"""The two ends of a download by QUIC, with aioquic; as quic-peer, whose arguments it takes.

aioquic_peer.py serve ADDRESS:PORT CERTIFICATE BYTES reno|cubic
aioquic_peer.py fetch ADDRESS:PORT CERTIFICATE
"""

import asyncio
import datetime
import ssl
import sys
import time
from pathlib import Path

from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import (
    ConnectionTerminated,
    HandshakeCompleted,
    QuicEvent,
    StreamDataReceived,
)
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

# Neither flow control nor idleness ends or bounds a transfer over a long, fat or broken path.
LIMITS = {"idle_timeout": 900.0, "max_data": 64 << 20, "max_stream_data": 64 << 20}
PROTOCOL = ["download"]


def endpoint(address: str) -> tuple[str, int]:
    """Host and port of `ADDRESS:PORT`."""
    host, port = address.rsplit(":", 1)
    return host.strip("[]"), int(port)


async def server(address: str, file: str, size: int, congestion: str) -> None:
    """Sends `size` bytes on the first connection, until it is closed."""
    over = asyncio.Event()

    class Sender(QuicConnectionProtocol):
        def quic_event_received(self, event: QuicEvent) -> None:
            if isinstance(event, HandshakeCompleted):
                stream = self._quic.get_next_available_stream_id(is_unidirectional=True)
                self._quic.send_stream_data(stream, bytes(size), end_stream=True)
                self.transmit()
            elif isinstance(event, ConnectionTerminated):
                over.set()

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fixed")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    configuration = QuicConfiguration(
        is_client=False,
        alpn_protocols=PROTOCOL,
        congestion_control_algorithm=congestion,
        certificate=certificate,
        private_key=key,
        **LIMITS,
    )
    await serve(*endpoint(address), configuration=configuration, create_protocol=Sender)
    # The client does not check it; the file says that the server is there.
    Path(file).touch()
    print("ready", flush=True)
    await over.wait()


async def client(address: str) -> None:
    """Prints when how many bytes were there, until all are."""
    over = asyncio.Event()

    class Receiver(QuicConnectionProtocol):
        total = 0

        def quic_event_received(self, event: QuicEvent) -> None:
            if isinstance(event, StreamDataReceived):
                self.total += len(event.data)
                print(time.monotonic_ns(), self.total, flush=True)
                if event.end_stream:
                    over.set()
            elif isinstance(event, ConnectionTerminated):
                over.set()

    configuration = QuicConfiguration(
        is_client=True, alpn_protocols=PROTOCOL, verify_mode=ssl.CERT_NONE, **LIMITS
    )
    async with connect(*endpoint(address), configuration=configuration, create_protocol=Receiver):
        await over.wait()


match sys.argv[1:]:
    case ["serve", address, file, size, congestion]:
        asyncio.run(server(address, file, int(size), congestion))
    case ["fetch", address, _]:
        asyncio.run(client(address))
    case _:
        sys.exit(__doc__)
