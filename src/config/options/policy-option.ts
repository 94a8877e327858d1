import * as z from 'zod/mini';
import { contentMethods } from '../../core/protocol/methods/methods.ts';
import { parseDurationMs, second } from '../units.ts';
import { members, object } from './option-kinds.ts';

/** The option as it is written. */
interface PolicyOption {
  readonly url: string;
  readonly on?: readonly ('request' | 'result')[] | undefined;
  readonly methods?: readonly string[] | undefined;
  readonly timeout?: string | undefined;
  readonly onFailure?: 'deny' | 'allow' | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly showHeaders?: readonly string[] | undefined;
}

/** How a policy service is asked. */
export interface PolicySettings {
  readonly url: string;
  readonly on: ReadonlySet<'request' | 'result'>;
  readonly methods: ReadonlySet<string | undefined>;
  readonly timeoutMs: number;
  /** What happens if the service gives no usable answer. */
  readonly onFailure: 'deny' | 'allow';
  /** The headers of each request to the service. */
  readonly headers: Readonly<Record<string, string>>;
  /** The headers of clients that the service sees, in lower case. */
  readonly showHeaders: readonly string[];
}

/** A client waits for the policy in each of its calls. */
const longestTimeoutMs = 30 * second;
const usualTimeout = '2s';

const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

const policy = members(
  {
    url: z
      .string({
        error: 'needs url, at which the policy service answers, such as http://127.0.0.1:8181/v1/data/mcp/decision',
      })
      .check(
        z.refine((value) => URL.canParse(value) && /^https?:$/.test(new URL(value).protocol) && !/[#\s]/.test(value), {
          error: 'needs an http(s):// URL in url',
        }),
      ),
    on: z.optional(
      z
        .array(z.enum(['request', 'result'], { error: 'has in "on" something other than request and result' }))
        .check(z.minLength(1, { error: 'needs request, result or both in "on"' })),
    ),
    methods: z.optional(
      z
        .array(z.enum(contentMethods, { error: `has a method other than ${contentMethods.join(', ')}` }))
        .check(z.minLength(1, { error: 'needs at least one method in methods' })),
    ),
    timeout: z.optional(
      z.string({ error: 'needs a time in timeout, such as 500ms' }).check(
        z.refine(
          (value) => {
            const ms = parseDurationMs(value);
            return ms !== undefined && ms > 0 && ms <= longestTimeoutMs;
          },
          { error: 'needs a time from 1ms to 30s in timeout' },
        ),
      ),
    ),
    onFailure: z.optional(z.enum(['deny', 'allow'], { error: 'has an onFailure other than deny or allow' })),
    headers: z.optional(
      z.record(
        z.string().check(z.regex(headerName, { error: 'has a name in headers that is no name of a header' })),
        z.string().check(z.regex(/^[\x20-\x7e]*$/, { error: 'must have visible ASCII on one line in headers' })),
        { error: 'needs an object of strings in headers' },
      ),
    ),
    showHeaders: z.optional(
      z.array(
        z
          .string({ error: 'needs a list of names in showHeaders' })
          .check(z.regex(headerName, { error: 'has a name in showHeaders that is no name of a header' })),
      ),
    ),
  },
  'must be an object with url, and optionally on, methods, timeout, onFailure, headers and showHeaders',
) as z.ZodMiniType<PolicyOption>;

/** The option that names the policy service of a server. */
export const policyOption = object(
  z.optional(policy),
  'A policy service that decides about each call, with the API of Open Policy Agent. A JSON object with url, and optionally on (request, result), methods, timeout, onFailure (deny, allow), headers, and showHeaders.',
  { secrets: 'members' },
);

/** The settings of a server with a policy service; undefined without one. */
export function policySettings(option: PolicyOption | undefined): PolicySettings | undefined {
  if (option === undefined) return undefined;
  const { url, on, methods, timeout, onFailure = 'deny', headers = {}, showHeaders = [] } = option;
  return {
    url,
    on: new Set(on ?? ['request']),
    methods: new Set(methods ?? contentMethods),
    timeoutMs: parseDurationMs(timeout ?? usualTimeout) as number,
    onFailure,
    headers,
    showHeaders: showHeaders.map((name) => name.toLowerCase()),
  };
}
