/** A question of an operator, and the PromQL queries that answer it. */
export interface Question {
  readonly question: string;
  /** PromQL, one line each, summed over all instances unless the question says otherwise. */
  readonly queries: readonly string[];
}

const rate = (name: string, matchers = ''): string => `rate(mcp_gangway_${name}${matchers}[5m])`;
/** Looks at a whole day, since such events are rare. The result is empty without an event. */
const happened = (labels: string, name: string, matchers = ''): string =>
  `sum by (${labels}) (increase(mcp_gangway_${name}${matchers}[1d])) > 0`;
const quantile = (q: number, label: string, histogram: string, matchers = ''): string =>
  `histogram_quantile(${q}, sum by (${label}, le) (${rate(`${histogram}_bucket`, matchers)}))`;

/** The most urgent question first. `docs/reference/metrics.md` shows them. */
export const questions: readonly Question[] = [
  {
    question: 'Is each instance running and accepting new sessions? (1 or 0)',
    queries: ['min by (job, instance) (mcp_gangway_readiness{state="ready"}) or up{job="mcp-gangway"} == 0'],
  },
  {
    question: 'How many requests per second does each server get?',
    queries: [`sum by (server) (${rate('requests_total')})`],
  },
  {
    question: 'How many tool calls of each server failed in the last ten minutes?',
    queries: [
      'sum by (server) (increase(mcp_gangway_requests_total{method="tools/call",outcome!="ok",outcome!="left"}[10m]))',
    ],
  },
  {
    question:
      'What share of requests fails in the gateway (`fault`), in the server (`error`, `tool_error`) or because the client disconnected (`left`)? (1 means all requests)',
    queries: [
      `sum by (server, outcome) (${rate('requests_total', '{outcome!="ok"}')}) / ignoring (outcome) group_left () (sum by (server) (${rate('requests_total')}) > 0)`,
    ],
  },
  {
    question: 'Which errors from the gateway ended requests?',
    queries: [happened('server, reason', 'faults_total')],
  },
  {
    question: 'Which HTTP requests does the gateway refuse, and why?',
    queries: [happened('server, reason', 'refused_http_requests_total')],
  },
  {
    question: 'How long do tool calls of each server take? (seconds, p95)',
    queries: [quantile(0.95, 'server', 'request_server_seconds', '{method="tools/call"}')],
  },
  {
    question: 'Which tools fail, and which are slow? (`--observe.toolMetrics`; calls of the last day, seconds at p95)',
    queries: [
      happened('server, tool, outcome', 'tool_calls_total', '{outcome!="ok",outcome!="left"}'),
      quantile(0.95, 'tool', 'tool_server_seconds'),
    ],
  },
  {
    question: 'Which servers have changed the definition of a tool? (changes of the last day)',
    queries: [happened('server', 'tool_changes_total')],
  },
  {
    question: 'How much time does the gateway add? (seconds, p99)',
    queries: [quantile(0.99, 'instance', 'request_gateway_seconds')],
  },
  {
    question: 'Does a server fail to start or crash repeatedly?',
    queries: [happened('server', 'server_start_failures_total'), happened('server', 'crash_loops_total')],
  },
  {
    question: 'Why do server processes exit unexpectedly?',
    queries: [happened('server, reason', 'backend_ends_total', '{reason!="closed"}')],
  },
  {
    question: 'How long does a new client wait for its server? (seconds, p95)',
    queries: [quantile(0.95, 'server', 'server_start_seconds')],
  },
  { question: 'Why do sessions end?', queries: [happened('server, reason', 'session_ends_total')] },
  {
    question: 'How many more sessions can each instance open?',
    queries: ['mcp_gangway_sessions_max - on (job, instance) sum by (job, instance) (mcp_gangway_sessions)'],
  },
  {
    question: 'How many streams and WebSockets are open?',
    queries: ['sum by (server) (mcp_gangway_streams)', 'sum by (server) (mcp_gangway_websockets)'],
  },
  {
    question: 'How much memory (bytes) and CPU (cores) does a session of each server use?',
    queries: [
      'sum by (server) (mcp_gangway_server_memory_bytes) / (sum by (server) (mcp_gangway_sessions) > 0)',
      `sum by (server) (${rate('server_cpu_seconds_total')}) / (sum by (server) (mcp_gangway_sessions) > 0)`,
    ],
  },
  {
    question: 'Do clients that resume a stream get all missed events? (`history_lost` means no)',
    queries: [happened('server, outcome', 'resumes_total')],
  },
  { question: 'Can the store in files not be written? (1 or 0)', queries: ['1 - mcp_gangway_file_store_up'] },
  {
    question: 'Is Redis unreachable (1 or 0), slow (seconds, p99), or refusing commands?',
    queries: [
      '1 - mcp_gangway_redis_up',
      quantile(0.99, 'instance', 'redis_command_seconds'),
      happened('instance, reason', 'redis_errors_total'),
    ],
  },
  {
    question: 'Which instances took over sessions of other instances?',
    queries: [happened('instance', 'session_takeovers_total')],
  },
  {
    question: 'Is the newest configuration in use (1 or 0), and how old is the current one (seconds)?',
    queries: [
      'mcp_gangway_config_last_reload_successful',
      'time() - mcp_gangway_config_last_reload_success_timestamp_seconds',
    ],
  },
  {
    question: 'Is the gateway itself overloaded? (CPU cores, and event loop delay in seconds)',
    queries: ['rate(process_cpu_seconds_total{job="mcp-gangway"}[5m])', 'nodejs_eventloop_lag_p99_seconds'],
  },
];
