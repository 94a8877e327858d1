/** Other names of `url` in the files of MCP clients. */
export const urlNames: readonly string[] = ['serverUrl', 'httpUrl'];

/** Keys of a server in the files of MCP clients that concern only the client. The gateway ignores and logs them. */
export const ignoredKeys: readonly string[] = [
  'autoApprove',
  'alwaysAllow',
  'alwaysLoad',
  'timeout',
  'description',
  'dev',
  'gallery',
  'icon',
  'name',
  'trust',
  'version',
];

/** Keys beside the servers in the files of Claude Desktop and VS Code that the gateway ignores and logs. */
export const ignoredRootKeys: readonly string[] = ['inputs', 'globalShortcut', 'preferences'];

const filter =
  'is not supported, because it limits the tools for one client; to limit them for all clients, replace it with';
const noLogin =
  'because the gateway does not log in for a user; write "auth": "upstream" in its place, and each client will log in to the server by itself; or write identity, and the gateway will get tokens for the server';
const sandbox =
  'is not supported: the gateway would run the server without a sandbox; remove this key, and run the server in a container, such as "command": "docker", "args": ["run", "-i", "--rm", "IMAGE"]';

/**
 * Keys in the files of MCP clients that change what a server does or who may use it, with the fault. If the gateway
 * ignored them, the server would be less limited than its file says.
 */
export const refusedKeys: ReadonlyMap<string, string> = new Map([
  ['envFile', `is not supported; write each variable into env, such as "env": { "TOKEN": "\${TOKEN}" }`],
  ['includeTools', `${filter} "allowTools": […]`],
  ['excludeTools', `${filter} "denyTools": […]`],
  ['disabledTools', `${filter} "denyTools": […]`],
  [
    'headersHelper',
    'is not supported, because the gateway runs no program for headers; let the program write the value to a file, and replace this key with the header, such as "headers": { "Authorization": "${file:/run/token}" }; the gateway reads the file when it starts or gets SIGHUP; if the value is an OAuth token that expires, write identity instead',
  ],
  ['oauth', `is not supported, ${noLogin}`],
  ['sandboxEnabled', sandbox],
  ['sandbox', sandbox],
]);

/** The fault of an object in `auth`, with which Cursor logs in. */
export const authObjectFault = `must not be an object, ${noLogin}`;

/** Variables that editors replace in their files. The gateway has no window and no workspace. */
export const editorVariables: ReadonlyMap<string, string> = new Map([
  ['workspaceFolder', 'write the path of the folder'],
  ['workspaceFolderBasename', 'write the name of the folder'],
  ['userHome', 'write ${HOME}'],
  ['pathSeparator', 'write /'],
]);
