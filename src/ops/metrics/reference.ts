import { catalogue, type Label, type Metric } from './catalogue.ts';
import { type Question, questions } from './questions.ts';

/** `docs/metrics.md`, from the catalogue; `scripts/write-reference.mjs` writes it. */
export function renderMetricsReference(): string {
  return `<!-- Generated from src/ops/metrics: npm run build && node scripts/write-reference.mjs -->

# Metrics

Prometheus reads them at \`http://127.0.0.1:9464/metrics\`, a port apart from that of clients (\`--admin-port\`; 0 turns it off, and then
nothing is measured). \`/healthz\` and \`/readyz\` are there too, as at the port of clients. A gateway whose port is taken, as that of a second one on the same machine,
says so in its log and serves without metrics.

The address is that of this machine; in the image the port is off until \`GANGWAY_ADMIN_HOST\` is given. For a Prometheus in another container or on another machine
set it to \`0.0.0.0\`, and let nobody else reach the port: unlike the status page, the metrics ask for no credentials. With \`--tls-cert\` the port speaks TLS
there, so the scrape needs \`scheme: https\`; on a loopback address it never does. What it tells are names of your servers and how much these are used; never an id, a user, a name of a tool or
content ([decision 0042](decisions/0042-metrics.md)). Web pages cannot read it: \`Origin\` is checked, and
\`Host\`, too, on a loopback address or where \`--allow-host\` names some. Addresses and names without a dot, such as \`gateway-1:9464\`, are always allowed.

\`\`\`yaml
scrape_configs:
  - job_name: mcp-gangway
    static_configs:
      - targets: ["127.0.0.1:9464"]
rule_files:
  - alerts.yml # deploy/prometheus/alerts.yml
\`\`\`

Each instance tells of itself; sums over instances are for Prometheus to make. [deploy/prometheus/alerts.yml](../deploy/prometheus/alerts.yml) has alerts, each with what to
look at; [deploy/grafana/dashboard.json](../deploy/grafana/dashboard.json) is a dashboard to import. The example
[prometheus-and-grafana](../examples/prometheus-and-grafana) runs both in containers.

## Which one answers what

In PromQL, for the job of above, summed up over instances where it says nothing of them. A day of \`increase\` has a result only where something happened.

| Question | Ask |
| --- | --- |
${questions.map(questionRow).join('\n')}

## Of the gateway

| Metric | Type | Labels | What it is |
| --- | --- | --- | --- |
${Object.values(catalogue).map(row).join('\n')}

The values of labels:

| Label | Values |
| --- | --- |
${meanings().map(meaningRow).join('\n')}

## Of its process

Those of [prom-client](https://github.com/siimon/prom-client), under the names that Prometheus' clients have in common: \`process_cpu_seconds_total\`,
\`process_resident_memory_bytes\`, \`process_open_fds\`, \`process_start_time_seconds\` and others, \`nodejs_eventloop_lag_p99_seconds\` with its siblings (how
late the event loop was since the last look), \`nodejs_heap_size_used_bytes\`, \`nodejs_gc_duration_seconds\`.

## What they are not

- The time of a request ends when its response is on its way to the client, not when the client has it. What the gateway adds
  (\`mcp_gangway_request_gateway_seconds\`) holds the wait for Redis where there is one: for the record of a new session, and with an answer that is a stream for the
  response to be in the log, since it does not go out before. It does not hold the way of a request by Redis to the instance that has the session, nor what a server that writes faster than Redis
  takes it waits for: that is in \`mcp_gangway_request_server_seconds\`.
- The time of a server is without that in which it waits for its client (a person who is asked does not make a server slow) or is being started: that is in
  \`mcp_gangway_request_wait_seconds\`. It has in it the start that \`initialize\` waits for, and questions of which no call can be told to have asked them, as the server sent them beside
  several; of modern clients at a legacy server, a start after hibernation.
- A request to a session of another instance is counted there, by its owner. Streams and connections are counted where the client is.
- Requests that the gateway makes by itself are no requests of clients; they are in \`mcp_gangway_server_messages_total\`.
`;
}

const questionRow = ({ question, queries }: Question): string =>
  `| ${question} | ${queries.map((query) => `\`${query}\``).join('<br>')} |`;

const row = ({ name, type, help, labels: of }: Metric): string =>
  `| \`${name}\` | ${type} | ${of.map((label) => `\`${label.name}\``).join(', ')} | ${help} |`;

/** A label, and the metrics that mean the same by it. */
interface Meaning {
  readonly label: Label;
  readonly metrics: string[];
}

/** Each label once, but where metrics mean different things by one name. */
function meanings(): Meaning[] {
  const all = new Map<string, Meaning>();
  for (const { name: metric, labels } of Object.values<Metric>(catalogue)) {
    for (const label of labels) {
      const said = label.values ?? label.meaning;
      if (said === undefined) continue;
      const key = `${label.name} ${said}`;
      const meaning = all.get(key) ?? { label, metrics: [] };
      all.set(key, meaning);
      meaning.metrics.push(metric);
    }
  }
  return [...all.values()].sort((a, b) => a.label.name.localeCompare(b.label.name));
}

function meaningRow(
  { label: { name, values, meaning }, metrics }: Meaning,
  _: number,
  all: readonly Meaning[],
): string {
  const isOnly = all.filter(({ label }) => label.name === name).length === 1;
  const where = isOnly ? '' : ` of ${metrics.map((metric) => `\`${metric}\``).join(', ')}`;
  return `| \`${name}\`${where} | ${values?.map((value) => `\`${value}\``).join(', ') ?? meaning} |`;
}
