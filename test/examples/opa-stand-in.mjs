#!/usr/bin/env node
// Decides as the policy of docs/recipes/policy-with-opa.md does, where Open Policy Agent is not installed.
//
//   opa-stand-in.mjs run --server --addr HOST:PORT FILE
import { createServer } from 'node:http';

const address = process.argv[process.argv.indexOf('--addr') + 1] ?? '';
const [host, port] = address.split(':');

function decide({ phase, name, arguments: given = {}, result }) {
  if (phase === 'result') {
    const content = result.content.map((item) => ({ ...item, text: item.text.replace(/\d{16}/g, '[card]') }));
    return { allow: true, result: { ...result, content } };
  }
  if (name === 'echo') return { allow: true };
  if (name === 'get-sum' && given.a < 1_000) return { allow: true };
  if (name === 'get-sum') return { approval: { message: `Add ${given.a} and ${given.b}?` } };
  return { allow: false, reason: 'Ask the platform team for this tool.' };
}

const server = createServer(async (request, response) => {
  let body = '';
  for await (const chunk of request) body += chunk;
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify({ result: decide(JSON.parse(body).input) }));
});
server.listen(Number(port), host, () => process.stdout.write('{"msg":"Initializing server."}\n'));
