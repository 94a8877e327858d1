import { createHash, createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import { BoundedMap } from '../../util/bounded-map.ts';
import type { PeerRequest } from './peer-request.ts';

/**
 * The version of all that instances say to each other. It rises with each change that an older instance would misread.
 * For a rolling upgrade, an instance also speaks the version before. Instances without a common version refuse each
 * other's requests, and say why.
 */
const versions = { newest: 4, oldest: 4 };

/** The versions of this instance, as it publishes them: the first word of its address. */
export const ownVersions = `v${versions.oldest}-${versions.newest}`;

/** The newest version that this instance has in common with one that has published this address. */
export function commonVersion(address: string): number | undefined {
  const [, oldest, newest] = /^v(\d+)-(\d+) /.exec(address) ?? [];
  const common = Math.min(versions.newest, Number(newest));
  return common >= Math.max(versions.oldest, Number(oldest)) ? common : undefined;
}

/** The two instances of a request, and the version that they speak. A name is used once, so a proof is for one lease. */
export interface PeerPair {
  readonly from: string;
  readonly to: string;
  readonly version: number;
}

/** The identity that the asking instance names in the TLS handshake, and the key that proves it. */
export interface PeerCredential {
  readonly identity: string;
  readonly psk: Buffer;
}

/** Why a request of another instance is refused. */
export type PeerRefusal = 'malformed' | 'version' | 'stranger' | 'clock' | 'replay';

const markBytes = 6;
const keyBytes = 32;

/** How many keys are remembered: one for each pair of names, of which few live at a time (P8). */
const maxCredentials = 1_000;
const credentials = new WeakMap<Buffer, BoundedMap<string, PeerCredential>>();

/**
 * Makes the credential of a pair of instances. Its key is derived from the secret, the version and both names. A recorded
 * identity is therefore useless to a stranger, and a key fits no other pair.
 */
export function peerCredential(secret: Buffer, { from, to, version }: PeerPair): PeerCredential {
  const ofSecret = credentials.get(secret) ?? new BoundedMap<string, PeerCredential>(maxCredentials);
  credentials.set(secret, ofSecret);
  const pair = `${version} ${from} ${to}`;
  const known = ofSecret.get(pair);
  if (known !== undefined) return known;
  const mark = createHash('sha256').update('mcp-gangway link mark').update(secret).digest().subarray(0, markBytes);
  const identity = `gangway-peer ${version} ${mark.toString('hex')} ${from} ${to}`;
  const made = { identity, psk: Buffer.from(hkdfSync('sha256', secret, '', identity, keyBytes)) };
  ofSecret.set(pair, made);
  return made;
}

/** Finds the key for an identity that a connecting peer names. Undefined for anything but a peer of this instance. */
export function findPeerKey(identity: string, to: string, secrets: readonly Buffer[]): Buffer | undefined {
  const [, version, , from = ''] = identity.split(' ');
  if (from === '' || from === to) return undefined;
  return secrets
    .map((secret) => peerCredential(secret, { from, to, version: Number(version) }))
    .find((credential) => credential.identity === identity)?.psk;
}

const macOf = (psk: Buffer, text: string): Buffer => createHmac('sha256', psk).update(text).digest();

/** Writes a request as one signed header: version, names, time, number, contents and proof. */
export function signRequest(secret: Buffer, pair: PeerPair, number: number, request: PeerRequest | 'ping'): string {
  const contents = Buffer.from(JSON.stringify(request)).toString('base64');
  const text = `${pair.version} ${pair.from} ${pair.to} ${Date.now()} ${number} ${contents}`;
  return `${text} ${macOf(peerCredential(secret, pair).psk, text).toString('base64')}`;
}

/** A request with a valid proof. */
export interface ProvenRequest extends PeerPair {
  readonly request: PeerRequest | 'ping';
}

/** The clocks of two instances may differ by this. An older request is refused, so few numbers are remembered. */
const maxClockDifferenceMs = 60_000;

/** How many instances' numbers are remembered (P8). Only an instance that knows the secret makes an entry. */
const maxSenders = 1_000;

/** Reads signed headers, and refuses what is not a new request of an instance of the cluster. */
export class ProofReader {
  readonly #seen = new BoundedMap<string, SeenNumbers>(maxSenders);

  read(header: string, secrets: readonly Buffer[]): ProvenRequest | PeerRefusal {
    const end = header.lastIndexOf(' ');
    const text = header.slice(0, Math.max(0, end));
    const [versionText = '', from = '', to = '', sentMs = '', number = '', contents] = text.split(' ');
    if (!/^\d{1,9}$/.test(versionText)) return 'malformed';
    const version = Number(versionText);
    if (version > versions.newest || version < versions.oldest) return 'version';
    if (contents === undefined) return 'malformed';
    const proof = Buffer.from(header.slice(end + 1), 'base64');
    const isProven = secrets.some((secret) => {
      const expected = macOf(peerCredential(secret, { from, to, version }).psk, text);
      return proof.length === expected.length && timingSafeEqual(proof, expected);
    });
    if (!isProven) return 'stranger';
    if (!(Math.abs(Date.now() - Number(sentMs)) <= maxClockDifferenceMs)) return 'clock';
    const seen = this.#seen.get(`${from} ${to}`) ?? new SeenNumbers();
    this.#seen.set(`${from} ${to}`, seen);
    if (!seen.take(Number(number))) return 'replay';
    return { from, to, version, request: JSON.parse(Buffer.from(contents, 'base64').toString()) };
  }
}

const bitsPerWord = 32;

/**
 * The numbers that an instance has used. Requests on several connections overtake each other, so a window of numbers is
 * remembered; an older number is refused.
 */
class SeenNumbers {
  static readonly #window = 65_536;
  readonly #bits = new Uint32Array(SeenNumbers.#window / bitsPerWord);
  #highest = 0;

  /** True if the number was not used before. */
  take(number: number): boolean {
    const size = SeenNumbers.#window;
    if (!Number.isSafeInteger(number) || number <= this.#highest - size || number < 1) return false;
    if (number - this.#highest >= size) this.#bits.fill(0);
    else for (let next = this.#highest + 1; next <= number; next += 1) this.#set(next, false);
    if (number <= this.#highest && this.#has(number)) return false;
    this.#highest = Math.max(this.#highest, number);
    this.#set(number, true);
    return true;
  }

  #has(number: number): boolean {
    const bit = number % SeenNumbers.#window;
    return (((this.#bits[Math.floor(bit / bitsPerWord)] ?? 0) >>> (bit % bitsPerWord)) & 1) === 1;
  }

  #set(number: number, isSet: boolean): void {
    const bit = number % SeenNumbers.#window;
    const word = Math.floor(bit / bitsPerWord);
    const mask = 1 << (bit % bitsPerWord);
    const before = this.#bits[word] ?? 0;
    this.#bits[word] = isSet ? before | mask : before & ~mask;
  }
}
