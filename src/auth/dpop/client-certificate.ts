import { createHash } from 'node:crypto';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';

/** The thumbprint of each connection's client certificate; undefined for a connection without one. */
const thumbprints = new WeakMap<Socket, string | undefined>();

/**
 * True if the client of a TLS connection has the certificate with this thumbprint (RFC 8705, section 3). The handshake
 * has proved that the client has its key.
 * @param mustBeTrusted true if the certificate must come from the operator's certificate authority
 */
export function hasCertificate(socket: Socket, thumbprint: string, mustBeTrusted: boolean): boolean {
  if (!(socket instanceof TLSSocket) || (mustBeTrusted && !socket.authorized)) return false;
  if (!thumbprints.has(socket)) thumbprints.set(socket, readThumbprint(socket));
  return thumbprints.get(socket) === thumbprint;
}

function readThumbprint(socket: TLSSocket): string | undefined {
  const certificate = socket.getPeerX509Certificate();
  return certificate && createHash('sha256').update(certificate.raw).digest('base64url');
}
