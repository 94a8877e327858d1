/** The extension with which servers publish skills (SEP-2640). */
export const skillsExtension = 'io.modelcontextprotocol/skills';

/** The requests of the extension that name a skill, or a directory of one, by its URI. */
export const skillUriMethods: ReadonlySet<string | undefined> = new Set(['skills/get', 'resources/directory/read']);

/** The requests of the extension. */
export const skillMethods: ReadonlySet<string | undefined> = new Set(['skills/list', ...skillUriMethods]);

const scheme = 'skill://';
const skillFile = '/SKILL.md';

/**
 * The folder of a skill, without a slash at its end. Undefined for another URI: in a scheme that others use, too, a
 * server could take over their resources with the folder.
 */
export const skillFolder = (uri: string): string | undefined =>
  uri.startsWith(scheme) && uri.endsWith(skillFile) && uri.length > scheme.length + skillFile.length
    ? uri.slice(0, -skillFile.length)
    : undefined;
