const unprintable = /(?!\t)[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;

/**
 * Converts text of a server to one line that is safe in a log and on a terminal. Control characters, line separators
 * and bidirectional marks are escaped, so that nobody can forge a log line or send an escape sequence.
 * @param bytes UTF-8; invalid bytes become U+FFFD
 */
export const escapeControlCharacters = (bytes: Buffer): string =>
  bytes.toString('utf8').replace(unprintable, (character) => {
    const code = character.charCodeAt(0).toString(16);
    return code.length <= 2 ? `\\x${code.padStart(2, '0')}` : `\\u${code.padStart(4, '0')}`;
  });
