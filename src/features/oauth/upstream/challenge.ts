/**
 * Finds the parameter `resource_metadata` (RFC 9728, section 5.1). A quoted text is skipped as a whole, since the text
 * of another parameter may look like one. A quoted text without an end is skipped to the end of the challenge, so that
 * the time is linear. The quoted value has no escapes, because a URL needs none.
 */
const parameter = /(?<name>\bresource_metadata\s*=\s*)(?:"(?<quoted>[^"\\]*)"|(?<token>[^\s,"]+))|"(?:[^"\\]|\\.)*"?/gi;

/** Returns the metadata URL that a challenge names; undefined for none, and for a text that is no URL. */
export function metadataUrlIn(challenge: string): URL | undefined {
  for (const { groups = {} } of challenge.matchAll(parameter)) {
    const text = groups['quoted'] ?? groups['token'];
    if (groups['name'] !== undefined && text !== undefined && URL.canParse(text)) return new URL(text);
  }
  return undefined;
}

/**
 * Returns the header for clients of the gateway: with another metadata URL in place of each one that it names, and
 * without the challenges for DPoP. A proof names the URL of the gateway, so the server would refuse it
 * (docs/decisions/0037). Undefined if nothing remains.
 */
export function challengeForClients(header: string, url: string): string | undefined {
  const remaining = /dpop/i.test(header) ? withoutDpop(header) : header;
  if (remaining === '') return undefined;
  return remaining.replace(parameter, (found, name: string | undefined) =>
    name === undefined ? found : `resource_metadata="${url}"`,
  );
}

/** A part of the header between two commas that are in no quoted text. */
const part = /(?:"(?:[^"\\]|\\.)*"?|[^",])+/g;

/** The scheme with which a challenge begins (RFC 9110, section 11.6.1). Any other part is a parameter. */
const schemeAtStart = /^\s*([\w!#$%&'*+.^`|~-]+)(?:\s+(?![\s=])|\s*$)/;

function withoutDpop(header: string): string {
  let isDpop = false;
  const kept: string[] = [];
  for (const [text] of header.matchAll(part)) {
    const scheme = schemeAtStart.exec(text)?.[1];
    if (scheme !== undefined) isDpop = scheme.toLowerCase() === 'dpop';
    if (!isDpop) kept.push(text.trim());
  }
  return kept.filter((text) => text !== '').join(', ');
}
