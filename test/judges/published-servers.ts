import { join } from 'node:path';
import { suiteNode } from '../conformance/suite.ts';
import { pythonProgram, serversFolder } from './install-clients.ts';

/** A call of a tool that needs no network and has no effects outside the server's folder. */
export type ToolCall = readonly [name: string, args: object];

/** A published server on STDIO. */
export interface PublishedServer {
  readonly name: string;
  /** The program in its package, then its arguments. `<folder>` stands for an empty folder of this run. */
  readonly words: string;
  /** The command that starts the program. */
  readonly programOf: (program: string) => readonly string[];
  /** Variables that the server needs to start. Keys are made up: no server is asked for anything beyond this machine. */
  readonly env?: Readonly<Record<string, string>>;
  readonly calls?: readonly ToolCall[];
  /** True if reading a resource or getting a prompt needs the internet. */
  readonly readsNothing?: boolean;
}

/** A server of PyPI, in a virtual environment of its own. */
export interface PythonServer extends PublishedServer {
  readonly version: string;
  /** Another requirement of its environment. */
  readonly with?: string;
}

const key = 'made-up-key-of-a-test';

const onNode: readonly Omit<PublishedServer, 'programOf'>[] = [
  { name: '@angular/cli', words: '@angular/cli/bin/ng.js mcp' },
  { name: '@antv/mcp-server-chart', words: '@antv/mcp-server-chart/build/index.js' },
  { name: '@azure/mcp', words: '@azure/mcp/index.js server start' },
  {
    name: '@brave/brave-search-mcp-server',
    words: '@brave/brave-search-mcp-server/dist/index.js --transport stdio',
    env: { BRAVE_API_KEY: key },
  },
  {
    name: '@cloudflare/mcp-server-cloudflare',
    words: '@cloudflare/mcp-server-cloudflare/dist/index.js run account',
    env: { CLOUDFLARE_API_TOKEN: key, CLOUDFLARE_ACCOUNT_ID: 'account' },
  },
  {
    name: '@elastic/mcp-server-elasticsearch',
    words: '@elastic/mcp-server-elasticsearch/dist/index.js',
    env: { ES_URL: 'http://127.0.0.1:9', ES_API_KEY: key },
  },
  { name: '@eslint/mcp', words: '@eslint/mcp/src/mcp-cli.js' },
  {
    name: '@executeautomation/playwright-mcp-server',
    words: '@executeautomation/playwright-mcp-server/dist/index.js',
  },
  { name: '@mapbox/mcp-server', words: '@mapbox/mcp-server/dist/index.js', env: { MAPBOX_ACCESS_TOKEN: 'a.e30.c' } },
  {
    name: '@modelcontextprotocol/server-everything',
    words: '@modelcontextprotocol/server-everything/dist/index.js stdio',
    calls: [
      ['echo', { message: 'hello, "world"\n\u2028' }],
      ['get-sum', { a: 1, b: 2 }],
      ['get-tiny-image', {}],
      ['get-structured-content', { location: 'Chicago' }],
    ],
  },
  {
    name: '@modelcontextprotocol/server-filesystem',
    words: '@modelcontextprotocol/server-filesystem/dist/index.js <folder>',
    calls: [
      ['list_allowed_directories', {}],
      ['list_directory', { path: '<folder>' }],
    ],
  },
  {
    name: '@modelcontextprotocol/server-memory',
    words: '@modelcontextprotocol/server-memory/dist/index.js',
    env: { MEMORY_FILE_PATH: '<folder>/memory.json' },
    calls: [
      ['create_entities', { entities: [{ name: 'Ada', entityType: 'person', observations: ['wrote'] }] }],
      ['read_graph', {}],
    ],
  },
  {
    name: '@modelcontextprotocol/server-sequential-thinking',
    words: '@modelcontextprotocol/server-sequential-thinking/dist/index.js',
    calls: [
      ['sequentialthinking', { thought: 'One', nextThoughtNeeded: true, thoughtNumber: 1, totalThoughts: 2 }],
      ['sequentialthinking', { thought: 'Two', nextThoughtNeeded: false, thoughtNumber: 2, totalThoughts: 2 }],
    ],
  },
  {
    name: '@notionhq/notion-mcp-server',
    words: '@notionhq/notion-mcp-server/bin/cli.mjs',
    env: { NOTION_TOKEN: key },
  },
  { name: '@playwright/mcp', words: '@playwright/mcp/cli.js --headless --isolated --no-sandbox' },
  {
    name: '@postman/postman-mcp-server',
    words: '@postman/postman-mcp-server/dist/src/index.js',
    env: { POSTMAN_API_KEY: key },
  },
  { name: '@sentry/mcp-server', words: `@sentry/mcp-server/dist/index.js --access-token=${key}` },
  { name: '@shopify/dev-mcp', words: '@shopify/dev-mcp/dist/index.js', env: { OPT_OUT_INSTRUMENTATION: 'true' } },
  { name: '@upstash/context7-mcp', words: '@upstash/context7-mcp/dist/index.js' },
  { name: '@vuetify/mcp', words: '@vuetify/mcp/bin/cli.js' },
  { name: '@wonderwhy-er/desktop-commander', words: '@wonderwhy-er/desktop-commander/dist/index.js' },
  { name: 'chrome-devtools-mcp', words: 'chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js --headless' },
  { name: 'exa-mcp-server', words: 'exa-mcp-server/dist/stdio.cjs', env: { EXA_API_KEY: key } },
  {
    name: 'figma-developer-mcp',
    words: `figma-developer-mcp/dist/bin.js --stdio --figma-api-key=${key}`,
  },
  { name: 'firecrawl-mcp', words: 'firecrawl-mcp/dist/index.js', env: { FIRECRAWL_API_KEY: key } },
  {
    name: 'mcp-server-commands',
    words: 'mcp-server-commands/build/index.js',
    calls: [['run_process', { mode: 'shell', command_line: 'echo one; echo two >&2; exit 3' }]],
  },
  { name: 'mcp-server-kubernetes', words: 'mcp-server-kubernetes/dist/index.js' },
  { name: 'n8n-mcp', words: 'n8n-mcp/dist/mcp/stdio-wrapper.js', env: { MCP_MODE: 'stdio' } },
  { name: 'next-devtools-mcp', words: 'next-devtools-mcp/dist/index.js', env: { NEXT_TELEMETRY_DISABLED: '1' } },
  { name: 'nx-mcp', words: 'nx-mcp/main.js <folder>' },
  { name: 'puppeteer-mcp-server', words: 'puppeteer-mcp-server/dist/index.js' },
  { name: 'tavily-mcp', words: 'tavily-mcp/build/index.js', env: { TAVILY_API_KEY: key } },
  {
    name: '@kazuph/mcp-taskmanager',
    words: '@kazuph/mcp-taskmanager/dist/index.js',
    env: { TASK_MANAGER_FILE_PATH: '<folder>/tasks.json' },
    calls: [['list_requests', {}]],
  },
  {
    name: '@modelcontextprotocol/server-github',
    words: '@modelcontextprotocol/server-github/dist/index.js',
    env: { GITHUB_PERSONAL_ACCESS_TOKEN: key },
  },
  {
    name: '@modelcontextprotocol/server-google-maps',
    words: '@modelcontextprotocol/server-google-maps/dist/index.js',
    env: { GOOGLE_MAPS_API_KEY: key },
  },
  {
    name: '@modelcontextprotocol/server-postgres',
    words: '@modelcontextprotocol/server-postgres/dist/index.js postgres://127.0.0.1:9/db',
    calls: [['query', { sql: 'SELECT 1' }]],
  },
  {
    name: '@modelcontextprotocol/server-slack',
    words: '@modelcontextprotocol/server-slack/dist/index.js',
    env: { SLACK_BOT_TOKEN: key, SLACK_TEAM_ID: 'T1' },
  },
  { name: 'airtable-mcp-server', words: 'airtable-mcp-server/dist/main.js', env: { AIRTABLE_API_KEY: key } },
  { name: 'mcp-searxng', words: 'mcp-searxng/dist/cli.js', env: { SEARXNG_URL: 'http://127.0.0.1:9' } },
  {
    name: 'mongodb-mcp-server',
    words: 'mongodb-mcp-server/dist/esm/index.js',
    env: { MDB_MCP_TELEMETRY: 'disabled' },
  },
];

