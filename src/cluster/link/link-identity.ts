import { createHash, hkdfSync } from 'node:crypto';

/**
 * The version of the direct link. It rises with any change that an older instance would misread. Instances with
 * different versions do not connect, and exchange their messages through the store.
 */
const linkVersion = 1;

/** The two instances that a direct connection is for. Each name is used once, so a connection belongs to one lease. */
export interface LinkPeers {
  readonly from: string;
  readonly to: string;
}

/** The identity that the dialing instance names in the handshake, and the key that proves it. */
export interface LinkCredential {
  readonly identity: string;
  readonly psk: Buffer;
}

const markBytes = 6;
const keyBytes = 32;

/**
 * Makes the credential of a connection. Its key is derived from the secret, the version and both names. A recorded
 * identity is therefore useless to a stranger, and a key fits no other pair of instances.
 */
export function linkCredential(secret: Buffer, { from, to }: LinkPeers): LinkCredential {
  const mark = createHash('sha256').update('mcp-gangway link mark').update(secret).digest().subarray(0, markBytes);
  const identity = `gangway-link ${linkVersion} ${mark.toString('hex')} ${from} ${to}`;
  return { identity, psk: Buffer.from(hkdfSync('sha256', secret, '', identity, keyBytes)) };
}

/**
 * Finds the credential for an identity that a dialing peer names. Undefined if the identity is malformed, is for another
 * instance or version, or names an unknown secret.
 * @param to the name of this instance
 */
export function acceptIdentity(
  identity: string,
  to: string,
  secrets: readonly Buffer[],
): (LinkCredential & Pick<LinkPeers, 'from'>) | undefined {
  const from = identity.split(' ')[3];
  if (from === undefined || from === '' || from === to) return undefined;
  const credentials = secrets.map((secret) => linkCredential(secret, { from, to }));
  const found = credentials.find((credential) => credential.identity === identity);
  return found && { ...found, from };
}
