import type { MethodRow } from './method.ts';

/** The URIs of pages that clients show and run. */
export interface PageUris {
  readonly scheme: string;
  /** A string that begins with the scheme, however its characters are written. Servers in PHP write a slash as `\/`. */
  readonly openings: RegExp;
  /** The same with a host behind it, as `encodeURIComponent` writes one, and the slash after the host. */
  readonly hostedOpenings: RegExp;
}

/** An extension that the gateway knows. Any other one is declared and passed on as it is. */
export interface Extension {
  /** The name under which clients and servers declare it in `capabilities.extensions`. */
  readonly id: string;
  readonly title: string;
  /** The document that specifies it. */
  readonly source: string;
  /** The capability that declares the same feature in the legacy era; absent if it is the extension, too. */
  readonly legacyCapability?: string;
  /** False if each era has its own kind of it: a bridge declares it to neither side, and refuses its methods. */
  readonly isTranslated: boolean;
  /** What clients get of the other era in place of it, for the page of extensions. */
  readonly betweenEras?: string;
  readonly methods: readonly MethodRow[];
  /** The pages whose URIs name their server in a view (docs/decisions/0101). */
  readonly pages?: PageUris;
  /** What a reader of the page *Extensions* has to know beyond these facts. */
  readonly note: string;
}

const skillScheme = 'skill://';
const skillFile = '/SKILL.md';

/**
 * The folder of a skill, without a slash at its end. Undefined for another URI: in a scheme that others use, too, a
 * server could take over their resources with the folder.
 */
const skillFolder = (uri: string): string | undefined =>
  uri.startsWith(skillScheme) && uri.endsWith(skillFile) && uri.length > skillScheme.length + skillFile.length
    ? uri.slice(0, -skillFile.length)
    : undefined;

/** The id of the extension for tasks (2026-07-28). */
export const tasksExtension = 'io.modelcontextprotocol/tasks';

/** The extensions that the official SDKs name, and that change what a gateway has to do. */
export const extensions: readonly Extension[] = [
  {
    id: tasksExtension,
    title: 'Tasks',
    source: 'SEP-2663',
    legacyCapability: 'tasks',
    isTranslated: false,
    betweenEras: 'tasks of the gateway',
    methods: [
      {
        name: 'tasks/get',
        from: 'both',
        eras: 'both',
        capability: 'tasks',
        effect: 'reads',
        needsSession: true,
        target: 'taskId',
        nameHeader: 'optional',
        taskNews: 'state',
      },
      {
        name: 'tasks/result',
        from: 'both',
        eras: 'legacy',
        capability: 'tasks',
        effect: 'reads',
        mayAsk: true,
        needsSession: true,
        target: 'taskId',
        taskNews: 'result',
      },
      {
        name: 'tasks/list',
        from: 'both',
        eras: 'legacy',
        capability: 'tasks',
        effect: 'reads',
        needsSession: true,
        list: { key: 'tasks', identity: 'taskId' },
        taskNews: 'list',
      },
      {
        name: 'tasks/cancel',
        from: 'both',
        eras: 'both',
        capability: 'tasks',
        needsSession: true,
        target: 'taskId',
        nameHeader: 'optional',
        taskNews: 'state',
      },
      { name: 'tasks/update', from: 'client', eras: 'modern', target: 'taskId', nameHeader: 'optional' },
      { name: 'notifications/tasks/status', from: 'both', eras: 'legacy', capability: 'tasks' },
      { name: 'notifications/tasks', from: 'server', eras: 'modern' },
    ],
    note: 'Sessions have tasks of another kind, for which the client asks, also at a server with this extension. A task belongs to the user who began it. Nobody else learns of it. The gateway makes tasks of its own for calls of modern clients to servers without them ([long calls](../long-calls.md)), and answers `tasks/get`, `tasks/update` and `tasks/cancel` for these. A tool that runs only as a task works for every client, also of the other era and in a view. The table is about the tasks that a server makes.',
  },
  {
    id: 'io.modelcontextprotocol/skills',
    title: 'Skills',
    source: 'SEP-2640',
    isTranslated: true,
    methods: [
      {
        name: 'skills/list',
        from: 'client',
        eras: 'both',
        effect: 'reads',
        isStateless: true,
        isCacheable: true,
        list: {
          key: 'skills',
          identity: 'uri',
          changed: 'notifications/resources/list_changed',
          folderOf: skillFolder,
        },
      },
      { name: 'skills/get', from: 'client', eras: 'both', effect: 'reads', isCacheable: true, target: 'uri' },
      {
        name: 'resources/directory/read',
        from: 'client',
        eras: 'both',
        effect: 'reads',
        isCacheable: true,
        target: 'uri',
      },
    ],
    note: 'The files of a skill are resources. In a view, files in the folder of a `skill://` skill are read from the server of the skill.',
  },
  {
    id: 'io.modelcontextprotocol/ui',
    title: 'MCP Apps',
    source: 'SEP-1865',
    isTranslated: true,
    methods: [],
    pages: {
      scheme: 'ui://',
      openings: /"(?:u|\\u0075)(?:i|\\u0069)(?::|\\u003[aA])(?:\\?\/|\\u002[fF]){2}/g,
      hostedOpenings:
        /("(?:u|\\u0075)(?:i|\\u0069)(?::|\\u003[aA])(?:\\?\/|\\u002[fF]){2})([\w.!~*'()%-]{1,200})(?:\\?\/|\\u002[fF])/g,
    },
    note: 'A page talks to its client. The gateway sees only the resources and the calls of tools that the client makes for it.',
  },
  {
    id: 'io.modelcontextprotocol/oauth-client-credentials',
    title: 'OAuth client credentials',
    source: 'SEP-1046',
    isTranslated: true,
    methods: [],
    note: 'It concerns how a client gets a token. The gateway accepts such a token as any other one ([OAuth](../oauth.md)).',
  },
  {
    id: 'io.modelcontextprotocol/enterprise-managed-authorization',
    title: 'Enterprise-managed authorization',
    source: 'SEP-990',
    isTranslated: true,
    methods: [],
    note: 'It concerns how a client gets a token. The gateway accepts such a token as any other one ([OAuth](../oauth.md)).',
  },
];