/** The servers of npm that start without the internet and without a service beside them. */
export const publishedServers: readonly PublishedServer[] = onNode.map((server) => ({
  ...server,
  programOf: (program) => [suiteNode, join(serversFolder, 'node_modules', program)],
}));

const inPython: readonly Omit<PythonServer, 'programOf'>[] = [
  {
    ...{ name: 'mcp-server-git', version: '2026.10.19', words: 'mcp-server-git' },
    calls: [
      ['git_init', { repo_path: '<folder>' }],
      ['git_status', { repo_path: '<folder>' }],
    ],
  },
  {
    ...{ name: 'mcp-server-fetch', version: '2026.10.24', words: 'mcp-server-fetch --ignore-robots-txt' },
    calls: [['fetch', { url: 'http://127.0.0.1:9/' }]],
  },
  {
    ...{ name: 'mcp-server-time', version: '2026.10.19', words: 'mcp-server-time --local-timezone Europe/Berlin' },
    calls: [['convert_time', { source_timezone: 'Europe/Berlin', time: '12:00', target_timezone: 'Asia/Tokyo' }]],
  },
  {
    // Its requirement names no version, and it does not start with version 2.
    ...{ name: 'mcp-server-sqlite', version: '2025.4.25', with: 'mcp<2' },
    words: 'mcp-server-sqlite --db-path <folder>/data.db',
    calls: [
      ['create_table', { query: 'CREATE TABLE people (name TEXT)' }],
      ['write_query', { query: "INSERT INTO people VALUES ('Ada')" }],
      ['read_query', { query: 'SELECT * FROM people' }],
      ['append_insight', { insight: 'One person' }],
    ],
  },
  {
    ...{ name: 'markitdown-mcp', version: '0.0.1a8', words: 'markitdown-mcp' },
    calls: [['convert_to_markdown', { uri: 'data:text/html,<h1>Ada</h1>' }]],
  },
  {
    ...{
      name: 'mcp-server-motherduck',
      version: '1.1.0',
      words: 'mcp-server-motherduck --db-path :memory: --read-write',
    },
    calls: [['execute_query', { sql: 'SELECT 42 AS answer' }]],
  },
  {
    ...{ name: 'excel-mcp-server', version: '2.2.2', words: 'excel-mcp-server stdio' },
    calls: [
      ['create_workbook', { path: '<folder>/book.xlsx' }],
      ['describe_workbook', { path: '<folder>/book.xlsx' }],
    ],
  },
  {
    ...{ name: 'redis-mcp-server', version: '0.5.1', words: 'redis-mcp-server --url redis://127.0.0.1:9/0' },
    calls: [['get', { key: 'name' }]],
  },
  {
    ...{ name: 'mcp-shell-server', version: '1.1.14', words: 'mcp-shell-server', env: { ALLOW_COMMANDS: 'echo' } },
    calls: [['shell_execute', { command: ['echo', 'one'], directory: '<folder>' }]],
  },
  {
    ...{ name: 'code-index-mcp', version: '2.17.1', words: 'code-index-mcp' },
    calls: [
      ['set_project_path', { path: '<folder>' }],
      ['find_files', { pattern: '*.py' }],
    ],
  },
];

/** The servers of PyPI that start without the internet and without a service beside them. */
export const pythonServers: readonly PythonServer[] = inPython.map((server) => ({
  ...server,
  programOf: (program) => [pythonProgram(server.name, program)],
}));
