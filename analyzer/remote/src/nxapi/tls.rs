//! TLS to a switch: its certificate is one that the system or a named authority signed, or the one with a known fingerprint.
//!
//! ureq takes roots and no verifier. Its connector is replaced by this one, which asks rustls.

use std::fmt::{self, Write as _};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;

use roce_switches::inventory::SwitchTarget;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore,
    SignatureScheme, StreamOwned,
};
use sha2::{Digest as _, Sha256};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport, TransportAdapter,
};

use crate::reader::error::ReaderError;

/// Bytes of a file with certificates.
const MAX_PEM_BYTES: u64 = 1 << 20;

/// The connector of TLS.
pub(crate) struct Tls(Arc<ClientConfig>);

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

impl Tls {
    /// The connector for a switch: `fingerprint`, `ca`, or the certificates of this host's system.
    pub(super) fn from_target(target: &SwitchTarget) -> Result<Self, ReaderError> {
        Self::new(target.fingerprint.as_deref(), target.ca.as_deref())
    }

    /// The connector for whoever has the certificate with this fingerprint, else one that an authority of the file `ca` has signed, else
    /// one of this host's system.
    pub(crate) fn new(fingerprint: Option<&str>, ca: Option<&str>) -> Result<Self, ReaderError> {
        let provider = Arc::new(ring::default_provider());
        let verifier = verifier(fingerprint, ca, &provider).map_err(ReaderError::Nxapi)?;
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| ReaderError::Nxapi(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        Ok(Self(Arc::new(config)))
    }
}

fn verifier(
    fingerprint: Option<&str>,
    ca: Option<&str>,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, String> {
    if let Some(text) = fingerprint {
        return Ok(Arc::new(PinnedCertificate {
            fingerprint: parse_fingerprint(text)?,
            provider: Arc::clone(provider),
        }));
    }
    let mut roots = RootCertStore::empty();
    if let Some(path) = ca {
        let text = roce_files::read_text(Path::new(path), MAX_PEM_BYTES).map_err(|error| {
            use std::error::Error as _;
            let source = error
                .source()
                .map_or_else(String::new, |source| format!(": {source}"));
            format!("ca: {error}{source}")
        })?;
        for certificate in CertificateDer::pem_slice_iter(text.as_bytes()) {
            let certificate = certificate.map_err(|error| format!("ca: {path}: {error}"))?;
            roots
                .add(certificate)
                .map_err(|error| format!("ca: {path}: {error}"))?;
        }
        if roots.is_empty() {
            return Err(format!("ca: {path}: no certificate (PEM) in it"));
        }
    } else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            return Err(
                "this system has no certificates of authorities\nhint: ca = \"FILE\" or fingerprint = \"sha256:...\""
                    .to_owned(),
            );
        }
    }
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build();
    let verifier = verifier.map_err(|error| error.to_string())?;
    Ok(verifier)
}

/// A fingerprint: `sha256:` and 64 hexadecimal digits, with or without colons between pairs.
fn parse_fingerprint(text: &str) -> Result<[u8; 32], String> {
    let wrong = || format!("fingerprint: '{text}' is not sha256: and 64 hexadecimal digits");
    let digits: Vec<u32> = text
        .strip_prefix("sha256:")
        .ok_or_else(wrong)?
        .chars()
        .filter(|character| *character != ':')
        .map(|character| character.to_digit(16))
        .collect::<Option<_>>()
        .ok_or_else(wrong)?;
    let bytes: Vec<u8> = digits
        .chunks(2)
        .filter_map(|pair| match pair {
            [high, low] => u8::try_from(high << 4 | low).ok(),
            _ => None,
        })
        .collect();
    if digits.len() != 64 {
        return Err(wrong());
    }
    bytes.try_into().map_err(|_| wrong())
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Takes the certificate with a known fingerprint, whoever signed it and whatever name and dates it has. That the switch has its key is
/// checked as always.
#[derive(Debug)]
struct PinnedCertificate {
    fingerprint: [u8; 32],
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for PinnedCertificate {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let found = Sha256::digest(certificate.as_ref());
        if found.as_slice() == self.fingerprint {
            return Ok(ServerCertVerified::assertion());
        }
        let found = hexadecimal(found.as_slice());
        Err(rustls::Error::General(format!(
            "{OTHER_CERTIFICATE} sha256:{found}"
        )))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// Beginning of the error of a certificate that is not the pinned one.
const OTHER_CERTIFICATE: &str = "the certificate is not the one of `fingerprint`: it has";

/// A failed handshake, in one line.
pub(super) fn explained(error: &rustls::Error) -> String {
    match error {
        rustls::Error::General(text) => text.clone(),
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "the certificate is signed by nobody whom this host knows; ca = \"FILE\" or fingerprint = \"sha256:...\" in the inventory names it"
                .to_owned()
        }
        rustls::Error::InvalidCertificate(_) => format!("the certificate is refused: {error}"),
        rustls::Error::PeerIncompatible(_)
        | rustls::Error::AlertReceived(
            AlertDescription::ProtocolVersion | AlertDescription::HandshakeFailure,
        ) => format!(
            "the switch and this program have no version or cipher of TLS in common: NX-OS before 9.x offers TLS 1.0 and 1.1; transport = \"ssh\" reads it ({error})"
        ),
        error => format!("TLS: {error}"),
    }
}

impl<In: Transport> Connector<In> for Tls {
    type Out = Channel;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, ureq::Error> {
        let Some(chained) = chained else { return Ok(None) };
        let host = details.uri.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| ureq::Error::Tls("the address is no name and no IP address"))?;
        let mut connection = ClientConnection::new(Arc::clone(&self.0), name)?;
        let mut inner = TransportAdapter::new(chained.boxed(), details.current_time.clone());
        inner.set_timeout(details.timeout);
        connection.complete_io(&mut inner)?;
        Ok(Some(Channel {
            buffers: LazyBuffers::new(
                details.config.input_buffer_size(),
                details.config.output_buffer_size(),
            ),
            stream: StreamOwned::new(connection, inner),
        }))
    }
}

/// An open connection.
pub(crate) struct Channel {
    buffers: LazyBuffers,
    stream: StreamOwned<ClientConnection, TransportAdapter>,
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Channel")
    }
}

impl Transport for Channel {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        self.stream.get_mut().set_timeout(timeout);
        let output = self.buffers.output().get(..amount).unwrap_or_default();
        self.stream.write_all(output)?;
        Ok(())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.stream.get_mut().set_timeout(timeout);
        let count = self.stream.read(self.buffers.input_append_buf())?;
        self.buffers.input_appended(count);
        Ok(count > 0)
    }

    fn is_open(&mut self) -> bool {
        self.stream.get_mut().get_mut().is_open()
    }

    fn is_tls(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_have_64_digits() {
        let plain = format!("sha256:{}", "0a".repeat(32));
        let colons = format!("sha256:{}", vec!["0A"; 32].join(":"));
        assert_eq!(parse_fingerprint(&plain), Ok([10; 32]));
        assert_eq!(parse_fingerprint(&colons), Ok([10; 32]));
        for wrong in [
            "",
            "sha256:",
            "sha1:0a",
            "sha256:0a",
            &plain[7..],
            &format!("{plain}0"),
        ] {
            assert!(parse_fingerprint(wrong).is_err(), "{wrong}");
        }
    }
}
