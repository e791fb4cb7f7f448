//! A stand-in for TLS 1.3: sizes and steps of a handshake, without cryptography.
//!
//! What the network sees of cryptography is its size: a tag of 16 bytes on each packet (RFC 9001
//! §5.3) and the messages of the handshake. These carry the transport parameters and otherwise
//! zeros; their sizes without those are of the trace in RFC 8448 §3, with a certificate of 445
//! bytes. There is no session to resume, so no 0-RTT.

use quinn_proto::crypto::{
    self, AeadKey, CryptoError, ExportKeyingMaterialError, HandshakeTokenKey, HeaderKey, HmacKey,
    KeyPair, Keys, PacketKey, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError, TransportErrorCode};
use std::any::Any;
use std::sync::Arc;

/// Bytes of the tag of AES-128-GCM (RFC 9001 §5.3).
const TAG: usize = 16;
/// Bytes of ciphertext from which header protection is made (RFC 9001 §5.4.2).
const SAMPLE: usize = 16;
/// Packets that one key of AES-128-GCM may protect, and forgeries it may see (RFC 9001 §6.6).
const CONFIDENTIALITY_LIMIT: u64 = 1 << 23;
const INTEGRITY_LIMIT: u64 = 1 << 52;

/// Sizes of TLS messages (RFC 8448 §3), without transport parameters.
const CLIENT_HELLO: usize = 196;
const SERVER_HELLO: usize = 90;
/// EncryptedExtensions, Certificate, CertificateVerify and Finished.
const SERVER_FLIGHT: usize = 40 + 445 + 136 + 36;
const CLIENT_FINISHED: usize = 36;

/// A key that leaves packets as they are but for the room of the tag.
struct NoKey;

impl PacketKey for NoKey {
    fn encrypt(&self, packet: u64, buf: &mut [u8], _header_len: usize) {
        let tag = buf.len() - TAG;
        buf[tag..tag + 8].copy_from_slice(&packet.to_be_bytes());
    }

    fn decrypt(
        &self,
        packet: u64,
        _header: &[u8],
        payload: &mut bytes::BytesMut,
    ) -> Result<(), CryptoError> {
        let len = payload.len().checked_sub(TAG).ok_or(CryptoError)?;
        if payload[len..len + 8] != packet.to_be_bytes() {
            return Err(CryptoError);
        }
        payload.truncate(len);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    fn confidentiality_limit(&self) -> u64 {
        CONFIDENTIALITY_LIMIT
    }

    fn integrity_limit(&self) -> u64 {
        INTEGRITY_LIMIT
    }
}

impl HeaderKey for NoKey {
    fn decrypt(&self, _pn_offset: usize, _packet: &mut [u8]) {}

    fn encrypt(&self, _pn_offset: usize, _packet: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        SAMPLE
    }
}

/// Tokens of Retry and NEW_TOKEN, neither of which a server sends here.
impl AeadKey for NoKey {
    fn seal(&self, data: &mut Vec<u8>, _additional_data: &[u8]) -> Result<(), CryptoError> {
        data.extend([0; TAG]);
        Ok(())
    }

    fn open<'a>(
        &self,
        data: &'a mut [u8],
        _additional_data: &[u8],
    ) -> Result<&'a mut [u8], CryptoError> {
        let len = data.len().checked_sub(TAG).ok_or(CryptoError)?;
        Ok(&mut data[..len])
    }
}

fn keys() -> Keys {
    Keys {
        header: KeyPair { local: Box::new(NoKey), remote: Box::new(NoKey) },
        packet: KeyPair { local: Box::new(NoKey), remote: Box::new(NoKey) },
    }
}

/// The configurations of both sides, which have nothing to configure.
pub(super) struct NoTls;

impl crypto::ClientConfig for NoTls {
    fn start_session(
        self: Arc<Self>,
        _version: u32,
        _server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn crypto::Session>, ConnectError> {
        Ok(Box::new(Session::new(Side::Client, params)))
    }
}

impl crypto::ServerConfig for NoTls {
    fn initial_keys(
        &self,
        _version: u32,
        _dst_cid: &ConnectionId,
    ) -> Result<Keys, UnsupportedVersion> {
        Ok(keys())
    }

    fn retry_tag(&self, _version: u32, _orig_dst_cid: &ConnectionId, _packet: &[u8]) -> [u8; 16] {
        [0; 16]
    }

    fn start_session(
        self: Arc<Self>,
        _version: u32,
        params: &TransportParameters,
    ) -> Box<dyn crypto::Session> {
        Box::new(Session::new(Side::Server, params))
    }
}

impl HandshakeTokenKey for NoTls {
    fn aead_from_hkdf(&self, _random_bytes: &[u8]) -> Box<dyn AeadKey> {
        Box::new(NoKey)
    }
}

/// Makes the tokens of stateless resets (RFC 9000 §10.3): different ones for different connection
/// ids, which is all that is needed where nobody forges.
pub(super) struct ResetKey(pub(super) u64);

impl HmacKey for ResetKey {
    fn sign(&self, data: &[u8], signature_out: &mut [u8]) {
        // FNV-1a over the key, the data, and then the output's own bytes.
        let step = |h: u64, b: u8| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3);
        let seed = self.0.to_le_bytes().into_iter().chain(data.iter().copied());
        let mut state = seed.fold(0xcbf2_9ce4_8422_2325, step);
        for byte in signature_out {
            state = step(state, 0);
            *byte = (state >> 56) as u8;
        }
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let mut own = [0; 32];
        self.sign(data, &mut own);
        if own == signature { Ok(()) } else { Err(CryptoError) }
    }
}

