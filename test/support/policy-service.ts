import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished, TestRunner } from 'vitest';

/** What a policy service is asked, as the gateway writes it. */
// biome-ignore lint/suspicious/noExplicitAny: a test reads questions freely
export type PolicyInput = any;

/** A policy service that decides as a test says. */
export interface PolicyService {
  readonly url: string;
  /** All questions so far. */
  readonly inputs: PolicyInput[];
  /** The number of connections so far. */
  readonly connections: () => number;
  /** Returns the answer to a question: a value for `result`, or a whole answer as text, or a status. */
  decide: (input: PolicyInput) => unknown;
  close(): void;
}

/** An answer that is no decision. */
export class RawAnswer {
  readonly status: number;
  readonly text: string;

  constructor(status: number, text: string) {
    this.status = status;
    this.text = text;
  }
}

/** Starts a service on a free port. It ends with the test, if a test starts it. */
export async function startPolicyService(decide: PolicyService['decide'] = () => true): Promise<PolicyService> {
  let connections = 0;
  const inputs: PolicyInput[] = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request.setEncoding('utf8')) body += chunk;
    const { input } = JSON.parse(body);
    inputs.push(input);
    const decided = await service.decide(input);
    if (decided instanceof RawAnswer) return response.writeHead(decided.status).end(decided.text);
    response.setHeader('content-type', 'application/json');
    return response.end(JSON.stringify({ result: decided }));
  });
  server.on('connection', () => {
    connections += 1;
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  if (TestRunner.getCurrentTest() !== undefined) onTestFinished(close);
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}/v1/data/mcp/decision`;
  const service: PolicyService = { url, inputs, connections: () => connections, decide, close };
  return service;
}
