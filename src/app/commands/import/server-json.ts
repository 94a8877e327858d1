import * as z from 'zod/mini';
import { memberPath } from '../../../config/issues.ts';
import { readJsonc } from '../../../config/sources/read-jsonc.ts';

/** Publishers also write numbers and booleans where the schema has strings. */
const text = z.pipe(z.union([z.string(), z.number(), z.boolean()]), z.transform(String));

const input = {
  description: z.optional(z.string()),
  format: z.optional(z.string()),
  isRequired: z.optional(z.boolean()),
  isSecret: z.optional(z.boolean()),
  value: z.optional(text),
  default: z.optional(text),
  placeholder: z.optional(text),
  choices: z.optional(z.array(text)),
};
const variables = z.optional(z.record(z.string(), z.object(input)));
const argument = z.object({
  ...input,
  variables,
  type: z.enum(['positional', 'named'], { error: 'must be positional or named' }),
  name: z.optional(z.string()),
  valueHint: z.optional(z.string()),
  isRepeated: z.optional(z.boolean()),
});
const keyValue = z.object({ ...input, variables, name: z.string() });
const transport = z.object({
  type: z.string(),
  url: z.optional(z.string()),
  headers: z.optional(z.array(keyValue)),
  variables,
});
const packageSchema = z.object({
  registryType: z.string(),
  registryBaseUrl: z.optional(z.string()),
  identifier: z.string(),
  version: z.optional(z.string()),
  fileSha256: z.optional(z.string()),
  runtimeHint: z.optional(z.string()),
  runtimeArguments: z.optional(z.array(argument)),
  packageArguments: z.optional(z.array(argument)),
  environmentVariables: z.optional(z.array(keyValue)),
  transport: z.optional(transport),
});
const serverJson = z.object({
  name: z.string(),
  packages: z.optional(z.array(packageSchema)),
  remotes: z.optional(z.array(transport)),
});

/** A description of a server in the format of the MCP registry, as far as the gateway uses it. */
export type ServerJson = z.output<typeof serverJson>;

/** One way to install a server and to start it. */
export type Package = z.output<typeof packageSchema>;

/** The address of a running server. */
export type Transport = z.output<typeof transport>;

/** An argument of a command. */
export type Argument = z.output<typeof argument>;

/** A value that the publisher sets or that the operator has to choose. */
export type Input = Pick<Argument, Exclude<keyof typeof input, 'placeholder'>> & Pick<Argument, 'variables'>;

/** A description, or a sentence that says why the text is none. */
type ReadServerJson =
  | { readonly ok: true; readonly server: ServerJson }
  | { readonly ok: false; readonly message: string };

/** Reads a `server.json`, or an answer of the registry's API that contains one. */
export function readServerJson(content: string): ReadServerJson {
  const read = readJsonc(content.replace(/^\uFEFF/, ''));
  if (!read.ok) {
    const { line, column, message } = read.error;
    return { ok: false, message: `is not valid JSON: ${message} (line ${line}, column ${column})` };
  }
  if (/"(?:registry_type|registry_name|transport_type|package_registry)"\s*:/.test(content)) {
    const remedy = 'download the server.json of a newer version from the registry';
    return { ok: false, message: `has the format from before 2025-09-16, with names such as registry_type; ${remedy}` };
  }
  const parsed = serverJson.safeParse(unwrap(read.value));
  if (parsed.success) return { ok: true, server: parsed.data };
  const [issue] = parsed.error.issues;
  const path = issue?.path.reduce<string>(memberPath, '') || 'the text';
  return { ok: false, message: `is not a server.json of the MCP registry: ${path}: ${issue?.message}` };
}

/** The API answers `{ "server": …, "_meta": … }`. */
function unwrap(value: unknown): unknown {
  const isAnswer = typeof value === 'object' && value !== null && 'server' in value && !('name' in value);
  return isAnswer ? value.server : value;
}
