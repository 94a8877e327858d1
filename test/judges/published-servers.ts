/** A call of a tool that needs no network and has no effects outside the server's folder. */
export type ToolCall = readonly [name: string, args: object];

/** A published server on STDIO. */
export interface PublishedServer {
  readonly name: string;
  /** The program in `node_modules`, then its arguments. `<folder>` stands for an empty folder of this run. */
  readonly words: string;
  /** Variables that the server needs to start. Keys are made up: no server is asked for anything beyond this machine. */
  readonly env?: Readonly<Record<string, string>>;
  readonly calls?: readonly ToolCall[];
}

const key = 'made-up-key-of-a-test';

/** The servers that start without the internet and without a service beside them. */
export const publishedServers: readonly PublishedServer[] = [
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
];
