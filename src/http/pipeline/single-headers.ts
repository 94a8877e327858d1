/**
 * Headers that decide who a request is from and where it goes. Node.js keeps the first of two `Host` or
 * `Authorization` headers and joins two of the others with a comma, and a proxy in front may have looked at another
 * one than we do: a request that has one of them twice is refused.
 */
const names = [
  'host',
  'origin',
  'authorization',
  'content-type',
  'content-encoding',
  'mcp-session-id',
  'mcp-protocol-version',
  'last-event-id',
];
/** Each with a bit of its own, so that the usual request needs no set of what it has. */
const bits: ReadonlyMap<string, number> = new Map(names.map((name, index) => [name, 1 << index]));

/**
 * The rest of the protocol's own: `Mcp-Method`, `Mcp-Name` and `Mcp-Param-*` of the modern era, by which proxies route. They
 * may hold other characters, since what then is answered stands in the specification (2026-07-28, "Server Validation").
 */
const protocolPrefix = 'mcp-';

const visibleAscii = /^[\x20-\x7e]*$/;

const none: ReadonlySet<string> = new Set();

/**
 * True if no such header stands twice, and none that decides holds characters beyond visible ASCII.
 * @param rawHeaders as Node.js gives them
 * @param further headers, in small letters, for which the same holds: the server could take another one of two than who
 *   looked at them on the way
 */
export function hasSingleHeaders(rawHeaders: readonly string[], further: ReadonlySet<string> = none): boolean {
  let seen = 0;
  let others: Set<string> | undefined;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] as string).toLowerCase();
    const bit = bits.get(name) ?? 0;
    const decides = bit !== 0 || further.has(name);
    if (!decides && !name.startsWith(protocolPrefix)) continue;
    if (decides && !visibleAscii.test(rawHeaders[i + 1] as string)) return false;
    if ((seen & bit) !== 0 || others?.has(name)) return false;
    seen |= bit;
    if (bit !== 0) continue;
    others ??= new Set();
    others.add(name);
  }
  return true;
}
