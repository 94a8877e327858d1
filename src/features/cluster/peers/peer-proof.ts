import { createHash, createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';

/**
 * The version of all that instances say to each other. It rises with each change that an older instance would misread.
 * For a rolling upgrade, an instance also speaks the version before. Instances without a common version refuse each
 * other's requests, and say why.
 */
const versions = { newest: 5, oldest: 5 };

/** The versions of this instance, as it publishes them: the first word of its address. */
export const ownVersions = `v${versions.oldest}-${versions.newest}`;

/** The newest version that this instance has in common with one that has published this address. */
export function commonVersion(address: string): number | undefined {
  const [, oldest, newest] = /^v(\d+)-(\d+) /.exec(address) ?? [];
  const common = Math.min(versions.newest, Number(newest));
  return common >= Math.max(versions.oldest, Number(oldest)) ? common : undefined;
}

/** The two ends of a connection, and the version that they speak. A name is used once, so a proof is for one lease. */
export interface PeerPair {
  readonly from: string;
  readonly to: string;
  readonly version: number;
}

/** The identity that the asking instance names when it connects, and the key that proves it. */
export interface PeerCredential {
  readonly identity: string;
  readonly psk: Buffer;
}

/** Why a connection or a request is refused. */
export type PeerRefusal = 'malformed' | 'version' | 'stranger';

const markBytes = 6;
const keyBytes = 32;

/**
 * Makes the credential of a pair of instances. Its key is derived from the secret, the version and both names. A recorded
 * identity is therefore useless to a stranger, and a key fits no other pair.
 */
export function peerCredential(secret: Buffer, { from, to, version }: PeerPair): PeerCredential {
  const mark = createHash('sha256').update('mcp-gangway link mark').update(secret).digest().subarray(0, markBytes);
  const identity = `gangway-peer ${version} ${mark.toString('hex')} ${from} ${to}`;
  return { identity, psk: Buffer.from(hkdfSync('sha256', secret, '', identity, keyBytes)) };
}

/** A pair that a connecting peer has named, and the key that it has to prove. */
export interface NamedPair extends PeerPair {
  readonly psk: Buffer;
}

/** Finds the key for an identity that a connecting peer names. A refusal for anything but an instance of the cluster. */
export function findNamedPair(identity: string, secrets: readonly Buffer[]): NamedPair | PeerRefusal {
  const [, version, from = '', to = ''] = /^gangway-peer (\d{1,9}) \S+ (\S+) (\S+)$/.exec(identity) ?? [];
  if (version === undefined) return 'malformed';
  const pair = { from, to, version: Number(version) };
  if (pair.version > versions.newest || pair.version < versions.oldest) return 'version';
  if (from === to) return 'stranger';
  const found = secrets.map((secret) => peerCredential(secret, pair)).find((known) => known.identity === identity);
  return found === undefined ? 'stranger' : { ...pair, psk: found.psk };
}

/** How many random bytes an instance sends to one that connects without TLS. */
export const nonceBytes = 32;

const macOf = (psk: Buffer, nonce: Buffer): Buffer => createHmac('sha256', psk).update(nonce).digest();

/** What an instance answers to a nonce, as one line: its identity, and the proof of its key. */
export const answerNonce = ({ identity, psk }: PeerCredential, nonce: Buffer): string =>
  `${identity} ${macOf(psk, nonce).toString('base64')}\n`;

/** Reads the answer to a nonce. A recorded answer proves nothing: every connection has a nonce of its own. */
export function readProof(line: string, nonce: Buffer, secrets: readonly Buffer[]): NamedPair | PeerRefusal {
  const end = line.lastIndexOf(' ');
  const pair = findNamedPair(line.slice(0, Math.max(0, end)), secrets);
  if (typeof pair === 'string') return pair;
  const proof = Buffer.from(line.slice(end + 1), 'base64');
  const expected = macOf(pair.psk, nonce);
  return proof.length === expected.length && timingSafeEqual(proof, expected) ? pair : 'stranger';
}