/// What one side does next (RFC 9001 §4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// A client sends its ClientHello.
    SendClientHello,
    /// A client waits for the ServerHello.
    AwaitServerHello,
    /// A client derives the handshake keys.
    DeriveHandshakeKeys,
    /// A client waits for the server's Finished.
    AwaitServerFinished,
    /// A client sends its Finished.
    SendClientFinished,
    /// A server waits for the ClientHello.
    AwaitClientHello,
    /// A server sends its ServerHello.
    SendServerHello,
    /// A server sends the rest of its flight.
    SendServerFlight,
    /// A server waits for the client's Finished.
    AwaitClientFinished,
    /// The handshake is complete.
    Done,
}

/// One side of a handshake.
///
/// A message is its length, in four bytes, the length of the transport parameters in it, in two,
/// these, and zeros.
struct Session {
    side: Side,
    step: Step,
    /// Our transport parameters, encoded.
    params: Vec<u8>,
    /// The peer's, once known.
    peer_params: Option<TransportParameters>,
    /// Bytes of a message that is not yet complete.
    received: Vec<u8>,
}

impl Session {
    fn new(side: Side, params: &TransportParameters) -> Self {
        let mut encoded = Vec::new();
        params.write(&mut encoded);
        let step = match side {
            Side::Client => Step::SendClientHello,
            Side::Server => Step::AwaitClientHello,
        };
        Self { side, step, params: encoded, peer_params: None, received: Vec::new() }
    }

    /// Writes messages that have `size` bytes without transport parameters.
    fn write(&self, size: usize, with_params: bool, to: &mut Vec<u8>) {
        let params = if with_params { &self.params[..] } else { &[] };
        let end = to.len() + size + params.len();
        to.extend(((size + params.len()) as u32).to_be_bytes());
        to.extend((params.len() as u16).to_be_bytes());
        to.extend(params);
        to.resize(end, 0);
    }

    /// The next complete message: its transport parameters, encoded.
    fn next_message(&mut self) -> Option<Vec<u8>> {
        let length = u32::from_be_bytes(*self.received.first_chunk()?) as usize;
        if self.received.len() < length {
            return None;
        }
        let message: Vec<u8> = self.received.drain(..length).collect();
        let params = usize::from(u16::from_be_bytes([*message.get(4)?, *message.get(5)?]));
        message.get(6..6 + params).map(<[u8]>::to_vec)
    }

    fn read_params(&mut self, mut encoded: &[u8]) -> Result<(), TransportError> {
        self.peer_params = Some(TransportParameters::read(self.side, &mut encoded)?);
        Ok(())
    }
}

impl crypto::Session for Session {
    fn initial_keys(&self, _dst_cid: &ConnectionId, _side: Side) -> Keys {
        keys()
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        self.step != Step::Done
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.received.extend(buf);
        while let Some(params) = self.next_message() {
            self.step = match self.step {
                Step::AwaitServerHello => Step::DeriveHandshakeKeys,
                Step::AwaitServerFinished => {
                    self.read_params(&params)?;
                    Step::SendClientFinished
                }
                Step::AwaitClientHello => {
                    self.read_params(&params)?;
                    Step::SendServerHello
                }
                Step::AwaitClientFinished => Step::Done,
                // A message out of turn.
                _ => return Err(TransportErrorCode::PROTOCOL_VIOLATION.into()),
            };
        }
        Ok(false)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.peer_params)
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let (next, keys) = match self.step {
            Step::SendClientHello => {
                self.write(CLIENT_HELLO, true, buf);
                (Step::AwaitServerHello, None)
            }
            Step::DeriveHandshakeKeys => (Step::AwaitServerFinished, Some(keys())),
            Step::SendClientFinished => {
                self.write(CLIENT_FINISHED, false, buf);
                (Step::Done, Some(keys()))
            }
            Step::SendServerHello => {
                self.write(SERVER_HELLO, false, buf);
                (Step::SendServerFlight, Some(keys()))
            }
            Step::SendServerFlight => {
                self.write(SERVER_FLIGHT, true, buf);
                (Step::AwaitClientFinished, Some(keys()))
            }
            step => (step, None),
        };
        self.step = next;
        keys
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(KeyPair { local: Box::new(NoKey), remote: Box::new(NoKey) })
    }

    fn is_valid_retry(&self, _orig_dst_cid: &ConnectionId, _header: &[u8], _data: &[u8]) -> bool {
        true
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        _label: &[u8],
        _context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        output.fill(0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reset_tokens_differ_by_connection_id_and_key() {
        let sign = |key, data: &[u8]| {
            let mut out = [0; 32];
            ResetKey(key).sign(data, &mut out);
            out
        };
        assert_eq!(sign(1, b"abcdefgh"), sign(1, b"abcdefgh"));
        assert_ne!(sign(1, b"abcdefgh"), sign(1, b"abcdefgi"));
        assert_ne!(sign(1, b"abcdefgh"), sign(2, b"abcdefgh"));
        assert!(ResetKey(1).verify(b"abcdefgh", &sign(1, b"abcdefgh")).is_ok());
        assert!(ResetKey(1).verify(b"abcdefgh", &sign(2, b"abcdefgh")).is_err());
    }
}
