/** Where a known difference comes from. */
export const differenceClasses = {
  gateway: 'Gateway',
  client: 'Client',
  server: 'Server',
  revision: 'Revision',
} as const;

/** Why a difference is as it has to be. */
export interface Reason {
  readonly class: keyof typeof differenceClasses;
  readonly text: string;
}

const because = (of: Reason['class'], text: string): Reason => ({ class: of, text });

/** A difference between a direct run and one through the gateway. */
export interface KnownDifference {
  readonly judge: string;
  readonly arm: string;
  /** `<scenario>: <check>` */
  readonly difference: string;
  readonly reason: Reason;
}

const clientRole2026 = 'Conformance suite, client role, 2026-07-28';
const firstLook = because(
  'gateway',
  'Without `--era`, the gateway first sends `initialize` to find out the era. This request has none of the headers or metadata ' +
    'of revision 2026-07-28. All later requests have them, and with `--era modern` all requests have them.',
);

const serverRole2025 = 'Conformance suite, server role, 2025-11-25';
const jsonForQuickAnswers = because(
  'gateway',
  'The server of the suite answers each request with an event stream. Through the gateway, a quick answer is one JSON text. ' +
    'The scenario then has no streams to check, and says that streams are optional.',
);

const serverRole2026 = 'Conformance suite, server role, 2026-07-28';
const translated = 'legacy STDIO, `--share all --defaults.poolMax 32`';
const noMirrors = because(
  'revision',
  'The scenario needs a tool with mirrored parameters (`x-mcp-header`), which 2026-07-28 introduced. No tool of a legacy ' +
    'server has them.',
);
const ownKeys = because(
  'revision',
  'The scenario expects the key `user_name` in the input requests. A legacy server sends no keys, so the gateway generates ' +
    'the keys.',
);

const clientsOfLegacy = 'Published clients, legacy server';
const newerEra = because(
  'revision',
  'The client prefers 2026-07-28, which the gateway serves and this server does not. The content is the same. Results also ' +
    'have members of 2026-07-28, `resultType` and `_meta`. Tools have no `execution`, because this revision has no tasks ' +
    "in a session, and the client keeps the order of a schema's members.",
);

const oldResult = because(
  'server',
  'The server answers in the form of 2024-10-07, with `toolResult`. The gateway translates it into `content`, because ' +
    'clients of 2026-07-28 reject other results.',
);

const notFound = because(
  'revision',
  'The server declares resources and has no such list. A client of 2026-07-28 gets its error -32601 with HTTP status 404, ' +
    'as this revision says. SDK 2 shows the status and the text of the error. Over STDIO, it shows the code.',
);

const noTasks = because(
  'revision',
  'The capability `tasks` is one of 2025-11-25. SDK 2 speaks this revision to the server directly, and 2026-07-28 through ' +
    'the gateway, which has tasks only as an extension.',
);

const otherResource = because(
  'gateway',
  'Clients compare the resource in the metadata with the URL that they use. So the gateway names its own URL as the ' +
    'resource, and the client requests a token for this URL. The check expects the URL of the suite. It passes if the ' +
    'name of the server leads to the gateway, so that both have the same URL.',
);

/** Stands for each scenario of a judge. */
const eachServer = 'each server';
const ownTasks = because(
  'gateway',
  'The gateway makes tasks of long calls. So the capabilities that it tells a client of 2026-07-28 also have the extension ' +
    '`io.modelcontextprotocol/tasks`. With `--defaults.tasks.after off`, they do not.',
);
const otherCode = because(
  'revision',
  'A resource that does not exist is error -32002 in 2025-11-25, and -32602 in 2026-07-28. The client speaks 2026-07-28, ' +
    'which this server does not, so the gateway translates the code. The SDK shows the code, or has another text for each.',
);

const oneProof = because(
  'gateway',
  'A DPoP proof is for one request to one URL. The gateway also sends requests of its own with the token of a client, such ' +
    'as checks before a stream is resumed, and has no proof for them. So it does not pass on DPoP, and removes DPoP from the ' +
    'metadata. Clients that send a proof nevertheless get 401 `upstream_proof_refused`. With its own OAuth ' +
    '(`auth.oauth`), the gateway checks proofs itself.',
);

