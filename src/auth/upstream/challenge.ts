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

/** Returns the challenge with another metadata URL in place of each one that it names. */
export const withMetadataUrl = (challenge: string, url: string): string =>
  challenge.replace(parameter, (found, name: string | undefined) =>
    name === undefined ? found : `resource_metadata="${url}"`,
  );
