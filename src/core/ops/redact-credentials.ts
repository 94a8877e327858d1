/** Stands for a credential. */
export const mask = '•••';

/** Names of members whose values are credentials, in the conventions of tools and servers. */
const credentialName =
  /(?:^|[-_.])(?:(?:proxy-)?authorization|(?:set-)?cookie|password|passwd|passphrase|pwd|secret|credentials?|private[-_]?key|(?:x-)?api[-_]?key|(?:access|refresh|id|auth|bearer|session)[-_]?token|token|client[-_]?secret|(?:mcp-)?session[-_]?id)$/i;

/** A member and its value: a string, which the cut may have left open, or another scalar. */
const member = /"([\w.-]+)"(\s*:\s*)(?:"(?:[^"\\]|\\.)*(?:"|$)|[-\d.eE+]+|true|false)/g;

/**
 * Credentials with a known form, wherever they occur: HTTP schemes, JSON web tokens, keys of well-known services, parts of
 * connection strings, URLs with a password, private keys.
 */
const credentialForms: readonly (readonly [form: RegExp, shown: string])[] = [
  [/\b(bearer|basic)\s+[\w.~+/-]{8,}=*/gi, `$1 ${mask}`],
  [/(?<![\w-])eyJ[\w-]{8,}\.[\w-]+\.[\w-]*/g, mask],
  [/\b(?:sk|pk|rk|ghp|gho|ghs|ghu|glpat|xox[abprs]|AKIA|ASIA|AIza|github_pat|npm|hf)[-_]?[\w-]{16,}/g, mask],
  [
    /(?<![\w-])([\w-]{0,64}?(?:password|passwd|passphrase|pwd|secret|token|api[-_]?key))=(?!=)[^\s;&,"']+/gi,
    `$1=${mask}`,
  ],
  [/(:\/\/[^\s/:@"]*:)[^\s/@"]+@/g, `$1${mask}@`],
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g, mask],
];

/** Replaces likely credentials in a text. */
export function redactCredentials(text: string): string {
  const withoutMembers = text.replace(member, (whole: string, name: string, colon: string) =>
    credentialName.test(name) ? `"${name}"${colon}"${mask}"` : whole,
  );
  return credentialForms.reduce((rest, [form, shown]) => rest.replace(form, shown), withoutMembers);
}