const sdksMcp = 'SDKs at /mcp';
const sdksSse = 'SDKs at /sse';
const cutCall = 'Call that is cut';
const restarts = ['memory', 'files', 'Redis'].map((store) => `Restart, ${store}`);
const noNotice = because(
  'client',
  'The SDK sends no `notifications/cancelled`, so the tool runs to its end, with a direct connection, too. The program can ' +
    'end the session.',
);
const noResume = because(
  'revision',
  'A call of 2026-07-28 cannot be resumed, so the SDK returns an error after a cut. A client with a session resumes its ' +
    'calls.',
);
const ownLimit = because(
  'client',
  'The SDK does not tell the program that the stream of the call has ended, and waits for the time limit of the call. A ' +
    'shorter limit helps: `timeout` of the call in TypeScript, `requestTimeout` in Java, a context with a deadline in Go.',
);
const noCallResume = because(
  'client',
  'With a session, mcp-go resumes only the GET stream, so a call that is cut fails.',
);
const lostSession = because(
  'gateway',
  'The session is gone, and the SDK returns its 404 to the program, which must connect again. With ' +
    '`--replay.store file:DIRECTORY` or `--redis`, the session continues.',
);
const newSession = because(
  'gateway',
  'One call gets the 404 of the lost session, then the SDK opens another one by itself.',
);
const noSseResume = because(
  'client',
  'This transport cannot resume. The SDK closes the client when its stream ends, so the program must connect again. At ' +
    '`/mcp`, the same SDK continues.',
);
const deafSse = because(
  'client',
  'The SDK does not notice that its stream has ended. The gateway refuses its calls with 404 within 5 s, and the program ' +
    'must connect again.',
);
const sseReconnects = because(
  'client',
  'The SDK opens its stream again after 3 s. Calls before that fail, or get no answer.',
);

/** What happens to the clients of these SDKs. */
const ofSdks = (
  judge: string,
  names: readonly string[],
  arms: readonly string[],
  cell: string,
  reason: Reason,
): KnownDifference[] =>
  arms.flatMap((arm) => names.map((name) => ({ judge, arm, difference: `${name}: ${cell}`, reason })));

/** Several differences of one arm. */
const inArm = (
  judge: string,
  arm: string,
  found: readonly (readonly [difference: string, reason: Reason])[],
): KnownDifference[] => found.map(([difference, reason]) => ({ judge, arm, difference, reason }));

