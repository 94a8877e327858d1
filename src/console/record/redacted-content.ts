/** What a page shows of one message; more is cut (P8). */
const maxShown = 4_096;

/** So much is read of a message to find credentials in it: what could be shown, and nothing that the cut would halve. */
const maxRead = 2 * maxShown;

const hidden = '•••';

/** Names of members whose values are credentials, as tools and servers call them. */
const credentialName =
  /(?:^|[-_.])(?:(?:proxy-)?authorization|(?:set-)?cookie|password|passwd|passphrase|pwd|secret|credentials?|private[-_]?key|(?:x-)?api[-_]?key|(?:access|refresh|id|auth|bearer|session)[-_]?token|token|client[-_]?secret|(?:mcp-)?session[-_]?id)$/i;

/** A member and its value: a string, perhaps one that the cut has left without an end, or another scalar. */
const member = /"([\w.-]+)"(\s*:\s*)(?:"(?:[^"\\]|\\.)*(?:"|$)|[-\d.eE+]+|true|false)/g;

/** Credentials that are known by their form, wherever they stand: schemes of HTTP, JSON web tokens, keys of well-known services, URLs with a password. */
const credentialForms: readonly (readonly [form: RegExp, shown: string])[] = [
  [/\b(bearer|basic)\s+[\w.~+/-]{8,}=*/gi, `$1 ${hidden}`],
  [/(?<![\w-])eyJ[\w-]{8,}\.[\w-]+\.[\w-]*/g, hidden],
  [/\b(?:sk|pk|rk|ghp|gho|ghs|ghu|glpat|xox[abprs]|AKIA|ASIA|AIza|github_pat|npm|hf)[-_]?[\w-]{16,}/g, hidden],
  [/(:\/\/[^\s/:@"]*:)[^\s/@"]+@/g, `$1${hidden}@`],
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g, hidden],
];

/**
 * A text as a person may see it who looks at what passes: cut, and without what looks like a credential. It cannot know all of
 * them, which is why it takes `--inspect` to see any.
 */
export function redactContent(bytes: Uint8Array): string {
  const read = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, maxRead)).toString('utf8');
  return cut(redactCredentials(read), bytes.length > maxRead);
}

/** A text without what looks like a credential. */
export function redactCredentials(text: string): string {
  const withoutMembers = text.replace(member, (whole: string, name: string, colon: string) =>
    credentialName.test(name) ? `"${name}"${colon}"${hidden}"` : whole,
  );
  return credentialForms.reduce((rest, [form, shown]) => rest.replace(form, shown), withoutMembers);
}

const cut = (text: string, isCut: boolean): string =>
  text.length > maxShown || isCut ? `${text.slice(0, maxShown)} …` : text;
