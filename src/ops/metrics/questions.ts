/** A question of an operator, and what Prometheus is asked for it. */
export interface Question {
  readonly question: string;
  /** PromQL, each on one line: over all instances unless it says otherwise. */
  readonly queries: readonly string[];
}

const rate = (name: string, matchers = ''): string => `rate(mcp_gangway_${name}${matchers}[5m])`;
/** Of a whole day: it seldom happens, and only where it did there is an answer. */
const happened = (labels: string, name: string, matchers = ''): string =>
  `sum by (${labels}) (increase(mcp_gangway_${name}${matchers}[1d])) > 0`;
const quantile = (q: number, label: string, histogram: string, matchers = ''): string =>
  `histogram_quantile(${q}, sum by (${label}, le) (${rate(`${histogram}_bucket`, matchers)}))`;

/** What operators want to know, the most urgent first; docs/metrics.md shows it. */
export const questions: readonly Question[] = [
  {
    question: 'Does every instance run and take new sessions? (1, else 0)',
    queries: ['min by (job, instance) (mcp_gangway_readiness{state="ready"}) or up{job="mcp-gangway"} == 0'],
  },
  { question: 'How many requests a second, by server?', queries: [`sum by (server) (${rate('requests_total')})`] },
  {
    question: 'How many calls of tools fail, by server? (in ten minutes)',
    queries: [
      'sum by (server) (increase(mcp_gangway_requests_total{method="tools/call",outcome!="ok",outcome!="left"}[10m]))',
    ],
  },
  {
    question:
      'Which share of the requests of all methods does not end well, and where: in the gateway (`fault`), the server (`error`, `tool_error`), or as the client `left`? (1 is all of them)',
    queries: [
      `sum by (server, outcome) (${rate('requests_total', '{outcome!="ok"}')}) / ignoring (outcome) group_left () (sum by (server) (${rate('requests_total')}) > 0)`,
    ],
  },
  {
    question: 'By which errors of the gateway did requests end?',
    queries: [happened('server, reason', 'faults_total')],
  },
  {
    question: 'What does the gateway turn away, and why?',
    queries: [happened('server, reason', 'refused_http_requests_total')],
  },
  {
    question: 'How long do tools take, by server? (seconds, 95 %)',
    queries: [quantile(0.95, 'server', 'request_server_seconds', '{method="tools/call"}')],
  },
  {
    question: 'What does the gateway add? (seconds, 99 %)',
    queries: [quantile(0.99, 'instance', 'request_gateway_seconds')],
  },
  {
    question: 'Is a server broken: starts that failed, or that it was given up?',
    queries: [happened('server', 'server_start_failures_total'), happened('server', 'crash_loops_total')],
  },
  {
    question: 'How do servers end that nobody ended?',
    queries: [happened('server, reason', 'backend_ends_total', '{reason!="closed"}')],
  },
  {
    question: 'How long does a new client wait for its server? (seconds, 95 %)',
    queries: [quantile(0.95, 'server', 'server_start_seconds')],
  },
  { question: 'Why do sessions end?', queries: [happened('server, reason', 'session_ends_total')] },
  {
    question: 'How many more sessions may an instance have?',
    queries: ['mcp_gangway_sessions_max - on (job, instance) sum by (job, instance) (mcp_gangway_sessions)'],
  },
  {
    question: 'How many streams and WebSockets are open?',
    queries: ['sum by (server) (mcp_gangway_streams)', 'sum by (server) (mcp_gangway_websockets)'],
  },
  {
    question: 'What does a session of a server cost? (bytes, processors)',
    queries: [
      'sum by (server) (mcp_gangway_server_memory_bytes) / (sum by (server) (mcp_gangway_sessions) > 0)',
      `sum by (server) (${rate('server_cpu_seconds_total')}) / (sum by (server) (mcp_gangway_sessions) > 0)`,
    ],
  },
  {
    question: 'Do clients that come back get all that they missed? (`history_lost`: no)',
    queries: [happened('server, outcome', 'resumes_total')],
  },
  {
    question: 'Is Redis away (1, else 0), slow (seconds, 99 %), or refusing?',
    queries: [
      '1 - mcp_gangway_redis_up',
      quantile(0.99, 'instance', 'redis_command_seconds'),
      happened('instance, reason', 'redis_errors_total'),
    ],
  },
  {
    question: 'Which instances took over sessions of others?',
    queries: [happened('instance', 'session_takeovers_total')],
  },
  {
    question: 'Is the configuration in use the one that was read last (1, else 0), and since when? (seconds)',
    queries: [
      'mcp_gangway_config_last_reload_successful',
      'time() - mcp_gangway_config_last_reload_success_timestamp_seconds',
    ],
  },
  {
    question: 'Is the gateway itself too busy? (processors; lateness in seconds)',
    queries: ['rate(process_cpu_seconds_total{job="mcp-gangway"}[5m])', 'nodejs_eventloop_lag_p99_seconds'],
  },
];