/** Every known difference. A difference that no longer occurs fails its test, and must be deleted here. */
export const allKnownDifferences: readonly KnownDifference[] = [
  ...[
    'http-standard-headers: sep-2243-client-includes-standard-headers',
    'request-metadata: sep-2575-client-populates-meta',
    'request-metadata: sep-2575-client-sends-client-info (warning)',
    'request-metadata: sep-2575-http-client-sends-version-header',
  ].map((difference) => ({ judge: clientRole2026, arm: 'modern client', difference, reason: firstLook })),
  ...['STDIO', 'HTTP+SSE', 'Streamable HTTP', 'WebSocket', 'modern STDIO'].map((arm) => ({
    judge: serverRole2025,
    arm,
    difference: 'server-sse-multiple-streams: server-sse-streams-functional (not checked)',
    reason: jsonForQuickAnswers,
  })),
  ...inArm(serverRole2026, translated, [
    ['http-custom-header-server-validation: sep-2243-server-decode-base64', noMirrors],
    ['http-custom-header-server-validation: sep-2243-server-no-xmcp-tool', noMirrors],
    ['input-required-result-basic-elicitation: sep-2322-elicitation-complete (not checked)', ownKeys],
    ['input-required-result-basic-elicitation: sep-2322-elicitation-incomplete', ownKeys],
    ['input-required-result-ignore-extra-params: sep-2322-ignore-unexpected-params (warning)', ownKeys],
  ]),
  ...['2025-11-25', '2026-07-28'].flatMap((revision) =>
    [
      'metadata-default',
      'metadata-var1',
      'metadata-var2',
      'metadata-var3',
      'token-endpoint-auth-basic',
      'token-endpoint-auth-none',
      'token-endpoint-auth-post',
    ].map((scenario) => ({
      judge: `Conformance suite, authorization, ${revision}`,
      arm: '`--defaults.auth upstream`',
      difference: `auth/${scenario}: resource-parameter-matches-prm`,
      reason: otherResource,
    })),
  ),
  ...['complete-flow-jwt-bearer', 'valid-bearer-token (not checked)'].map((check) => ({
    judge: 'Conformance suite, authorization, extensions',
    arm: '`--defaults.auth upstream`',
    difference: `auth/enterprise-managed-authorization: ${check}`,
    reason: otherResource,
  })),
  ...['`--defaults.auth upstream`', "the same, at the server's URL"].flatMap((arm) =>
    [
      ...['sep-1932-client-dpop-auth-scheme', 'sep-1932-client-fresh-proof'].flatMap((check) => [
        `auth/dpop: ${check}`,
        `auth/dpop-nonce: ${check}`,
      ]),
      'auth/dpop-nonce: sep-1932-client-rs-nonce',
    ].map((difference) => ({
      ...{ judge: 'Conformance suite, authorization, extensions', arm, difference },
      reason: oneProof,
    })),
  ),
  ...['Streamable HTTP', 'STDIO'].flatMap((arm) =>
    inArm(clientsOfLegacy, arm, [
      ['AI SDK: call a tool: another answer', newerEra],
      ['AI SDK: call a tool that fails: another answer', newerEra],
      ['Mastra: call a tool: another answer', newerEra],
      ['OpenAI Agents: list tools: another answer', newerEra],
    ]),
  ),
  ...ofSdks(
    sdksMcp,
    ['Python 1', 'FastMCP 3', 'mcp-go, `2025-11-25`', 'Java'],
    ['Cancelled call'],
    'not told',
    noNotice,
  ),
  ...ofSdks(sdksMcp, ['TypeScript 2, `auto`', 'Java'], [cutCall], 'no answer', ownLimit),
  ...ofSdks(sdksMcp, ['mcp-go, `2025-11-25`'], [cutCall], 'error', noCallResume),
  ...ofSdks(sdksMcp, ['Python 2', 'FastMCP 4', 'go-sdk', 'mcp-go', 'rmcp, `Auto`'], [cutCall], 'error', noResume),
  ...ofSdks(sdksMcp, ['Java'], ['Restart, memory'], 'error, then work', newSession),
  ...ofSdks(
    sdksMcp,
    [
      ...['TypeScript 1', 'TypeScript 2', 'Python 1', 'Python 2, `legacy`', 'FastMCP 3'],
      ...['go-sdk, `2025-11-25`', 'mcp-go, `2025-11-25`'],
    ],
    ['Restart, memory'],
    'error',
    lostSession,
  ),
  ...ofSdks(sdksSse, ['Python 1', 'FastMCP 3', 'mcp-go', 'Java'], ['Cancelled call'], 'not told', noNotice),
  ...ofSdks(sdksSse, ['TypeScript 1', 'TypeScript 2', 'mcp-go', 'Java'], [cutCall], 'no answer', ownLimit),
  ...ofSdks(sdksSse, ['TypeScript 1', 'TypeScript 2'], restarts, 'error, then work', sseReconnects),
  ...ofSdks(sdksSse, ['mcp-go', 'Java'], ['Next calls', ...restarts], 'error', deafSse),
  ...ofSdks(
    sdksSse,
    ['Python 1', 'Python 2', 'FastMCP 3', 'FastMCP 4', 'go-sdk'],
    [cutCall, 'Next calls', ...restarts],
    'error',
    noSseResume,
  ),
  ...['the gateway', 'cut and restart', 'two instances, Redis, one killed'].flatMap((arm) =>
    inArm(
      'SDKs at each kind of server, by /mcp',
      arm,
      ['mcp-go', 'rmcp, `Auto`'].flatMap((sdk) =>
        ['STDIO', 'HTTP+SSE', 'Streamable HTTP'].map((kind) => [`${sdk} at ${kind}: no resource`, otherCode] as const),
      ),
    ),
  ),
  ...['Published servers', 'Published servers from PyPI', 'Servers of SDKs, STDIO'].flatMap((servers) =>
    inArm(`${servers}, by the official SDKs`, 'the gateway', [[`${eachServer}: SDK 2, server`, ownTasks]]),
  ),
  {
    judge: 'Published servers',
    arm: '2026-07-28',
    difference: '@cloudflare/mcp-server-cloudflare: call of an unknown tool',
    reason: oldResult,
  },
  ...inArm('Published servers, by the official SDKs', 'the gateway', [
    ['@cloudflare/mcp-server-cloudflare: SDK 2, call of an unknown tool', oldResult],
    ['@executeautomation/playwright-mcp-server: SDK 2, resources/templates/list', notFound],
    ['@modelcontextprotocol/server-everything: SDK 2, server', noTasks],
    ['@modelcontextprotocol/server-postgres: SDK 2, resources/templates/list', notFound],
    ['mcp-server-kubernetes: SDK 2, resources/templates/list', notFound],
    ['nx-mcp: SDK 2, resources/list', notFound],
    ['nx-mcp: SDK 2, resources/templates/list', notFound],
    ['puppeteer-mcp-server: SDK 2, resources/templates/list', notFound],
  ]),
  {
    ...{ judge: 'Published servers from PyPI, by the official SDKs', arm: 'the gateway' },
    ...{ difference: 'mcp-server-sqlite: SDK 2, resources/templates/list', reason: notFound },
  },
];

/** The known differences of one arm, as `differencesBetween` returns them for these scenarios. */
export const knownDifferences = (judge: string, arm: string, scenarios: readonly string[]): string[] => {
  const known = allKnownDifferences
    .filter((each) => each.judge === judge && each.arm === arm)
    .flatMap(({ difference }) =>
      difference.startsWith(`${eachServer}: `)
        ? scenarios.map((name) => difference.replace(eachServer, name))
        : [difference],
    );
  return [...new Set(known)].sort();
};
