import { readFileSync, realpathSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { request as requestByTls } from 'node:https';
import type { GatewayConfig } from '../../config/config.ts';
import { errorCodeOf } from '../../core/util/text/error-code.ts';
import { displayHost } from '../addresses/listen.ts';
import { failed, type Outcome } from './outcome.ts';

/** An answer that takes longer counts as missing. */
const timeoutMs = 4_000;

/**
 * Requests the health of a running gateway at the address of its configuration (`mcp-gangway health`).
 * @param path `/healthz` or `/readyz`
 */
export async function requestHealth({ host, port, tls }: GatewayConfig['listen'], path: string): Promise<Outcome> {
  const url = `${tls.cert === undefined ? 'http' : 'https'}://${displayHost(host)}:${port}${path}`;
  try {
    const status = await statusOf(url);
    return { stdout: `${url} answered ${status}.\n`, exitCode: status === 200 ? 0 : failed };
  } catch (error) {
    const isRefused = errorCodeOf(error) === 'ECONNREFUSED';
    const why = isRefused
      ? 'nothing listens there. Start the gateway, or correct --host and --port.'
      : (error as Error).message;
    return { stdout: `${url} did not answer: ${why}\n`, exitCode: failed };
  }
}

/** The certificate is for the names that clients use. It need not be valid for the address of this request. */
function statusOf(url: string): Promise<number | undefined> {
  const options = { timeout: timeoutMs, rejectUnauthorized: false };
  return new Promise((resolve, reject) => {
    const onResponse = (response: IncomingMessage): void => {
      response.resume();
      resolve(response.statusCode);
    };
    const sent = url.startsWith('https') ? requestByTls(url, options, onResponse) : request(url, options, onResponse);
    sent.on('timeout', () => sent.destroy(new Error(`no answer within ${timeoutMs} ms`)));
    sent.on('error', reject);
    sent.end();
  });
}

/**
 * The arguments of the gateway that is the main process of this container, so that its health check needs no arguments.
 * Empty without such a process.
 * @param program the path of the running program
 */
export function argumentsOfContainer(program: string): readonly string[] {
  try {
    const words = readFileSync('/proc/1/cmdline', 'utf8').split('\0').slice(0, -1);
    const at = words.findIndex((word) => word.endsWith('.js') && realpathSync(word) === realpathSync(program));
    const given = at === -1 ? [] : words.slice(at + 1);
    return given[0] === 'serve' ? given.slice(1) : given;
  } catch {
    // No /proc, no right to read it, or another program.
    return [];
  }
}
